// SPDX-License-Identifier: Apache-2.0

// Results of calls of the store for several messages: one status per message, besides the status of
// the call as a whole, which is OK also when single messages failed.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status.h"

namespace muster::listener {

// The lease was lost (FailedPrecondition), or the message is gone (NotFound: expired, cleared, or
// deleted by the next holder). Both are normal.
inline bool IsStale(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) || absl::IsNotFound(status);
}

// Returns `results`, or Internal when their number differs from `asked`.
template <typename Result>
absl::StatusOr<std::vector<Result>> CheckSize(absl::StatusOr<std::vector<Result>> results,
                                              size_t asked) {
  if (!results.ok() || results->size() == asked) return results;
  return absl::InternalError(
      absl::StrCat("the store gave ", results->size(), " answers about ", asked, " messages"));
}

// Returns the error to report of a call: its own, or that of the first message with an error that
// is not merely stale.
template <typename Result>
absl::Status FirstError(const absl::StatusOr<std::vector<Result>>& results) {
  if (!results.ok()) return results.status();
  for (const Result& result : *results) {
    const absl::Status& status = base::StatusOf(result);
    if (!status.ok() && !IsStale(status)) return status;
  }
  return absl::OkStatus();
}

}  // namespace muster::listener
