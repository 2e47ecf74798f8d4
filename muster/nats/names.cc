// SPDX-License-Identifier: Apache-2.0
#include "muster/nats/names.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace muster::nats {

namespace {

constexpr size_t kMaxBucketBytes = 128;

bool IsBucketChar(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
}

}  // namespace

absl::Status ValidateBucket(absl::string_view bucket) {
  if (!bucket.empty() && bucket.size() <= kMaxBucketBytes &&
      std::all_of(bucket.begin(), bucket.end(), IsBucketChar)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("bucket '", absl::CHexEscape(bucket),
                                                 "' is not 1 to ", kMaxBucketBytes,
                                                 " letters, digits, _ and -"));
}

std::string SubjectToken(absl::string_view text) {
  if (text.empty()) return "=";
  std::string token;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || c == '_' || c == '-') {
      token += c;
    } else {
      absl::StrAppendFormat(&token, "=%02X", byte);
    }
  }
  return token;
}

absl::Status ValidateSubject(absl::string_view subject) {
  const auto is_word = [](unsigned char c) { return c > ' ' && c != 0x7f; };
  if (!subject.empty() && std::all_of(subject.begin(), subject.end(), is_word)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", absl::CHexEscape(subject), "' is no subject of NATS"));
}

}  // namespace muster::nats
