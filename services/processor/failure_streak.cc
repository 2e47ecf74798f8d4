// SPDX-License-Identifier: Apache-2.0
#include "services/processor/failure_streak.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"

namespace muster::processor {

void FailureStreak::Note(const std::string& job, const std::string& item,
                         const handler::Outcome& outcome, handler::HealthIssues* health) {
  using Kind = handler::Outcome::Kind;
  if (outcome.kind == Kind::kRelease) return;
  const bool has_result = outcome.kind == Kind::kOk;
  // Nearly always, and then workers do not wait for one another.
  if (has_result && failures_ == 0) return;
  std::string why;
  {
    base::MutexLock lock(&mu_);
    failures_ = has_result ? 0 : failures_ + 1;
    if (has_result) {
      told_at_ = 0;
      if (health != nullptr) health->EndFailing();
      return;
    }
    if (failures_ < std::max(kFailuresUntilTold, 2 * told_at_)) return;
    told_at_ = failures_;
    why = absl::StrCat("its last ", told_at_, " attempts gave no result; the latest, at item ",
                       item, ": ", outcome.why);
    // Under the lock: an issue that is noted after a result would stay.
    if (health != nullptr) health->NoteFailing(why);
  }
  base::Log(base::kWarning, "a handler fails on each item", {{"job", job}, {"why", why}});
}

}  // namespace muster::processor
