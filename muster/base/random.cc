// SPDX-License-Identifier: Apache-2.0
#include "muster/base/random.h"

#include <random>

namespace muster::base {

UniformSource SeededUniform(uint64_t seed) {
  return [generator = std::mt19937_64(seed)]() mutable {
    return static_cast<double>(generator() >> 11) * 0x1p-53;
  };
}

uint64_t RandomSeed() {
  std::random_device entropy;
  return static_cast<uint64_t>(entropy()) << 32 | entropy();
}

}  // namespace muster::base
