// SPDX-License-Identifier: Apache-2.0

// What keeps a collector from taking a call, in words for operators.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace muster::telemetry {

// `logged` is what the library logs of a call that failed. Where an HTTP server answers, that has
// no gRPC, the cause says what to set.
std::string DescribeFailure(absl::string_view logged);

}  // namespace muster::telemetry
