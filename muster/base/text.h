// SPDX-License-Identifier: Apache-2.0

// UTF-8, strictly (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF), and text
// from elsewhere made fit for one line, for a log and for an error.
#pragma once

#include <charconv>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace muster::base {

// How many bytes the first character of `text` has; 0 when `text` is empty or does not start with a
// whole, valid character.
size_t Utf8Prefix(absl::string_view text);

// The same, but 0 also for the control characters: U+0000–001F, U+007F–009F, and the line and
// paragraph separators U+2028 and U+2029.
size_t PrintableUtf8Prefix(absl::string_view text);

// The position of the first byte that begins no valid character, at the speed of reading the text;
// text.size() when there is none. (simdjson only says whether there is one.)
size_t FirstInvalidUtf8(absl::string_view text);

inline bool IsValidUtf8(absl::string_view text) { return FirstInvalidUtf8(text) == text.size(); }

// `text`, which comes from elsewhere, made fit for a result and for one line: each byte that is not
// printable UTF-8 becomes "?", and the text is cut to `max_bytes` between characters.
std::string Printable(absl::string_view text, size_t max_bytes);

// The bytes that pairs of hexadecimal digits stand for, as golden tests write them. (Abseil's own
// function has another name from release to release.)
inline std::string BytesFromHex(absl::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 2 <= hex.size(); i += 2) {
    unsigned char byte = 0;
    std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

// Errors about names say what the caller may have meant, and which names exist.

// The most names that ListNames lists.
inline constexpr int kMaxListedNames = 30;
// The most bytes that Quoted quotes: errors are for people, and end up in logs.
inline constexpr size_t kMaxQuotedBytes = 80;

// The one of `names` that `name` is probably a misspelling of (few letters differ, letter case
// ignored), or "" when none is near.
std::string NearestName(absl::string_view name, absl::Span<const std::string> names);

// "; did you mean 'quantity'?", or "".
std::string DidYouMean(absl::string_view name, absl::Span<const std::string> names);

// "'a', 'b' and 12 more"; each name cut and escaped so that it is fit for a log.
std::string ListNames(absl::Span<const std::string> names);

// Text from elsewhere, fit for an error: in quotes, cut at kMaxQuotedBytes, with everything that is
// not printable UTF-8 escaped. A character is never cut in two.
std::string Quoted(absl::string_view text);

// The whole text as one word of a command that people paste into a shell, in single quotes.
std::string ShellQuoted(absl::string_view text);

}  // namespace muster::base
