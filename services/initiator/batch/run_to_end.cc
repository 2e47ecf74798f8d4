// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/batch/run_to_end.h"

#include <algorithm>
#include <utility>

#include "muster/base/log.h"
#include "muster/base/retry.h"
#include "muster/base/status.h"

namespace muster::initiator::batch {

void Wakeup::Notify() {
  base::MutexLock lock(&mu_);
  notified_ = true;
  changed_.NotifyAll();
}

void Wakeup::Fail(absl::Status why) {
  base::MutexLock lock(&mu_);
  failed_.Update(std::move(why));
  changed_.NotifyAll();
}

absl::Status Wakeup::Await(base::Clock* clock, absl::Duration deadline,
                           const std::stop_token& stop) {
  const std::stop_callback wake(stop, base::WakeAll{&mu_, &changed_});
  base::MutexLock lock(&mu_);
  while (!notified_ && failed_.ok() && !stop.stop_requested()) {
    if (clock->WaitUntil(&changed_, &mu_, deadline)) break;
  }
  notified_ = false;
  if (!failed_.ok()) return failed_;
  return stop.stop_requested() ? absl::CancelledError("stopped") : absl::OkStatus();
}

absl::StatusOr<StepResult> RunToEnd(BatchEngine* engine, Wakeup* wakeup, base::Clock* clock,
                                    absl::Duration loss_check_interval,
                                    const std::stop_token& stop) {
  bool has_stepped = false;
  for (;;) {
    absl::Duration wait = loss_check_interval;
    const absl::StatusOr<StepResult> step = engine->Step(stop);
    if (step.ok()) {
      if (*step == StepResult::kDone || *step == StepResult::kRefused) return step;
      if (*step == StepResult::kCancelled || *step == StepResult::kDisowned) {
        return absl::FailedPreconditionError(
            "the batch was cancelled: the same command begins another one");
      }
      has_stepped = true;
      if (*step == StepResult::kHeldBack) {
        wait = std::min(wait, engine->hold().again_at - clock->Monotonic());
      }
    } else {
      if (!has_stepped || !base::IsTransient(step.status())) return step.status();
      base::Log(base::kWarning, "a batch cannot go on for now",
                {{"why", step.status().ToString()}});
    }
    MUSTER_RETURN_IF_ERROR(wakeup->Await(clock, clock->Monotonic() + wait, stop));
  }
}

}  // namespace muster::initiator::batch
