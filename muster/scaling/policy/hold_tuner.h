// HoldTuner: learns how long it pays to keep an idle replica. Keeping all of them for as long as a
// start costs (β·L) never pays more than twice what foresight would; but where work comes so
// rarely, or so patiently, that idle replicas are never missed, each cold start would be paid
// twice.
#pragma once

#include <array>
#include <deque>

#include "absl/time/time.h"

namespace muster::scaling::policy {

// Not thread-safe. It weighs each idle time that ended, once, under several holds: what it would
// have cost to keep the replica, and whether it would have had to start again.
class HoldTuner {
 public:
  HoldTuner();

  // The hold that would have been cheapest lately; at most `longest`, and at least two looks.
  absl::Duration Hold(absl::Duration longest) const;

  // A replica that had idled since `since` has work again. `needed`: without it, another one would
  // have had to start.
  void Reused(absl::Time now, absl::Time since, bool needed, absl::Duration longest);

  // One was let go. Whether it was missed shows later.
  void LetGo(absl::Time since);

  // Some start: those let go last were missed.
  void Started(absl::Time now, int replicas, absl::Duration longest);

  // Those let go long ago were not missed.
  void See(absl::Time now, absl::Duration longest);

  // Time went backwards: forgets whom it let go.
  void StepBack() { let_go_.clear(); }

 private:
  // Holds of 0, 1/8 … 8/8 of the longest, each with what it cost so far, in cold starts.
  static constexpr int kSteps = 8;

  // `idle`: as a share of the longest hold. Missed: let go earlier, it would have had to start.
  void Weigh(double idle, bool missed);

  std::array<double, kSteps + 1> cost_ = {};
  std::deque<absl::Time> let_go_;  // since when each had idled; oldest first
};

}  // namespace muster::scaling::policy
