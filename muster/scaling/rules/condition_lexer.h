// Cuts the text of a condition into tokens.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/scaling/rules/condition.h"

namespace muster::scaling::rules {

enum class TokenKind { kNumber, kName, kSymbol, kEnd };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  absl::string_view text;  // of the condition; words such as `and` are names
  size_t at = 0;           // from 0
  double number = 0;       // of kNumber, with its kind
  Kind number_kind = Kind::kPlain;
};

// The tokens, the last one kEnd. They point into `text`. InvalidArgument as Condition::Parse.
absl::StatusOr<std::vector<Token>> Tokenize(absl::string_view text);

// InvalidArgument "column C: WHAT" for a mistake at the byte `at`.
absl::Status MistakeAt(size_t at, absl::string_view what);

}  // namespace muster::scaling::rules
