// SPDX-License-Identifier: Apache-2.0
#include "muster/release/polling_release.h"

#include "muster/base/status.h"

namespace muster::release {

absl::Status PollingRelease::Wait(const std::stop_token& stop) {
  for (;;) {
    MUSTER_ASSIGN_OR_RETURN(const bool is_set, flag_->Get());
    if (is_set) return absl::OkStatus();
    if (!base::SleepUnlessStopped(clock_, interval_, stop)) {
      return absl::CancelledError("the wait for the flag was stopped");
    }
  }
}

}  // namespace muster::release
