// Quote: what would become of work, if it were put now. The policy that would decide for it decides
// here too, on the same figures; only that nothing is carried out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/scaling/policy/deadline_policy.h"
#include "muster/scaling/policy/policy.h"

namespace muster::scaling::policy {

// More is no work that anybody has.
inline constexpr int64_t kMaxQuotedItems = 10'000'000'000;

// Work that is not there yet.
struct QuotedWork {
  int64_t items = 0;                            // 1 to kMaxQuotedItems
  std::optional<absl::Duration> sla = {};       // in place of the target's own
  std::optional<double> items_per_second = {};  // of one replica, in place of what is known
};

struct Quotation {
  // The work, served after all that waits already, is done by its deadline.
  bool feasible = false;
  absl::Time finish;                              // InfiniteFuture: never
  absl::Time deadline;                            // now + the promise
  absl::Duration late_by = absl::ZeroDuration();  // zero where it is feasible, above 0 where not
  int replicas_now = 0;                           // ready and starting
  int replicas = 0;                               // … that would work on it
  int needs = 0;  // … that would make it feasible, whatever the bounds say; 0: no number would
  int max = 0;    // the most that the bounds allow
  // What the work adds to the replicas' time: its own, and a cold start of each replica that would
  // start for it. What they idle afterwards is not in it.
  double replica_seconds = 0;
  // The shortest promise that is kept with what the bounds allow; nullopt: none is.
  std::optional<absl::Duration> shortest_sla;
  std::string explanation;  // sentences, for people
};

// Reckons with a fluid that the replicas drain in order, as the policy does. Patience counts as
// over: it only delays what it decides. Replicas above the most that is allowed count as gone.
// Readings of the queues that are stale count as none, and none as nothing that waits; the
// explanation says so.
//
// More items never make the work feasible, and never shorten `needs` and `shortest_sla`; they can
// make it end sooner, because more replicas start for them. A longer promise is never less
// feasible, if the shorter one leaves a new replica a tenth of itself to work in: the policy sizes
// for no less, and a promise that is hardly longer than a cold start is met or not by rounding.
//
// InvalidArgument: items outside of the range above; a promise that is not above 0 or not finite; a
// rate that is not above 0; options that Check refuses. Unavailable: how fast a replica works is
// not known, and `work` does not say it.
absl::StatusOr<Quotation> Quote(const QuotedWork& work, const Observation& seen,
                                const DeadlineOptions& options);

}  // namespace muster::scaling::policy
