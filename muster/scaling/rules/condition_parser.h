// SPDX-License-Identifier: Apache-2.0

// Parses a condition into a tree and checks that kinds fit.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/scaling/rules/condition.h"

namespace muster::scaling::rules {

// Parses as Condition::Parse does. The root has the kind kTruth.
absl::StatusOr<std::unique_ptr<Expression>> ParseExpression(absl::string_view text,
                                                            const KindOf& kind_of);

}  // namespace muster::scaling::rules
