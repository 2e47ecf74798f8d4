// What stays when the queues' statistics cannot be had: `on_metric_loss` of the rules.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/scaling/policy/policy.h"

namespace muster::scaling::policy {

struct MetricLossRule {
  int after = 3;             // looks in a row without statistics until the rule holds
  bool keep_current = true;  // keep: current, or max(current, floor)
  int floor = 0;             // keep: floor, or max(current, floor)

  // What stays, within the bounds.
  int Keep(int current, const Bounds& bounds) const;
};

// What one may choose of the deadline policy.

struct DeadlineOptions {
  absl::Duration sla;                 // D: each item is done this long after it was put
  std::optional<absl::Duration> aim;  // sooner, if replicas can do it: they are spent on it
  double patience = 0.5;              // θ: 0 is eager, 1 waits until a whole replica is missing
  double hold = 1;                    // β: idle replicas stay for this many cold starts
  MetricLossRule on_metric_loss;
  // Statistics older than this are as good as none.
  absl::Duration stale_after = absl::Minutes(2);
  double rate_risk = 0.01;  // ε: share of late items where the SLA leaves no slack to queue in
  // Keep idle replicas for what the same hour brought in past weeks. It saves cold starts, hence
  // latency, and costs idle time; no deadline needs it.
  bool forecast = false;
};

// InvalidArgument, naming the option: an SLA or aim that is not above 0 or not finite, a patience
// outside 0 to 1, a negative hold, a risk that is not between 0 and 1.
absl::Status Check(const DeadlineOptions& options);

// DeadlinePolicy: the default policy. It grows a target when its queued work would miss a deadline,
// in one action, as late as patience allows; and lets replicas go when they have idled for as long
// as starting them again would cost. docs/scaling.md has the reasons and an example by hand.

// InvalidArgument where Check refuses the options.
absl::StatusOr<std::unique_ptr<Policy>> MakeDeadlinePolicy(const DeadlineOptions& options);

}  // namespace muster::scaling::policy
