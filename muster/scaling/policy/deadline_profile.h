// SPDX-License-Identifier: Apache-2.0

// The deadline profile: the number of replicas that the queued work needs, each part of it by its
// own deadline. The formula is neither depth divided by a target nor arrival rate plus drain,
// because the backlog already contains the arrivals.
#pragma once

#include <optional>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/scaling/policy/backlog.h"
#include "muster/scaling/policy/policy.h"

namespace muster::scaling::policy {

// The replicas that exist, and how fast more can be had.
struct Supply {
  absl::Time now;
  int ready = 0;
  // When each starting replica will be ready: ascending, none before `now`.
  absl::Span<const absl::Time> starting;
  int parked = 0;
  double items_per_second = 0;  // of one replica, above 0
  absl::Duration cold_start = absl::ZeroDuration();
  absl::Duration release = absl::ZeroDuration();  // the cold start of a parked replica

  int committed() const { return ready + static_cast<int>(starting.size()); }
};

// The deadline of work, and how to meet it.
struct Promise {
  absl::Duration deadline;                             // D, from when it was put
  absl::Duration service_time = absl::ZeroDuration();  // S
  double patience = 0.5;  // θ: 0 is eager, 1 waits until a whole replica is missing

  // The safety margin for unknown effects: 5 % of D, at least 2 s, at most half of D.
  absl::Duration margin() const;
  // The shortest working time before a deadline that the profile assumes for a replica which starts
  // now; it keeps the answer finite where the deadline cannot be met any more.
  absl::Duration shortest_run() const { return deadline / 10; }
};

struct Profile {
  double missing = 0;  // x: replicas that would have to start now, as a real number
  int extra = 0;       // replicas that shall start now
  bool late_start =
      false;  // `extra` is above what patience asks for, because a later start would be too late
  int least_ready = 0;  // of the ready replicas, how many the deadlines need
  bool short_handed =
      false;  // the deadlines need more than the ready replicas; new ones may come too late to help
  std::optional<absl::Time>
      deadline;  // the deadline that determined the result: the promise itself, without margin
};

// Without backlog all numbers are 0. More work never lowers `missing`, `extra` and `least_ready`,
// and a longer deadline never raises them. Once `extra` replicas start, the next profile asks for
// none.
Profile ProfileDeadlines(const Backlog& backlog, const Supply& supply, const Promise& promise);

// The outcome if `replicas` (at least those of the supply) are committed from now on, with new ones
// ready after a cold start. `needs` ignores all bounds.
Feasibility Judge(const Backlog& backlog, const Supply& supply, const Promise& promise,
                  int replicas);

}  // namespace muster::scaling::policy
