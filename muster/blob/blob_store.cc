// SPDX-License-Identifier: Apache-2.0
#include "muster/blob/blob_store.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace muster::blob {
namespace {

bool IsNameChar(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
}

}  // namespace

absl::Status ValidateBlobName(absl::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a blob name has 1 to ", kMaxNameBytes, " bytes, not ", name.size()));
  }
  if (name[0] == '.' || !std::all_of(name.begin(), name.end(), IsNameChar)) {
    return absl::InvalidArgumentError(
        absl::StrCat("blob name '", absl::CHexEscape(name),
                     "' starts with a dot, or holds other than letters, digits and ._-"));
  }
  return absl::OkStatus();
}

absl::Status ValidateBlobSize(absl::string_view name, size_t size) {
  if (size <= kMaxBlobBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("blob '", name, "' has ", size, " bytes; at most ",
                                                 kMaxBlobBytes, " are allowed"));
}

}  // namespace muster::blob
