// SPDX-License-Identifier: Apache-2.0

// A tokenizer and a recursive parser, in this order.

#include "muster/scaling/rules/condition_parser.h"

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "muster/base/quantity.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/scaling/rules/limits.h"

namespace muster::scaling::rules {

namespace {

enum class TokenKind { kNumber, kName, kSymbol, kEnd };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  absl::string_view text;  // of the condition; words such as `and` are names
  size_t at = 0;           // from 0
  double number = 0;       // of kNumber, with its kind
  Kind number_kind = Kind::kPlain;
};

// InvalidArgument "column C: WHAT" for a mistake at the byte `at`.
absl::Status MistakeAt(size_t at, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("column ", at + 1, ": ", what));
}

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }
bool IsLetter(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)) || c == '_'; }

// The number of bytes at the front of `text` that are all in the class.
template <typename Class>
size_t Run(absl::string_view text, Class is_in) {
  size_t bytes = 0;
  while (bytes < text.size() && is_in(text[bytes])) ++bytes;
  return bytes;
}

// Parses digits with at most one point between them.
std::optional<double> PlainNumber(absl::string_view text) {
  double number = 0;
  const bool is_plain = !text.empty() && IsDigit(text.front()) && IsDigit(text.back()) &&
                        Run(text, [](char c) { return IsDigit(c) || c == '.'; }) == text.size();
  if (!is_plain || !absl::SimpleAtod(text, &number) || !std::isfinite(number)) return std::nullopt;
  return number;
}

absl::StatusOr<Token> NumberToken(absl::string_view text, size_t at) {
  Token token = {.kind = TokenKind::kNumber, .text = text, .at = at};
  absl::string_view digits = text;
  const bool is_share = absl::ConsumeSuffix(&digits, "%");
  const double factor = !is_share && absl::ConsumeSuffix(&digits, "k") ? 1000 : 1;
  if (const std::optional<double> number = PlainNumber(digits)) {
    token.number = *number * factor;
    token.number_kind = is_share ? Kind::kShare : Kind::kPlain;
    return token;
  }
  const absl::StatusOr<absl::Duration> duration = base::ParseDuration(text);
  if (!duration.ok()) {
    return MistakeAt(at, absl::StrCat(base::Quoted(text),
                                      " is not a number, nor one with a unit (5m, 90%, 10k)"));
  }
  token.number = absl::ToDoubleSeconds(*duration);
  token.number_kind = Kind::kTime;
  return token;
}

size_t SymbolBytes(absl::string_view rest) {
  for (const absl::string_view symbol : {"<=", ">=", "==", "!="}) {
    if (absl::StartsWith(rest, symbol)) return 2;
  }
  return absl::StrContains("<>+-*/()", rest[0]) ? 1 : 0;
}

absl::StatusOr<Token> NextToken(absl::string_view text, size_t at) {
  const absl::string_view rest = text.substr(at);
  if (IsDigit(rest[0])) {
    const size_t bytes =
        Run(rest, [](char c) { return IsDigit(c) || IsLetter(c) || c == '.' || c == '%'; });
    return NumberToken(rest.substr(0, bytes), at);
  }
  if (IsLetter(rest[0])) {
    const size_t bytes = Run(rest, [](char c) { return IsDigit(c) || IsLetter(c); });
    return Token{.kind = TokenKind::kName, .text = rest.substr(0, bytes), .at = at};
  }
  const size_t bytes = SymbolBytes(rest);
  if (bytes > 0) return Token{.kind = TokenKind::kSymbol, .text = rest.substr(0, bytes), .at = at};
  const char* const hint = rest[0] == '='   ? "; did you mean '=='?"
                           : rest[0] == '&' ? "; did you mean 'and'?"
                           : rest[0] == '|' ? "; did you mean 'or'?"
                           : rest[0] == '!' ? "; did you mean 'not'?"
                                            : "";
  return MistakeAt(at, absl::StrCat("a condition has no ", base::Quoted(rest.substr(0, 1)), hint));
}

// Splits `text` into tokens, the last one kEnd. The tokens point into `text`. InvalidArgument: see
// Condition::Parse.
absl::StatusOr<std::vector<Token>> Tokenize(absl::string_view text) {
  if (text.size() > kMaxConditionBytes) {
    return MistakeAt(kMaxConditionBytes,
                     absl::StrCat("longer than ", kMaxConditionBytes, " bytes"));
  }
  std::vector<Token> tokens;
  size_t at = 0;
  while (true) {
    at += Run(text.substr(at), [](char c) { return c == ' ' || c == '\t' || c == '\n'; });
    if (at == text.size()) break;
    absl::StatusOr<Token> token = NextToken(text, at);
    if (!token.ok()) return token.status();
    at += token->text.size();
    tokens.push_back(*token);
  }
  tokens.push_back({.kind = TokenKind::kEnd, .text = "", .at = text.size()});
  return tokens;
}

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

// The common kind of two numbers that are added or compared. People write percent with and without
// the sign.
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
