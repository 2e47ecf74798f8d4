// The policies without a mechanism: a fixed number, and the backlog by a share for each replica.
#pragma once

#include <deque>

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

// Backlog per instance, as target tracking on a queue does it: each minute, the backlog by what one
// replica may have before it. Grows at once; shrinks to the most of the last five minutes.
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

}  // namespace muster::scaling::replay
