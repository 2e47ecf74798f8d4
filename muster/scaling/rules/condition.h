// SPDX-License-Identifier: Apache-2.0

// Condition: decides whether a reaction acts, such as "age > 0.5*sla and grow > 0".
//
//   condition  = and-part { "or" and-part }
//   and-part   = not-part { "and" not-part }
//   not-part   = "not" not-part | comparison
//   comparison = sum [ ("<" | "<=" | ">" | ">=" | "==" | "!=") sum ]
//   sum        = product { ("+" | "-") product }
//   product    = sign { ("*" | "/") sign }
//   sign       = "-" sign | number | operand | "(" condition ")"
//
// A number may have a unit: a duration (250ms, 5m, 1h30m), a share (90%), thousands (10k). Every
// value has a kind, and kinds must fit: an age cannot be compared with a count. A share of a value
// has the value's kind: 50% * sla is half of sla.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::scaling::rules {

// Numbers of kTime are seconds; numbers of kShare are percent.
enum class Kind { kPlain, kTime, kShare, kTruth };

enum class Operation {
  kOr,
  kAnd,
  kNot,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
  kEqual,
  kNotEqual,
  kPlus,
  kMinus,
  kTimes,
  kDivide,
  kNegate,
  kNumber,
  kOperand,
};

// A node of a condition's tree. `right` is null for kNot and kNegate. `left` and `right` are null
// for kNumber and kOperand, which hold their `text` as written.
struct Expression {
  Operation operation = Operation::kNumber;
  Kind kind = Kind::kPlain;
  double number = 0;
  std::string text;
  std::unique_ptr<Expression> left;
  std::unique_ptr<Expression> right;
};

// The kind of an operand; nullopt: no operand has this name.
using KindOf = std::function<std::optional<Kind>(absl::string_view name)>;
// The present value of an operand; nullopt: not known.
using ValueOf = std::function<std::optional<double>(absl::string_view name)>;

// Immutable; cheap to copy. Thread-safe.
class Condition {
 public:
  // InvalidArgument: "column 7: …", counted in bytes from 1: not a condition, an operand that is
  // not known, kinds that do not fit, too long or too deep.
  static absl::StatusOr<Condition> Parse(absl::string_view text, const KindOf& kind_of);

  // nullopt: undefined, because the data that would decide it are missing. "false and unknown" is
  // false, "true or unknown" is true, "not unknown" is unknown; so is a comparison with an unknown
  // number, with a division by 0, or with a number that is too large.
  std::optional<bool> Evaluate(const ValueOf& value_of) const;

  // The condition with as few parentheses as possible; Parse turns it into the same tree again.
  std::string ToString() const;
  // The condition as written.
  const std::string& text() const { return text_; }
  const Expression& root() const { return *root_; }

 private:
  Condition(std::string text, std::shared_ptr<const Expression> root)
      : text_(std::move(text)), root_(std::move(root)) {}

  std::string text_;
  // Shared by copies, and never changed.
  std::shared_ptr<const Expression> root_;
};

// Whether two trees are equal, regardless of the notation of numbers.
bool SameTree(const Expression& a, const Expression& b);
std::string ExpressionToString(const Expression& root);

}  // namespace muster::scaling::rules
