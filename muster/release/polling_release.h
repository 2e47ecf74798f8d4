// SPDX-License-Identifier: Apache-2.0

// PollingRelease: waits until a flag is set, by asking for it again and again. Simple,
// and no late process misses it; but each waiting thread costs a read every interval, and
// goes up to an interval late. CombinedRelease is the one to use.
#pragma once

#include <stop_token>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/release/global_flag.h"

namespace muster::release {

inline constexpr absl::Duration kPollingInterval = absl::Milliseconds(2500);

// Thread-safe.
class PollingRelease {
 public:
  // `flag` and `clock` are not owned.
  PollingRelease(GlobalFlag* flag, absl::Duration interval, base::Clock* clock)
      : flag_(flag), interval_(interval), clock_(clock) {}

  // OK: the flag was set. Cancelled: `stop` was requested before. Otherwise the flag's error.
  absl::Status Wait(const std::stop_token& stop);

 private:
  GlobalFlag* const flag_;  // not owned
  const absl::Duration interval_;
  base::Clock* const clock_;  // not owned
};

}  // namespace muster::release
