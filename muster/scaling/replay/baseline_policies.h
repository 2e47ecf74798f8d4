// SPDX-License-Identifier: Apache-2.0

// Baseline policies for comparison: a fixed number, backlog per instance, and KEDA with the
// Kubernetes autoscaler.
#pragma once

#include <deque>
#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "muster/scaling/policy/policy.h"

namespace muster::scaling::replay {

class FixedPolicy final : public scaling::policy::Policy {
 public:
  explicit FixedPolicy(int replicas) : replicas_(replicas) {}

  void Announce(const scaling::policy::Announcement&) override {}
  scaling::policy::Decision Decide(const scaling::policy::Observation& observation) override;

 private:
  const int replicas_;
};

// Backlog per instance, as in target tracking on a queue: each minute, the backlog divided by the
// items that one replica may have waiting. Grows at once; shrinks to the maximum of the last five
// minutes.
class BacklogPolicy final : public scaling::policy::Policy {
 public:
  static constexpr absl::Duration kPeriod = absl::Minutes(1);
  static constexpr absl::Duration kWindow = absl::Minutes(5);

  explicit BacklogPolicy(double items_per_replica) : items_per_replica_(items_per_replica) {}

  void Announce(const scaling::policy::Announcement&) override {}
  scaling::policy::Decision Decide(const scaling::policy::Observation& observation) override;

 private:
  struct Wanted {
    absl::Time at;
    int replicas;
  };

  const double items_per_replica_;
  absl::Time next_ = absl::InfinitePast();
  std::deque<Wanted> window_;
};

// Hpa: the Horizontal Pod Autoscaler of Kubernetes, as it computes replicas from an external metric
// with an average value.

// The `behavior` block: the limits of its speed.
struct HpaBehavior {
  int up_pods = 4;
  int up_percent = 100;                                    // the larger of the two, per kHpaPeriod
  absl::Duration down_stabilization = absl::Seconds(300);  // down: all of them, per kHpaPeriod
};

struct HpaSettings {
  double target = 5;  // of the metric, per replica
  int min = 1;        // it never goes below 1
  int max = 1000;
  std::optional<HpaBehavior> behavior;  // without: doubling, or to 4, at each tick
};

inline constexpr absl::Duration kHpaPeriod = absl::Seconds(15);
inline constexpr absl::Duration kHpaStabilization = absl::Seconds(300);
inline constexpr double kHpaTolerance = 0.1;

// Not thread-safe.
class Hpa {
 public:
  explicit Hpa(const HpaSettings& settings);

  // One tick, each kHpaPeriod. `replicas` counts those that are not ready yet. Returns the number
  // of replicas to have; 0 stays 0.
  int Tick(absl::Time now, int replicas, double metric);

 private:
  struct Recommendation {
    absl::Time at;
    int replicas;
  };

  int Desired(int replicas, double metric) const;
  // The largest recommendation of the window that ends now, this one included.
  int Stabilized(absl::Time now, int desired, absl::Duration window);
  int UpLimit(int replicas) const;

  const HpaSettings settings_;
  std::deque<Recommendation> recommendations_;
};

// KedaPolicy: KEDA starts a target from zero and returns it to zero; in between, the autoscaler
// (Hpa) decides.

struct KedaSettings {
  HpaSettings hpa;
  absl::Duration poll = absl::Seconds(30);
  absl::Duration cooldown = absl::Seconds(300);
  bool push = false;          // KEDA learns at once of work, and of its end
  bool keda = true;           // false: the autoscaler alone, which never goes to zero
  absl::Duration poll_phase;  // from the first decision to the first poll
  absl::Duration hpa_phase;   // … to the autoscaler's first tick
};

// The metric is the length of the queue, read live, in-flight items included; while the queue
// cannot be read, the present replicas stay. With an `adviser` the metric is the number of replicas
// that the adviser wants, as muster's scaling agent answers an autoscaler that asks it.
class KedaPolicy final : public scaling::policy::Policy {
 public:
  explicit KedaPolicy(const KedaSettings& settings,
                      std::unique_ptr<scaling::policy::Policy> adviser = nullptr);

  void Announce(const scaling::policy::Announcement& announcement) override;
  scaling::policy::Decision Decide(const scaling::policy::Observation& observation) override;

 private:
  // nullopt: it cannot be read.
  std::optional<int64_t> Metric(const scaling::policy::Observation& observation);
  // Checks for work and returns the number of replicas to have.
  int Poll(const scaling::policy::Observation& observation, int replicas, int64_t metric);

  const KedaSettings settings_;
  const std::unique_ptr<scaling::policy::Policy> adviser_;  // null: the queue's length counts
  int standby_ = 0;                                         // as the adviser has wanted it
  Hpa hpa_;
  bool was_active_ = false;  // at the last look
  absl::Time next_poll_ = absl::InfinitePast();
  absl::Time next_tick_;
  absl::Time last_active_;
};

}  // namespace muster::scaling::replay
