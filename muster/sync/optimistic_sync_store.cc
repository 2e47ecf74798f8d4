// SPDX-License-Identifier: Apache-2.0
#include "muster/sync/optimistic_sync_store.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace muster::sync {
namespace {

bool IsKeyChar(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '/' ||
         c == '-';
}

}  // namespace

absl::Status ValidateKey(absl::string_view key) {
  if (key.empty() || key.size() > kMaxKeyBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a sync key has 1 to ", kMaxKeyBytes, " bytes, not ", key.size()));
  }
  if (!std::all_of(key.begin(), key.end(), IsKeyChar)) {
    return absl::InvalidArgumentError(absl::StrCat("sync key '", absl::CHexEscape(key),
                                                   "' holds other than letters, digits and ._/-"));
  }
  return absl::OkStatus();
}

absl::Status ValidateData(absl::string_view key, absl::string_view data) {
  if (data.size() <= kMaxDataBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the data of sync key '", key, "' has ",
                                                 data.size(), " bytes; at most ", kMaxDataBytes,
                                                 " are allowed"));
}

}  // namespace muster::sync
