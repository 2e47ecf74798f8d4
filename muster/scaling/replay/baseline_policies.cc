// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/replay/baseline_policies.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "muster/scaling/policy/standby.h"

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

namespace {

constexpr int kLeastDoubled = 4;
constexpr double kMostDesired = 1e9;

}  // namespace

Hpa::Hpa(const HpaSettings& settings) : settings_(settings) {}

int Hpa::Tick(absl::Time now, int replicas, double metric) {
  if (replicas == 0) return 0;
  const int desired = Desired(replicas, metric);
  const absl::Duration window =
      settings_.behavior.has_value() ? settings_.behavior->down_stabilization : kHpaStabilization;
  const int stabilized = Stabilized(now, desired, window);
  // The window of a behavior block delays only shrinking; growth follows the metric of this
  // instant.
  const int wanted = settings_.behavior.has_value() && desired > replicas ? desired
                     : settings_.behavior.has_value() ? std::min(stabilized, replicas)
                                                      : stabilized;
  const int floor = std::max(1, settings_.min);
  return std::max(floor, std::min({wanted, settings_.max, UpLimit(replicas)}));
}

int Hpa::Desired(int replicas, double metric) const {
  const double ratio = metric / (settings_.target * replicas);
  if (std::fabs(1 - ratio) <= kHpaTolerance) return replicas;
  return static_cast<int>(std::min(std::ceil(metric / settings_.target), kMostDesired));
}

int Hpa::Stabilized(absl::Time now, int desired, absl::Duration window) {
  while (!recommendations_.empty() && recommendations_.front().at < now - window) {
    recommendations_.pop_front();
  }
  recommendations_.push_back({now, desired});
  return std::max_element(recommendations_.begin(), recommendations_.end(),
                          [](const Recommendation& a, const Recommendation& b) {
                            return a.replicas < b.replicas;
                          })
      ->replicas;
}

int Hpa::UpLimit(int replicas) const {
  if (!settings_.behavior.has_value()) return std::max(2 * replicas, kLeastDoubled);
  const int64_t by_percent = replicas + (int64_t{replicas} * settings_.behavior->up_percent) / 100;
  return static_cast<int>(std::max<int64_t>(replicas + settings_.behavior->up_pods, by_percent));
}

namespace {

int64_t LengthOf(const scaling::policy::Observation& observation) {
  int64_t metric = 0;
  for (const scaling::policy::QueueReading& queue : observation.queues) {
    metric += queue.ready + queue.in_flight;
  }
  return metric;
}

// True when `*next` has come; then moves `*next` to the next period.
bool Due(absl::Time now, absl::Duration period, absl::Time* next) {
  if (now < *next) return false;
  while (*next <= now) *next += period;
  return true;
}

}  // namespace

KedaPolicy::KedaPolicy(const KedaSettings& settings,
                       std::unique_ptr<scaling::policy::Policy> adviser)
    : settings_(settings), adviser_(std::move(adviser)), hpa_(settings.hpa) {}

void KedaPolicy::Announce(const scaling::policy::Announcement& announcement) {
  if (adviser_ != nullptr) adviser_->Announce(announcement);
}

std::optional<int64_t> KedaPolicy::Metric(const scaling::policy::Observation& observation) {
  if (adviser_ != nullptr) {
    const scaling::policy::Decision advice =
        scaling::policy::DecideWithStandby(observation, adviser_.get(), &standby_);
    return advice.replicas + advice.standby;
  }
  if (observation.queues.empty()) return std::nullopt;
  return LengthOf(observation);
}

scaling::policy::Decision KedaPolicy::Decide(const scaling::policy::Observation& observation) {
  if (next_poll_ == absl::InfinitePast()) {
    next_poll_ = observation.now + settings_.poll_phase;
    next_tick_ = observation.now + settings_.hpa_phase;
    last_active_ = observation.now;
  }
  int replicas = observation.fleet.committed();
  const std::optional<int64_t> metric = Metric(observation);
  const bool is_active = metric.value_or(0) > 0;
  const bool is_pushed = settings_.push && (is_active || was_active_);
  was_active_ = is_active;
  const bool poll = Due(observation.now, settings_.poll, &next_poll_);
  if (metric.has_value() && settings_.keda && (poll || is_pushed)) {
    replicas = Poll(observation, replicas, *metric);
  }
  if (!settings_.keda) replicas = std::max(1, replicas);
  if (Due(observation.now, kHpaPeriod, &next_tick_) && metric.has_value()) {
    replicas = hpa_.Tick(observation.now, replicas, static_cast<double>(*metric));
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
