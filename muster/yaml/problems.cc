// SPDX-License-Identifier: Apache-2.0
#include "muster/yaml/problems.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "muster/base/text.h"

namespace muster::yaml {

void Problems::Add(Place place, absl::string_view message) {
  problems_.push_back({place, base::Printable(message, kMaxProblemBytes)});
}

std::vector<Problem> Problems::InOrder() const {
  std::vector<Problem> sorted = problems_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.place.line, a.place.column) < std::tie(b.place.line, b.place.column);
  });
  return sorted;
}

absl::Status Problems::ToStatus() const {
  if (problems_.empty()) return absl::OkStatus();
  const std::vector<Problem> sorted = InOrder();
  const size_t shown = std::min<size_t>(sorted.size(), kMaxProblems);
  std::string text;
  for (size_t i = 0; i < shown; ++i) {
    absl::StrAppend(&text, i > 0 ? "\n" : "", file_, file_.empty() ? "" : ":", sorted[i].place.line,
                    ":", sorted[i].place.column, ": ", sorted[i].message);
  }
  if (shown < sorted.size()) absl::StrAppend(&text, "\nand ", sorted.size() - shown, " more");
  return absl::InvalidArgumentError(text);
}

}  // namespace muster::yaml
