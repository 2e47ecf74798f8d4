// SPDX-License-Identifier: Apache-2.0

// Checks for the mistakes that parsers of hand-written files report.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "muster/base/text.h"
#include "tests/fuzz/property.h"

namespace muster::fuzz {

inline bool IsPrintable(absl::string_view text) {
  while (!text.empty()) {
    const size_t bytes = text[0] == '\t' ? 1 : base::PrintableUtf8Prefix(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

// "FILE:LINE:COLUMN: what is wrong"
inline void CheckMistake(absl::string_view mistake, absl::string_view file, int lines) {
  const std::vector<absl::string_view> parts = absl::StrSplit(mistake, absl::MaxSplits(':', 3));
  int line = 0;
  int column = 0;
  Must(parts.size() == 4 && parts[0] == file && absl::SimpleAtoi(parts[1], &line) &&
           absl::SimpleAtoi(parts[2], &column) && parts[3].size() > 1 && parts[3][0] == ' ',
       "a mistake begins with file, line and column");
  Must(line >= 1 && line <= lines + 1 && column >= 1, "the place of a mistake is in the file");
  Must(IsPrintable(mistake), "a mistake can be printed");
}

// Checks the mistakes in a `text` that was refused with `status`.
inline void CheckMistakes(const absl::Status& status, absl::string_view file,
                          absl::string_view text) {
  Must(absl::IsInvalidArgument(status), "a file that is refused is InvalidArgument");
  const int lines = 1 + static_cast<int>(std::count(text.begin(), text.end(), '\n') +
                                         std::count(text.begin(), text.end(), '\r'));
  std::vector<absl::string_view> mistakes = absl::StrSplit(status.message(), '\n');
  int more = 0;
  if (absl::ConsumePrefix(&mistakes.back(), "and ") &&
      absl::ConsumeSuffix(&mistakes.back(), " more")) {
    Must(absl::SimpleAtoi(mistakes.back(), &more), "what is left out is counted");
    mistakes.pop_back();
  }
  for (const absl::string_view mistake : mistakes) CheckMistake(mistake, file, lines);
}

}  // namespace muster::fuzz
