// SPDX-License-Identifier: Apache-2.0
#include "muster/base/status.h"

#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"

namespace muster::base {

namespace {

constexpr char kBusy[] = "muster/busy";

}  // namespace

absl::Status Busy(absl::string_view message) {
  absl::Status status = absl::FailedPreconditionError(message);
  status.SetPayload(kBusy, absl::Cord());
  return status;
}

bool IsBusy(const absl::Status& status) { return status.GetPayload(kBusy).has_value(); }

namespace {

constexpr absl::string_view kMismatch = "muster/mismatch";

}  // namespace

// A line for each member, escaped so that it is one.
absl::Status WithMismatch(absl::Status status, const Mismatch& mismatch) {
  const std::string text =
      absl::StrCat(absl::CEscape(mismatch.what), "\n", absl::CEscape(mismatch.field), "\n",
                   absl::CEscape(mismatch.is), "\n", absl::CEscape(mismatch.wanted));
  status.SetPayload(kMismatch, absl::Cord(absl::string_view(text)));
  return status;
}

std::optional<Mismatch> MismatchOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kMismatch);
  if (!payload.has_value()) return std::nullopt;
  const std::vector<std::string> lines = absl::StrSplit(std::string(*payload), '\n');
  Mismatch mismatch;
  if (lines.size() != 4 || !absl::CUnescape(lines[0], &mismatch.what) ||
      !absl::CUnescape(lines[1], &mismatch.field) || !absl::CUnescape(lines[2], &mismatch.is) ||
      !absl::CUnescape(lines[3], &mismatch.wanted)) {
    return std::nullopt;
  }
  return mismatch;
}

}  // namespace muster::base
