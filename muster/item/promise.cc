// SPDX-License-Identifier: Apache-2.0
#include "muster/item/promise.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace muster::item {
namespace {

bool IsAtRisk(const ledger::Batch& batch, const PromiseState& promise, double share,
              absl::Time now) {
  const absl::Duration lapse = now - batch.created;
  if (now >= promise.deadline) return true;
  if (share <= 0) return lapse > promise.sla / 2;
  return lapse / share > promise.sla;
}

// More digits would only distract.
absl::Duration Shown(absl::Duration duration) {
  return duration < absl::Seconds(1) ? absl::Ceil(duration, absl::Milliseconds(1))
                                     : absl::Ceil(duration, absl::Milliseconds(100));
}

}  // namespace

std::optional<PromiseState> StateOfPromise(const ledger::Batch& batch, int64_t known,
                                           int64_t counted, absl::Time now) {
  if (!batch.sla.has_value()) return std::nullopt;
  PromiseState promise{*batch.sla, batch.created + *batch.sla};
  const bool is_over =
      batch.state == ledger::BatchState::kComplete || batch.state == ledger::BatchState::kCancelled;
  const absl::Time end = is_over ? batch.completed.value_or(now) : now;
  promise.late_by = std::max(end - promise.deadline, absl::ZeroDuration());
  const double share = known > 0 ? static_cast<double>(counted) / static_cast<double>(known) : 0;
  promise.at_risk = !is_over && IsAtRisk(batch, promise, share, now);
  return promise;
}

std::string ShowLateness(const PromiseState& promise) {
  return absl::StrCat(absl::FormatDuration(Shown(promise.late_by)), " later than promised (",
                      absl::FormatDuration(promise.sla), ")");
}

}  // namespace muster::item
