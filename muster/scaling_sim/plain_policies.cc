#include "muster/scaling_sim/plain_policies.h"

#include <algorithm>
#include <cmath>

namespace muster::scaling_sim {
namespace {

scaling::Decision PlainDecision(const scaling::Observation& observation, int wanted) {
  scaling::Decision decision;
  decision.wanted = wanted;
  decision.replicas = std::clamp(wanted, observation.bounds.min, observation.bounds.max);
  decision.tasks = observation.fleet.tasks;
  decision.binding = scaling::Binding::kPolicy;
  return decision;
}

}  // namespace

scaling::Decision FixedPolicy::Decide(const scaling::Observation& observation) {
  return PlainDecision(observation, replicas_);
}

scaling::Decision BacklogPolicy::Decide(const scaling::Observation& observation) {
  if (observation.now < next_ || observation.queues.empty()) {
    return PlainDecision(observation, observation.fleet.committed());
  }
  next_ = observation.now + kPeriod;
  double backlog = 0;
  for (const scaling::QueueReading& queue : observation.queues) {
    backlog += static_cast<double>(queue.ready + queue.in_flight);
  }
  const double share =
      std::min<double>(std::ceil(backlog / items_per_replica_), observation.bounds.max);
  window_.push_back({observation.now, static_cast<int>(share)});
  while (window_.front().at < observation.now - kWindow) window_.pop_front();
  int wanted = 0;
  for (const Wanted& recent : window_) wanted = std::max(wanted, recent.replicas);
  return PlainDecision(observation, wanted);
}

}  // namespace muster::scaling_sim
