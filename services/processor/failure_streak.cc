// SPDX-License-Identifier: Apache-2.0
#include "services/processor/failure_streak.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"

namespace muster::processor {

void FailureStreak::Note(const std::string& job, const std::string& item,
                         const handler::Outcome& outcome, absl::Duration now,
                         handler::HealthTroubles* health) {
  using Kind = handler::Outcome::Kind;
  if (outcome.kind == Kind::kRelease) return;
  const bool has_result = outcome.kind == Kind::kOk;
  // Nearly always, and then workers do not wait for one another.
  if (has_result && !runs_) return;
  const bool is_deferred = outcome.kind == Kind::kDefer;
  std::string why;
  {
    base::MutexLock lock(&mu_);
    runs_ = !has_result;
    if (has_result) {
      failures_ = deferrals_ = {};
      if (health != nullptr) health->EndFailing();
      return;
    }
    Count& count = is_deferred ? deferrals_ : failures_;
    if (++count.attempts == 1) count.since = now;
    if (count.attempts < std::max(kFailuresUntilTold, 2 * count.told_at)) return;
    if (is_deferred && now - count.since < kDeferralsUntilTold) return;
    count.told_at = count.attempts;
    const std::string what =
        is_deferred
            ? absl::StrCat("it put off ", count.attempts, " attempts, with no result between them")
            : absl::StrCat("its last ", count.attempts, " attempts gave no result");
    why = absl::StrCat(what, "; the latest, at item ", item, ": ", outcome.why);
    // Under the lock: a trouble that is noted after a result would stay.
    if (health != nullptr) health->NoteFailing(why);
  }
  base::Log(base::kWarning,
            is_deferred ? "a handler puts off each item" : "a handler fails on each item",
            {{"job", job}, {"why", why}});
}

}  // namespace muster::processor
