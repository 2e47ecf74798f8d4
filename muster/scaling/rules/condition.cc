// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/rules/condition.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/scaling/rules/condition_parser.h"

namespace muster::scaling::rules {
namespace {

// The precedence of an operation. An operand with a lower precedence needs parentheses.
int Tightness(Operation operation) {
  switch (operation) {
    case Operation::kOr:
      return 1;
    case Operation::kAnd:
      return 2;
    case Operation::kNot:
      return 3;
    case Operation::kPlus:
    case Operation::kMinus:
      return 5;
    case Operation::kTimes:
    case Operation::kDivide:
      return 6;
    case Operation::kNegate:
    case Operation::kNumber:
    case Operation::kOperand:
      return 7;
    default:
      return 4;
  }
}

absl::string_view Sign(Operation operation) {
  constexpr absl::string_view kSigns[] = {
      "or", "and", "not ", "<", "<=", ">", ">=", "==", "!=", "+", "-", "*", "/", "-"};
  return kSigns[static_cast<size_t>(operation)];
}

std::string Show(const Expression& part, int tightness) {
  const std::string text = ExpressionToString(part);
  return Tightness(part.operation) < tightness ? absl::StrCat("(", text, ")") : text;
}

using Number = std::optional<double>;
using Truth = std::optional<bool>;

Number Known(double number) { return std::isfinite(number) ? Number(number) : std::nullopt; }

// A share times a time is a time: there the share's percent count as hundredths.
double ShareFactor(const Expression& a, const Expression& b) {
  return a.kind != b.kind && (a.kind == Kind::kShare || b.kind == Kind::kShare) &&
                 (a.kind == Kind::kTime || b.kind == Kind::kTime)
             ? 0.01
             : 1;
}

Number NumberOf(const Expression& node, const ValueOf& value_of) {
  if (node.operation == Operation::kNumber) return node.number;
  if (node.operation == Operation::kOperand) {
    const Number value = value_of(node.text);
    return value ? Known(*value) : std::nullopt;
  }
  const Number a = NumberOf(*node.left, value_of);
  if (!a || node.operation == Operation::kNegate) return a ? Number(-*a) : a;
  const Number b = NumberOf(*node.right, value_of);
  if (!b) return b;
  switch (node.operation) {
    case Operation::kPlus:
      return Known(*a + *b);
    case Operation::kMinus:
      return Known(*a - *b);
    case Operation::kTimes:
      return Known(*a * *b * ShareFactor(*node.left, *node.right));
    default:
      return *b == 0 ? std::nullopt : Known(*a / *b);
  }
}

bool Compare(Operation operation, double a, double b) {
  switch (operation) {
    case Operation::kLess:
      return a < b;
    case Operation::kLessOrEqual:
      return a <= b;
    case Operation::kGreater:
      return a > b;
    case Operation::kGreaterOrEqual:
      return a >= b;
    case Operation::kEqual:
      return a == b;
    default:
      return a != b;
  }
}

Truth TruthOf(const Expression& node, const ValueOf& value_of);

// A true part decides `or`, a false part decides `and`; otherwise an unknown part leaves the result
// unknown.
Truth Decided(const Expression& node, bool by, const ValueOf& value_of) {
  const Truth a = TruthOf(*node.left, value_of);
  if (a == by) return by;
  const Truth b = TruthOf(*node.right, value_of);
  if (b == by) return by;
  return a && b ? Truth(!by) : std::nullopt;
}

Truth TruthOf(const Expression& node, const ValueOf& value_of) {
  if (node.operation == Operation::kOr) return Decided(node, true, value_of);
  if (node.operation == Operation::kAnd) return Decided(node, false, value_of);
  if (node.operation == Operation::kNot) {
    const Truth truth = TruthOf(*node.left, value_of);
    return truth ? Truth(!*truth) : truth;
  }
  const Number a = NumberOf(*node.left, value_of), b = NumberOf(*node.right, value_of);
  return a && b ? Truth(Compare(node.operation, *a, *b)) : std::nullopt;
}

bool SameChild(const std::unique_ptr<Expression>& a, const std::unique_ptr<Expression>& b) {
  return a == nullptr || b == nullptr ? a == b : SameTree(*a, *b);
}

}  // namespace

absl::StatusOr<Condition> Condition::Parse(absl::string_view text, const KindOf& kind_of) {
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<const Expression> root, ParseExpression(text, kind_of));
  return Condition(std::string(text), std::move(root));
}

std::optional<bool> Condition::Evaluate(const ValueOf& value_of) const {
  return TruthOf(*root_, value_of);
}

std::string Condition::ToString() const { return ExpressionToString(*root_); }

bool SameTree(const Expression& a, const Expression& b) {
  if (a.operation != b.operation || a.kind != b.kind) return false;
  if (a.operation == Operation::kNumber) return a.number == b.number;
  if (a.operation == Operation::kOperand) return a.text == b.text;
  return SameChild(a.left, b.left) && SameChild(a.right, b.right);
}

std::string ExpressionToString(const Expression& root) {
  if (root.left == nullptr) return root.text;
  const int tightness = Tightness(root.operation);
  if (root.right == nullptr) {
    return absl::StrCat(Sign(root.operation), Show(*root.left, tightness));
  }
  // Operations of equal precedence associate from the left; comparisons cannot be chained.
  const bool is_comparison = tightness == Tightness(Operation::kLess);
  return absl::StrCat(Show(*root.left, is_comparison ? tightness + 1 : tightness), " ",
                      Sign(root.operation), " ", Show(*root.right, tightness + 1));
}

}  // namespace muster::scaling::rules
