// SPDX-License-Identifier: Apache-2.0
#include "services/processor/absent_content.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/retry.h"

namespace muster::processor {

AbsentContent::Fate AbsentContent::Judge(uint64_t batch, int dequeue_count,
                                         const absl::Status& why) {
  const absl::Duration now = clock_->Monotonic();
  absl::Duration absent;
  bool is_new;
  {
    base::MutexLock lock(&mu_);
    const auto [since, inserted] = since_.FindOrAdd(batch);
    if (inserted) *since = now;
    is_new = inserted;
    absent = now - *since;
    any_ = true;
  }
  if (is_new) {
    base::Log(base::kWarning, "items wait for their content",
              {{"batch", batch}, {"why", why.ToString()}});
  }
  if (health_ != nullptr) {
    health_->Note(
        absl::StrCat("items of batch ", batch, " wait for their content: ", why.message()));
  }
  if (absent >= kAbsenceGrace) return {.leaves = true};
  return {.pause = base::ExponentialBackoff(std::max(dequeue_count, 1), kMinAbsencePause,
                                            kMaxAbsencePause)};
}

void AbsentContent::NoteRead(uint64_t batch) {
  if (!any_) return;
  bool was_absent;
  {
    base::MutexLock lock(&mu_);
    was_absent = since_.Erase(batch);
    any_ = !since_.empty();
  }
  if (was_absent && health_ != nullptr) health_->Works();
}

}  // namespace muster::processor
