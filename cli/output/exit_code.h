// SPDX-License-Identifier: Apache-2.0

// ExitCode: the exit codes of `muster`.
#pragma once

#include "absl/status/status.h"
#include "muster/base/status.h"

namespace muster::cli {

enum ExitCode : int {
  kOk = 0,
  kError = 1,
  kUsage = 2,
  kPartial = 3,         // the batch is done, but transactions were rejected or dead-lettered
  kDeadlineMissed = 4,  // done, or it would be, later than promised
  kUnreachable = 5,     // what the command needs is busy, full or does not answer; try again later
  kDamaged = 6,         // stored data are damaged: muster check --repair
  kTimedOut = 124,      // the batch or the call goes on; the command's time is over
  kInterrupted = 130,   // Ctrl-C or SIGTERM
};

// The code for a command that ended with `status`.
inline ExitCode ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return kOk;
  if (absl::IsCancelled(status)) return kInterrupted;
  if (absl::IsDataLoss(status)) return kDamaged;
  if (base::IsBusy(status) || absl::IsUnavailable(status) || absl::IsResourceExhausted(status) ||
      absl::IsDeadlineExceeded(status)) {
    return kUnreachable;
  }
  return kError;
}

}  // namespace muster::cli
