// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/command/failure_log.h"

namespace muster::handler::command {

FailureLog::Failure FailureLog::Note() {
  base::MutexLock lock(&mu_);
  const int64_t failures = ++failures_;
  const bool is_told = TellsLocked(failures);
  if (is_told) told_at_ = failures;
  return {failures, is_told};
}

void FailureLog::NoteAnswer() {
  // Nearly always, and then workers do not wait for one another.
  if (failures_ == 0) return;
  base::MutexLock lock(&mu_);
  failures_ = 0;
  told_at_ = 0;
}

bool FailureLog::TellsNext() const {
  if (failures_ < kFailuresToldEach) return true;
  base::MutexLock lock(&mu_);
  return TellsLocked(failures_ + 1);
}

bool FailureLog::TellsLocked(int64_t failures) const {
  if (failures <= kFailuresToldEach) return true;
  if (health_ != nullptr && health_->is_failing()) return false;
  return failures >= 2 * told_at_;
}

}  // namespace muster::handler::command
