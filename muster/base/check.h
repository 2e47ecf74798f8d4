// SPDX-License-Identifier: Apache-2.0

// MUSTER_CHECK and MUSTER_DCHECK: stop the process when an invariant is broken, before it writes
// down what is wrong. They guard what only a mistake in muster itself can break: changes of state,
// and arguments that a caller has checked. Input, files, networks and users get a Status.
//
//   MUSTER_CHECK(durable_ <= written_, "durable ", durable_, ", written ", written_);
//
// What follows the condition is evaluated only when it is false, and is logged with it.
#pragma once

#include <string>

#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster::base {

// Logs the broken invariant, and aborts.
[[noreturn]] void CheckFailed(absl::string_view file, int line, absl::string_view condition,
                              const std::string& values);

}  // namespace muster::base

// In every build.
#define MUSTER_CHECK(condition, ...) \
  (ABSL_PREDICT_TRUE(condition)      \
       ? static_cast<void>(0)        \
       : ::muster::base::CheckFailed(__FILE__, __LINE__, #condition, ::absl::StrCat(__VA_ARGS__)))

// In builds for tests: for conditions that cost more than a comparison, or lie in an inner loop.
#ifdef NDEBUG
#define MUSTER_DCHECK(condition, ...) \
  static_cast<void>(true || (MUSTER_CHECK(condition, __VA_ARGS__), true))
#else
#define MUSTER_DCHECK(condition, ...) MUSTER_CHECK(condition, __VA_ARGS__)
#endif
