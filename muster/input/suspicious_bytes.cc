// SPDX-License-Identifier: Apache-2.0
#include "muster/input/suspicious_bytes.h"

#include "absl/strings/str_cat.h"

namespace muster::input {

bool IsSuspicious(absl::string_view slice) {
  if (slice.find('\0') != absl::string_view::npos) return true;
  for (size_t cr = slice.find('\r'); cr != absl::string_view::npos; cr = slice.find('\r', cr + 1)) {
    if (cr + 1 < slice.size() && slice[cr + 1] != '\n') return true;
  }
  return false;
}

std::string SuspiciousByte(absl::string_view record, size_t cr, absl::string_view what) {
  const size_t nul = record.find('\0');
  if (nul != absl::string_view::npos) {
    return absl::StrCat("a NUL byte: byte ", nul + 1, " of the ", what);
  }
  if (cr == absl::string_view::npos) return "";
  return absl::StrCat("a CR that no LF follows: byte ", cr + 1, " of the ", what,
                      "; lines end with LF or CRLF");
}

}  // namespace muster::input
