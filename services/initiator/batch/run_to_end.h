// SPDX-License-Identifier: Apache-2.0

// RunToEnd: steps one batch on the calling thread until it ends. BatchScheduler does the same for
// all batches of a server.
#pragma once

#include <stop_token>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "services/initiator/batch/engine.h"

namespace muster::initiator::batch {

// Interrupts the waits of RunToEnd. Thread-safe.
class Wakeup {
 public:
  // The batch has changed: step it now.
  void Notify() ABSL_LOCKS_EXCLUDED(mu_);
  // The run cannot succeed any more: end it with the error `why`.
  void Fail(absl::Status why) ABSL_LOCKS_EXCLUDED(mu_);

  // Waits until Notify, Fail, `stop`, or `deadline` of the monotonic clock. The error of Fail, or
  // Cancelled after `stop`.
  absl::Status Await(base::Clock* clock, absl::Duration deadline, const std::stop_token& stop)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  base::Mutex mu_;
  base::CondVar changed_;
  bool notified_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status failed_ ABSL_GUARDED_BY(mu_);
};

// Steps the batch until StepResult::kDone or kRefused. Between steps it waits for `wakeup`, for
// `loss_check_interval` at most: a queue may have lost items. While the queue is full, it waits
// until the batch's hold() is over. Errors: of a step, except that a
// transient one that follows a completed step is tried again; FailedPrecondition: the batch was
// cancelled; of `wakeup`; Cancelled after `stop`.
absl::StatusOr<StepResult> RunToEnd(BatchEngine* engine, Wakeup* wakeup, base::Clock* clock,
                                    absl::Duration loss_check_interval,
                                    const std::stop_token& stop);

}  // namespace muster::initiator::batch
