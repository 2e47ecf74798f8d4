#include "muster/scaling/rules/condition_lexer.h"

#include <cmath>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "muster/base/nearest_name.h"
#include "muster/base/quantity.h"
#include "muster/scaling/rules/limits.h"

namespace muster::scaling::rules {
namespace {

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }
bool IsLetter(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)) || c == '_'; }

// How long the run of bytes at the front of `text` is that are all in the class.
template <typename Class>
size_t Run(absl::string_view text, Class is_in) {
  size_t bytes = 0;
  while (bytes < text.size() && is_in(text[bytes])) ++bytes;
  return bytes;
}

// Digits with at most one point between them.
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

}  // namespace

absl::Status MistakeAt(size_t at, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("column ", at + 1, ": ", what));
}

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

}  // namespace muster::scaling::rules
