#include "muster/scaling/rules/condition_parser.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/nearest_name.h"
#include "muster/base/status_macros.h"
#include "muster/scaling/rules/condition_lexer.h"
#include "muster/scaling/rules/limits.h"

namespace muster::scaling::rules {
namespace {

using Node = std::unique_ptr<Expression>;
using Result = absl::StatusOr<Node>;

struct Operator {
  absl::string_view text;
  Operation operation;
};

constexpr Operator kComparisons[] = {{"<", Operation::kLess},    {"<=", Operation::kLessOrEqual},
                                     {">", Operation::kGreater}, {">=", Operation::kGreaterOrEqual},
                                     {"==", Operation::kEqual},  {"!=", Operation::kNotEqual}};
constexpr Operator kSums[] = {{"+", Operation::kPlus}, {"-", Operation::kMinus}};
constexpr Operator kProducts[] = {{"*", Operation::kTimes}, {"/", Operation::kDivide}};

absl::string_view KindWords(Kind kind) {
  switch (kind) {
    case Kind::kPlain:
      return "a plain number";
    case Kind::kTime:
      return "a time";
    case Kind::kShare:
      return "a share (percent)";
    case Kind::kTruth:
      return "true or false";
  }
  return "";
}

bool IsEither(const Expression& a, const Expression& b, Kind kind) {
  return a.kind == kind || b.kind == kind;
}

// What two numbers are together when they are added or compared. Percent are written with and
// without their sign.
std::optional<Kind> Alike(const Expression& a, const Expression& b) {
  if (IsEither(a, b, Kind::kTruth)) return std::nullopt;
  if (a.kind == b.kind) return a.kind;
  if (IsEither(a, b, Kind::kShare) && IsEither(a, b, Kind::kPlain)) return Kind::kShare;
  return std::nullopt;
}

std::optional<Kind> Product(const Expression& a, const Expression& b) {
  if (IsEither(a, b, Kind::kTruth)) return std::nullopt;
  if (a.kind == Kind::kPlain || a.kind == Kind::kShare) {
    return a.kind == b.kind && a.kind == Kind::kShare ? std::nullopt : std::optional(b.kind);
  }
  if (b.kind == Kind::kPlain || b.kind == Kind::kShare) return a.kind;
  return std::nullopt;
}

std::optional<Kind> Quotient(const Expression& a, const Expression& b) {
  if (IsEither(a, b, Kind::kTruth)) return std::nullopt;
  if (b.kind == Kind::kPlain) return a.kind;
  return a.kind == b.kind ? std::optional(Kind::kPlain) : std::nullopt;
}

std::optional<Kind> KindOfResult(Operation operation, const Expression& a, const Expression& b) {
  switch (operation) {
    case Operation::kOr:
    case Operation::kAnd:
      return a.kind == Kind::kTruth && b.kind == Kind::kTruth ? std::optional(Kind::kTruth)
                                                              : std::nullopt;
    case Operation::kPlus:
    case Operation::kMinus:
      return Alike(a, b);
    case Operation::kTimes:
      return Product(a, b);
    case Operation::kDivide:
      return Quotient(a, b);
    default:
      return Alike(a, b) ? std::optional(Kind::kTruth) : std::nullopt;
  }
}

// Each method reads one rule of the grammar (condition.h) from where the parser stands.
class Parser {
 public:
  Parser(std::vector<Token> tokens, const KindOf& kind_of)
      : tokens_(std::move(tokens)), kind_of_(kind_of) {}

  Result Whole() {
    MUSTER_ASSIGN_OR_RETURN(Node root, Or());
    if (Now().kind != TokenKind::kEnd) return Unexpected("the end, 'and' or 'or'");
    if (root->kind == Kind::kTruth) return root;
    return MistakeAt(0,
                     absl::StrCat("a condition is true or false; this is ", KindWords(root->kind)));
  }

 private:
  const Token& Now() const { return tokens_[next_]; }
  bool Is(absl::string_view text) const {
    return Now().kind != TokenKind::kNumber && Now().kind != TokenKind::kEnd && Now().text == text;
  }

  absl::Status Unexpected(absl::string_view wanted) const {
    const std::string found = Now().kind == TokenKind::kEnd ? "the end" : base::Quoted(Now().text);
    return MistakeAt(Now().at, absl::StrCat("expected ", wanted, ", found ", found));
  }

  static Result Joined(const Token& by, Operation operation, Node left, Node right) {
    const std::optional<Kind> kind = KindOfResult(operation, *left, *right);
    if (!kind) {
      return MistakeAt(by.at, absl::StrCat("'", by.text, "' does not fit ", KindWords(left->kind),
                                           " and ", KindWords(right->kind)));
    }
    auto node = std::make_unique<Expression>();
    node->operation = operation;
    node->kind = *kind;
    node->left = std::move(left);
    node->right = std::move(right);
    return node;
  }

  template <typename Part>
  Result Words(absl::string_view word, Operation operation, Part part) {
    MUSTER_ASSIGN_OR_RETURN(Node left, part());
    while (Is(word)) {
      const Token by = tokens_[next_++];
      MUSTER_ASSIGN_OR_RETURN(Node right, part());
      MUSTER_ASSIGN_OR_RETURN(left, Joined(by, operation, std::move(left), std::move(right)));
    }
    return left;
  }
  Result Or() {
    return Words("or", Operation::kOr, [this] { return And(); });
  }
  Result And() {
    return Words("and", Operation::kAnd, [this] { return Not(); });
  }

  Result Not() {
    if (!Is("not")) return Comparison();
    return Prefixed(Operation::kNot, [this] { return Not(); });
  }

  Result Comparison() {
    MUSTER_ASSIGN_OR_RETURN(Node left, Sum());
    const Operator* const found = Find(kComparisons);
    if (found == nullptr) return left;
    const Token by = tokens_[next_++];
    MUSTER_ASSIGN_OR_RETURN(Node right, Sum());
    if (Find(kComparisons) != nullptr) {
      return MistakeAt(Now().at, "compare two at a time, and join with 'and'");
    }
    return Joined(by, found->operation, std::move(left), std::move(right));
  }

  template <size_t kCount, typename Part>
  Result Chain(const Operator (&operators)[kCount], Part part) {
    MUSTER_ASSIGN_OR_RETURN(Node left, part());
    while (const Operator* const found = Find(operators)) {
      const Token by = tokens_[next_++];
      MUSTER_ASSIGN_OR_RETURN(Node right, part());
      MUSTER_ASSIGN_OR_RETURN(left,
                              Joined(by, found->operation, std::move(left), std::move(right)));
    }
    return left;
  }
  Result Sum() {
    return Chain(kSums, [this] { return Product(); });
  }
  Result Product() {
    return Chain(kProducts, [this] { return Sign(); });
  }

  Result Sign() {
    if (Is("-")) return Prefixed(Operation::kNegate, [this] { return Sign(); });
    if (Is("(")) return InParentheses();
    auto node = std::make_unique<Expression>();
    node->text = std::string(Now().text);
    if (Now().kind == TokenKind::kNumber) {
      node->number = Now().number;
      node->kind = Now().number_kind;
    } else if (Now().kind == TokenKind::kName && !Is("and") && !Is("or") && !Is("not")) {
      const std::optional<Kind> kind = kind_of_(Now().text);
      if (!kind) {
        return MistakeAt(Now().at, absl::StrCat("there is no operand ", base::Quoted(Now().text)));
      }
      node->operation = Operation::kOperand;
      node->kind = *kind;
    } else {
      return Unexpected("a number, an operand or '('");
    }
    ++next_;
    return node;
  }

  template <typename Part>
  Result Prefixed(Operation operation, Part part) {
    const Token by = tokens_[next_++];
    MUSTER_RETURN_IF_ERROR(Deeper(by));
    MUSTER_ASSIGN_OR_RETURN(Node operand, part());
    --depth_;
    if ((operation == Operation::kNot) != (operand->kind == Kind::kTruth)) {
      return MistakeAt(by.at,
                       absl::StrCat("'", by.text, "' does not fit ", KindWords(operand->kind)));
    }
    auto node = std::make_unique<Expression>();
    node->operation = operation;
    node->kind = operand->kind;
    node->left = std::move(operand);
    return node;
  }

  Result InParentheses() {
    const Token open = tokens_[next_++];
    MUSTER_RETURN_IF_ERROR(Deeper(open));
    MUSTER_ASSIGN_OR_RETURN(Node inside, Or());
    --depth_;
    if (!Is(")")) return Unexpected("')'");
    ++next_;
    return inside;
  }

  absl::Status Deeper(const Token& by) {
    if (++depth_ <= kMaxConditionDepth) return absl::OkStatus();
    return MistakeAt(by.at, absl::StrCat("nested more than ", kMaxConditionDepth, " deep"));
  }

  template <size_t kCount>
  const Operator* Find(const Operator (&operators)[kCount]) const {
    for (const Operator& candidate : operators) {
      if (Is(candidate.text)) return &candidate;
    }
    return nullptr;
  }

  const std::vector<Token> tokens_;
  const KindOf& kind_of_;
  size_t next_ = 0;
  int depth_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Expression>> ParseExpression(absl::string_view text,
                                                            const KindOf& kind_of) {
  MUSTER_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(text));
  return Parser(std::move(tokens), kind_of).Whole();
}

}  // namespace muster::scaling::rules
