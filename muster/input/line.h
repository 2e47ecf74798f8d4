// What a line is, in every format.
#pragma once

#include "absl/strings/string_view.h"

namespace muster::input {

// `line` without "\n" or "\r\n" at its end.
inline absl::string_view WithoutLineEnd(absl::string_view line) {
  if (!line.empty() && line.back() == '\n') line.remove_suffix(1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

// An empty line is no record.
inline bool IsEmptyLine(absl::string_view line) {
  return line.size() <= 2 && WithoutLineEnd(line).empty();
}

}  // namespace muster::input
