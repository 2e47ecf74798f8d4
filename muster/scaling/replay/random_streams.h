// The sources of chance, each with a sequence of its own: what one of them draws does not move what
// another does, so that policies are compared under the same luck.
#pragma once

#include <cstdint>

#include "muster/base/random.h"

namespace muster::scaling::replay {

enum class RandomStream : uint64_t {
  kService = 1,
  kColdStart,
  kTriggers,
  kPolicyPhases,
};

inline base::UniformSource Stream(uint64_t seed, RandomStream stream) {
  // Odd, and large: neighbouring seeds and streams begin far from each other.
  constexpr uint64_t kStride = 0x9e3779b97f4a7c15;
  return base::SeededUniform(seed * kStride + static_cast<uint64_t>(stream));
}

}  // namespace muster::scaling::replay
