// The deadline profile: how many replicas the work that is queued needs, each part of it by its own
// deadline. Not depth over a target, and not rate plus drain: the backlog already holds that work.
#pragma once

#include <optional>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/scaling/policy/backlog.h"
#include "muster/scaling/policy/policy.h"

namespace muster::scaling::policy {

// What works, and what could be had.
struct Supply {
  absl::Time now;
  int ready = 0;
  // When each starting replica will be ready: ascending, none before `now`.
  absl::Span<const absl::Time> starting;
  int parked = 0;
  double items_per_second = 0;  // of one replica, above 0
  absl::Duration cold_start = absl::ZeroDuration();
  absl::Duration release = absl::ZeroDuration();  // a parked one's cold start

  int committed() const { return ready + static_cast<int>(starting.size()); }
};

// By when work has to be done.
struct Promise {
  absl::Duration deadline;                             // D, from when it was put
  absl::Duration service_time = absl::ZeroDuration();  // S
  double patience = 0.5;  // θ: 0 is eager, 1 waits until a whole replica is missing

  // What is kept in hand for what is not known: 5 % of D, at least 2 s, at most half of D.
  absl::Duration margin() const;
  // The shortest time that a replica which starts now is meant to work before a deadline; it keeps
  // the answer finite where the deadline cannot be met any more.
  absl::Duration shortest_run() const { return deadline / 10; }
};

struct Profile {
  double missing = 0;                  // x: replicas that would have to start now, as a real number
  int extra = 0;                       // … that shall start now
  bool late_start = false;             // `extra` is there because later would be too late
  int least_ready = 0;                 // of the ready replicas, how many the deadlines need
  bool short_handed = false;           // … all, and more: new ones may come too late to help
  std::optional<absl::Time> deadline;  // the one that decided; the promise itself, without margin
};

// A profile at 0 backlog is all 0. More work never lowers `missing`, `extra` and `least_ready`, and
// a longer deadline never raises them. Once `extra` replicas start, the next profile asks for none.
Profile ProfileDeadlines(const Backlog& backlog, const Supply& supply, const Promise& promise);

// How it ends if `replicas` (at least those of the supply) are committed from now on, the new ones
// ready after a cold start. `needs` is what would do it, whether or not it may be had.
Feasibility Judge(const Backlog& backlog, const Supply& supply, const Promise& promise,
                  int replicas);

}  // namespace muster::scaling::policy
