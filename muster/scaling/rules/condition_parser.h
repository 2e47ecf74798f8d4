// Reads the tokens of a condition into a tree, and checks that kinds fit.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/scaling/rules/condition.h"

namespace muster::scaling::rules {

// What Condition::Parse does. The root is a truth.
absl::StatusOr<std::unique_ptr<Expression>> ParseExpression(absl::string_view text,
                                                            const KindOf& kind_of);

}  // namespace muster::scaling::rules
