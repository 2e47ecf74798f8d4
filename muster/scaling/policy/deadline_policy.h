// SPDX-License-Identifier: Apache-2.0

// DeadlinePolicy: the default policy, and its options.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/scaling/policy/policy.h"

namespace muster::scaling::policy {

struct MetricLossRule {
  int after = 3;             // the rule applies after this many looks in a row without statistics
  bool keep_current = true;  // keep: current, or max(current, floor)
  int floor = 0;             // keep: floor, or max(current, floor)

  // The number of replicas to keep, within the bounds.
  int Keep(int current, const Bounds& bounds) const;
};

// The options of the deadline policy.

struct DeadlineOptions {
  absl::Duration sla;                 // D: each item is done this long after it was put
  std::optional<absl::Duration> aim;  // an earlier goal, for which the policy spends replicas
  double patience = 0.5;              // θ: 0 is eager, 1 waits until a whole replica is missing
  double hold = 1;                    // β: idle replicas stay for this many cold starts
  MetricLossRule on_metric_loss;
  // Statistics older than this count as missing.
  absl::Duration stale_after = absl::Minutes(2);
  double rate_risk = 0.01;  // ε: share of late items where the SLA leaves no slack to queue in
  // Keeps idle replicas for the work that the same hour brought in past weeks. That saves cold
  // starts, and so latency, and costs idle time; no deadline needs it.
  bool forecast = false;
};

// InvalidArgument, naming the option: an SLA or aim that is not above 0 or not finite, a patience
// outside 0 to 1, a negative hold, a risk that is not between 0 and 1.
absl::Status Check(const DeadlineOptions& options);

// DeadlinePolicy: the default policy. When the queued work of a target would miss a deadline, the
// policy grows the target in one action, as late as patience allows. It lets replicas go when they
// have idled for as long as a new start would cost. docs/scaling.md has the reasons and a worked
// example.

// InvalidArgument: Check refuses the options.
absl::StatusOr<std::unique_ptr<Policy>> MakeDeadlinePolicy(const DeadlineOptions& options);

}  // namespace muster::scaling::policy
