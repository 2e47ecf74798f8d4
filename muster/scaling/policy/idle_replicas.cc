// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/policy/idle_replicas.h"

#include <algorithm>
#include <vector>

namespace muster::scaling::policy {

void IdleReplicas::See(const Observation& observation) {
  longest_ = cold_starts_ * observation.estimates.cold_start;
  // Tune once for each instant: after a decision is carried out, the same instant must not yield
  // another decision.
  if (observation.now != now_) {
    tuner_.See(observation.now, longest_);
    chosen_ = tuner_.Hold(longest_);
  }
  now_ = observation.now;
  hold_.See(now_, observation.fleet, chosen_);
}

void IdleReplicas::StepBack(absl::Time now) {
  hold_.Reset();
  tuner_.StepBack();
  weighed_ = now;
}

void IdleReplicas::WorkCame(const Fleet& fleet, absl::FunctionRef<int(int)> missed_without) {
  std::vector<absl::Time> since;  // of idle times that end now; the latest last
  for (absl::Time at : fleet.idle_since) {
    if (at > weighed_ && at <= now_) since.push_back(at);
  }
  weighed_ = now_;
  if (since.empty()) return;
  std::sort(since.begin(), since.end());
  const int idle = static_cast<int>(since.size());
  const int missed = missed_without(idle);
  for (int i = 0; i < idle; ++i) tuner_.Reused(now_, since[i], idle - i <= missed, longest_);
}

void IdleReplicas::Decided(const Fleet& fleet, int replicas) {
  const int more = replicas - fleet.committed();
  if (more > 0) tuner_.Started(now_, more, longest_);
  const int fewer = std::min(-more, static_cast<int>(fleet.idle_since.size()));
  for (int i = 0; i < fewer; ++i) tuner_.LetGo(std::min(now_, fleet.idle_since[i]));
}

}  // namespace muster::scaling::policy
