// SPDX-License-Identifier: Apache-2.0
#include "muster/item/labels.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/base/text.h"

namespace muster::item {
namespace {

bool IsName(absl::string_view name) {
  const auto is_part = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.' ||
           c == '/';
  };
  const auto is_edge = [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); };
  return !name.empty() && name.size() <= kMaxLabelNameBytes && is_edge(name.front()) &&
         is_edge(name.back()) && std::all_of(name.begin(), name.end(), is_part);
}

// A name may be anything, and errors go to terminals.
std::string Quoted(absl::string_view name) {
  return absl::StrCat("'", base::Printable(name, kMaxLabelNameBytes), "'");
}

absl::Status CheckLabel(absl::string_view name, absl::string_view value) {
  if (!IsName(name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        Quoted(name), " is no label: a name has 1 to ", kMaxLabelNameBytes,
        " letters, digits, '-', '_', '.' and '/', and begins and ends with a letter or digit"));
  }
  if (value.size() > kMaxLabelValueBytes || base::Printable(value, kMaxLabelValueBytes) != value) {
    return absl::InvalidArgumentError(absl::StrCat("the value of label ", Quoted(name),
                                                   " must have at most ", kMaxLabelValueBytes,
                                                   " bytes of UTF-8 without control characters"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckLabels(const Labels& labels) {
  if (labels.size() > kMaxLabels) {
    return absl::InvalidArgumentError(
        absl::StrCat(labels.size(), " labels; a batch has at most ", kMaxLabels));
  }
  for (const auto& [name, value] : labels) MUSTER_RETURN_IF_ERROR(CheckLabel(name, value));
  return absl::OkStatus();
}

absl::Status CheckChosenLabels(const Labels& labels) {
  MUSTER_RETURN_IF_ERROR(CheckLabels(labels));
  const auto own = labels.lower_bound(kOwnPrefix);
  if (own == labels.end() || !absl::StartsWith(own->first, kOwnPrefix)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      Quoted(own->first), " is muster's own label: choose a name that does not begin with '",
      kOwnPrefix, "'"));
}

absl::StatusOr<std::pair<std::string, std::string>> ParseLabel(absl::string_view text) {
  const size_t equals = text.find('=');
  if (equals == absl::string_view::npos) {
    return absl::InvalidArgumentError("a label is NAME=VALUE, such as team=billing");
  }
  const absl::string_view name = text.substr(0, equals);
  const absl::string_view value = text.substr(equals + 1);
  MUSTER_RETURN_IF_ERROR(CheckLabel(name, value));
  return std::make_pair(std::string(name), std::string(value));
}

}  // namespace muster::item
