// SPDX-License-Identifier: Apache-2.0

// InParallel: calls a function for each of several things, some of them at a time.
#pragma once

#include <cstddef>

#include "absl/functional/function_ref.h"

namespace muster::base {

// Calls `fn` with 0 to `count` - 1, on up to `threads` threads, the caller's included, and returns
// when all calls have. `fn` must be thread-safe, and must not throw. The threads are made for it:
// for calls that wait for another process, or for a disk. Where the system gives no more threads,
// those that there are do it.
void InParallel(size_t count, size_t threads, absl::FunctionRef<void(size_t)> fn);

}  // namespace muster::base
