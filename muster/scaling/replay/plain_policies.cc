#include "muster/scaling/replay/plain_policies.h"

#include <algorithm>
#include <cmath>

namespace muster::scaling::replay {
namespace {

scaling::policy::Decision PlainDecision(const scaling::policy::Observation& observation,
                                        int wanted) {
  scaling::policy::Decision decision;
  decision.wanted = wanted;
  decision.replicas = std::clamp(wanted, observation.bounds.min, observation.bounds.max);
  decision.tasks = observation.fleet.tasks;
  decision.binding = scaling::policy::Binding::kPolicy;
  return decision;
}

}  // namespace

scaling::policy::Decision FixedPolicy::Decide(const scaling::policy::Observation& observation) {
  return PlainDecision(observation, replicas_);
}

scaling::policy::Decision BacklogPolicy::Decide(const scaling::policy::Observation& observation) {
  if (observation.now < next_ || observation.queues.empty()) {
    return PlainDecision(observation, observation.fleet.committed());
  }
  next_ = observation.now + kPeriod;
  double backlog = 0;
  for (const scaling::policy::QueueReading& queue : observation.queues) {
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

}  // namespace muster::scaling::replay
