// SPDX-License-Identifier: Apache-2.0

// IsSuspicious and SuspiciousByte: find the bytes for which a record may be rejected.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace muster::input {

// Whether `slice` has bytes for which a record may be rejected: NUL, or a CR that no LF follows.
bool IsSuspicious(absl::string_view slice);

// The fault of a record of a suspicious slice; `cr` is where a CR is one, or npos. `what` names the
// record for people. Empty: it has none.
std::string SuspiciousByte(absl::string_view record, size_t cr, absl::string_view what);

}  // namespace muster::input
