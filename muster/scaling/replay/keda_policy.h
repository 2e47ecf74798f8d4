// KedaPolicy: KEDA, which wakes a target from zero and puts it back, with the autoscaler (hpa.h)
// between.
#pragma once

#include "muster/scaling/policy/policy.h"
#include "muster/scaling/replay/hpa.h"

namespace muster::scaling::replay {

struct KedaSettings {
  HpaSettings hpa;
  absl::Duration poll = absl::Seconds(30);
  absl::Duration cooldown = absl::Seconds(300);
  bool push = false;          // it hears of work at once, instead of polling
  bool keda = true;           // without: the autoscaler alone, which never goes to zero
  absl::Duration poll_phase;  // from the first decision to the first poll
  absl::Duration hpa_phase;   // … to the autoscaler's first tick
};

// Reads the queue live, in-flight items included. Keeps what there is when nothing can be read.
class KedaPolicy final : public scaling::policy::Policy {
 public:
  explicit KedaPolicy(const KedaSettings& settings);

  void Announce(const scaling::policy::Announcement&) override {}
  scaling::policy::Decision Decide(const scaling::policy::Observation& observation) override;

 private:
  // Answers how many replicas there shall be after a look whether there is work.
  int Poll(const scaling::policy::Observation& observation, int replicas, int64_t metric);

  const KedaSettings settings_;
  Hpa hpa_;
  absl::Time next_poll_ = absl::InfinitePast();
  absl::Time next_tick_;
  absl::Time last_active_;
};

}  // namespace muster::scaling::replay
