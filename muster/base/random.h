// SPDX-License-Identifier: Apache-2.0

// Where jitter comes from. Injected, so that a test can seed it or choose each value.
#pragma once

#include <cstdint>
#include <functional>

namespace muster::base {

// Yields numbers in [0, 1). Not thread-safe unless its maker says so.
using UniformSource = std::function<double()>;

// The same seed yields the same numbers. Not thread-safe.
UniformSource SeededUniform(uint64_t seed);

// A seed from the operating system's entropy.
uint64_t RandomSeed();

}  // namespace muster::base
