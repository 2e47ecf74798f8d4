#include "muster/scaling/replay/keda_policy.h"

#include <algorithm>

namespace muster::scaling::replay {
namespace {

int64_t MetricOf(const scaling::policy::Observation& observation) {
  int64_t metric = 0;
  for (const scaling::policy::QueueReading& queue : observation.queues) {
    metric += queue.ready + queue.in_flight;
  }
  return metric;
}

// True when `*next` has come; it is then moved on.
bool Due(absl::Time now, absl::Duration period, absl::Time* next) {
  if (now < *next) return false;
  while (*next <= now) *next += period;
  return true;
}

}  // namespace

KedaPolicy::KedaPolicy(const KedaSettings& settings) : settings_(settings), hpa_(settings.hpa) {}

scaling::policy::Decision KedaPolicy::Decide(const scaling::policy::Observation& observation) {
  if (next_poll_ == absl::InfinitePast()) {
    next_poll_ = observation.now + settings_.poll_phase;
    next_tick_ = observation.now + settings_.hpa_phase;
    last_active_ = observation.now;
  }
  int replicas = observation.fleet.committed();
  const bool readable = !observation.queues.empty();
  const int64_t metric = MetricOf(observation);
  const bool poll = Due(observation.now, settings_.poll, &next_poll_);
  if (readable && settings_.keda && (poll || (settings_.push && metric > 0))) {
    replicas = Poll(observation, replicas, metric);
  }
  if (!settings_.keda) replicas = std::max(1, replicas);
  if (Due(observation.now, kHpaPeriod, &next_tick_) && readable) {
    replicas = hpa_.Tick(observation.now, replicas, static_cast<double>(metric));
  }
  scaling::policy::Decision decision;
  decision.replicas = decision.wanted = replicas;
  decision.tasks = observation.fleet.tasks;
  decision.binding = scaling::policy::Binding::kPolicy;
  return decision;
}

int KedaPolicy::Poll(const scaling::policy::Observation& observation, int replicas,
                     int64_t metric) {
  const int min = observation.bounds.min;
  if (metric > 0) {
    last_active_ = observation.now;
    return replicas == 0 ? std::max(1, min) : replicas;
  }
  const bool cooled = observation.now - last_active_ > settings_.cooldown;
  return cooled && min == 0 ? 0 : replicas;
}

}  // namespace muster::scaling::replay
