// What a scaling policy wants, and why.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/time/time.h"

namespace muster::scaling::policy {

// What made the number what it is: the one thing that, had it been otherwise, would have changed
// it.
enum class Binding {
  kNothing,     // what there is fits
  kDeadline,    // a deadline needs more
  kLateStart,   // patience is over: later, one more replica could not help any more
  kRate,        // arrivals against service time: there is no slack to queue in (Erlang C)
  kMin,         // the rules' lower bound
  kMax,         // the rules' upper bound
  kHold,        // idle replicas are kept for as long as starting them again would cost
  kForecast,    // idle replicas are kept for what comes at this hour
  kIdle,        // replicas are let go
  kThreads,     // more tasks in the replicas there are, before more replicas
  kThrottled,   // the store throttles: more replicas would make it worse
  kNoMetrics,   // nothing is known: what there is stays
  kReaction,    // a rule of the user's
  kStabilizer,  // a rule's cool-down
  kOverride,    // somebody said so
  kPolicy,      // another policy's own reason
};

std::string_view BindingName(Binding binding);

// Whether all known work can be done by its deadlines, and if not, what would make it so.
struct Feasibility {
  bool feasible = true;
  int needs = 0;  // replicas that would do it, whatever the bounds say; 0: no number would
  absl::Duration late_by = absl::ZeroDuration();  // of the worst item, with what is decided
  // When all work that is known now is done, with what is decided. InfiniteFuture: never.
  absl::Time finish = absl::InfinitePast();
};

struct Decision {
  int replicas = 0;  // ready and starting together, as they should be from now on
  int tasks = 1;     // dequeue tasks of each
  int standby = 0;   // parked ones beside them
  Binding binding = Binding::kNothing;
  // What the work alone asks for, before any bound, hold or rule; the candidate that lost.
  int wanted = 0;
  // The deadline that decided, if one did.
  std::optional<absl::Time> deadline;
  Feasibility feasibility;
};

}  // namespace muster::scaling::policy
