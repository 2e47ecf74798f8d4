// SPDX-License-Identifier: Apache-2.0

// Quote: predicts the outcome of work that would be put now. The same policy decides on the same
// figures as in the service, but nothing is carried out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/scaling/policy/deadline_policy.h"
#include "muster/scaling/policy/policy.h"

namespace muster::scaling::policy {

// More than any real work.
inline constexpr int64_t kMaxQuotedItems = 10'000'000'000;

// The work to quote; it does not exist yet.
struct QuotedWork {
  int64_t items = 0;                            // 1 to kMaxQuotedItems
  std::optional<absl::Duration> sla = {};       // in place of the target's own
  std::optional<double> items_per_second = {};  // of one replica, in place of the learned speed
};

struct Quotation {
  // Whether the work, served after all waiting work, is done by its deadline.
  bool feasible = false;
  absl::Time finish;                              // InfiniteFuture: never
  absl::Time deadline;                            // now + the promise
  absl::Duration late_by = absl::ZeroDuration();  // zero where it is feasible, above 0 where not
  int replicas_now = 0;                           // ready and starting
  int replicas = 0;                               // … that would work on it
  int needs = 0;  // … that would make it feasible, also beyond the bounds; 0: no number would
  int max = 0;    // the most that the bounds allow
  // The replica time that the work adds: its own time and the cold start of each replica that would
  // start for it, without later idle time.
  double replica_seconds = 0;
  // The shortest promise that can be kept within the bounds; nullopt: none can.
  std::optional<absl::Duration> shortest_sla;
  std::string explanation;  // sentences, for people
};

// Treats work as a fluid that the replicas drain in order, as the policy does. Ignores patience,
// which only delays decisions. Replicas above the maximum count as gone. Stale queue readings count
// as missing, and missing readings as no waiting work; the explanation says so.
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
