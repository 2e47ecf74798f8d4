// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/policy/deadline_policy.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "muster/base/check.h"
#include "muster/scaling/policy/deadline_profile.h"
#include "muster/scaling/policy/forecast.h"
#include "muster/scaling/policy/idle_replicas.h"
#include "muster/scaling/policy/sizing.h"
#include "muster/scaling/policy/workload.h"

namespace muster::scaling::policy {

int MetricLossRule::Keep(int current, const Bounds& bounds) const {
  const int kept = std::max(keep_current ? current : 0, floor);
  return std::max(bounds.min, std::min(kept, bounds.max));
}

absl::Status Check(const DeadlineOptions& options) {
  const auto finite = [](absl::Duration duration) {
    return duration > absl::ZeroDuration() && duration < absl::InfiniteDuration();
  };
  if (!finite(options.sla)) return absl::InvalidArgumentError("sla: must be above 0");
  if (options.aim.has_value() && !finite(*options.aim)) {
    return absl::InvalidArgumentError("aim: must be above 0");
  }
  if (!(options.patience >= 0 && options.patience <= 1)) {
    return absl::InvalidArgumentError("patience: must be between 0 and 1");
  }
  if (!(options.hold >= 0 && std::isfinite(options.hold))) {
    return absl::InvalidArgumentError("hold: must be 0 or more cold starts");
  }
  if (!(options.rate_risk > 0 && options.rate_risk < 1)) {
    return absl::InvalidArgumentError("rate_risk: must be between 0 and 1, and neither");
  }
  return absl::OkStatus();
}

namespace {

// For this long after tasks were added, the heartbeats still report the speed with fewer tasks.
constexpr absl::Duration kSettle = absl::Seconds(10);

// If an SLA allows fewer service times than this, there is no slack to queue in, and arrivals must
// find a free server.
constexpr int kServiceTimesOfSlack = 3;

// Deadlines are distinguished to a hundredth of the SLA, or of the aim if that is shorter.
absl::Duration ResolutionOf(const DeadlineOptions& options) {
  const absl::Duration soonest = std::min(options.sla, options.aim.value_or(options.sla));
  return std::max(absl::Milliseconds(250), soonest / 100);
}

// The replicas that the work asks for.
struct Need {
  Profile profile;
  int for_rate = 0;  // replicas, by queueing theory
  int extra = 0;     // replicas that shall start now, for either reason

  bool rate_decides() const { return extra > profile.extra; }
};

class DeadlinePolicy final : public Policy {
 public:
  explicit DeadlinePolicy(const DeadlineOptions& options)
      : options_(options), work_(ResolutionOf(options), options.stale_after), idle_(options.hold) {}

  void Announce(const Announcement& announcement) override { work_.Announce(announcement); }

  Decision Decide(const Observation& raw) override {
    const Observation observation = Sane(raw);
    See(observation);
    Decision decision;
    decision.tasks = observation.fleet.tasks;
    if (ItemsPerSecond(observation) > 0) {
      DecideBySpeed(observation, &decision);
    } else {
      DecideBlindly(observation, &decision);
    }
    return decision;
  }

  std::optional<double> forecast() const override { return expected_; }

 private:
  void See(const Observation& observation);
  void LearnHold(const Observation& observation, const Supply& supply, const Need& need);
  bool settling(const Observation& observation) const;
  double ItemsPerSecond(const Observation& observation) const;

  void DecideBySpeed(const Observation& observation, Decision* decision);
  void DecideBlindly(const Observation& observation, Decision* decision);
  Need NeedOf(const Observation& observation, const Supply& supply) const;
  Profile ProfileAll(const Supply& supply, absl::Duration service_time) const;
  int ForRate(const Observation& observation) const;
  int ForForecast(const Observation& observation) const;
  void AddThreads(const Observation& observation, Supply* supply, Need* need, Decision* decision);
  void Grow(const Observation& observation, const Need& need, Decision* decision) const;
  void Stay(const Observation& observation, const Need& need, Decision* decision) const;
  void Bound(const Observation& observation, Decision* decision) const;
  void JudgeEnd(const Observation& observation, const Supply& supply, const Need& need,
                Decision* decision) const;

  Promise Sla(absl::Duration service_time) const {
    return {options_.sla, service_time, options_.patience};
  }

  const DeadlineOptions options_;
  Workload work_;
  IdleReplicas idle_;
  SeasonalForecast forecast_;
  std::optional<double> expected_;  // by the forecast, at the last observation
  absl::Time now_ = absl::InfinitePast();

  // The last increase of dequeue tasks, and its expected speed.
  struct Raise {
    absl::Time at = absl::InfinitePast();
    int tasks = 0;
    double items_per_second = 0;
  } raise_;
};

void DeadlinePolicy::See(const Observation& observation) {
  if (observation.now < now_) {
    work_.StepBack(observation.now);
    idle_.StepBack(observation.now);
    raise_ = Raise();
  }
  now_ = observation.now;
  const Fleet& fleet = observation.fleet;
  idle_.See(observation);
  const int busy = std::max(0, fleet.ready - static_cast<int>(fleet.idle_since.size()));
  work_.See(observation, busy * ItemsPerSecond(observation));
  if (!options_.forecast) return;
  forecast_.See(now_, work_.ever());
  expected_ = forecast_.UpperRate(now_, observation.estimates.cold_start);
}

bool DeadlinePolicy::settling(const Observation& observation) const {
  return observation.fleet.tasks == raise_.tasks && observation.now - raise_.at < kSettle;
}

double DeadlinePolicy::ItemsPerSecond(const Observation& observation) const {
  double measured = observation.estimates.items_per_second;
  const double observed = work_.ObservedItemsPerSecond();
  // Take the lower of the two speeds: early work costs less than late work.
  if (observed > 0) measured = measured > 0 ? std::min(measured, observed) : observed;
  return settling(observation) ? std::max(measured, raise_.items_per_second) : measured;
}

Profile DeadlinePolicy::ProfileAll(const Supply& supply, absl::Duration service_time) const {
  const Promise sla = Sla(service_time);
  Profile profile = ProfileDeadlines(work_.backlog(), supply, sla);
  if (!options_.aim.has_value()) return profile;
  // An aim shorter than a cold start would ask for unlimited replicas in vain.
  Promise aim = sla;
  const absl::Duration reachable = 1.5 * (supply.cold_start + service_time);
  aim.deadline = std::min(sla.deadline, std::max(*options_.aim, reachable));
  const Profile sooner = ProfileDeadlines(work_.backlog(), supply, aim);
  const int least_ready = std::max(profile.least_ready, sooner.least_ready);
  const bool short_handed = profile.short_handed || sooner.short_handed;
  if (sooner.extra > profile.extra) profile = sooner;
  profile.least_ready = least_ready;
  profile.short_handed = short_handed;
  return profile;
}

int DeadlinePolicy::ForRate(const Observation& observation) const {
  const absl::Duration service = observation.estimates.service_time;
  if (options_.sla >= kServiceTimesOfSlack * service) return 0;
  const int tasks = observation.fleet.tasks;
  MUSTER_CHECK(tasks > 0, "tasks ", tasks);
  const RateLoad load{work_.arrivals().PerSecond(), service, options_.sla, options_.rate_risk};
  const int most = std::min(10'000, std::max(1, observation.bounds.max)) * tasks;
  return (ServersForRate(load, most) + tasks - 1) / tasks;
}

Need DeadlinePolicy::NeedOf(const Observation& observation, const Supply& supply) const {
  Need need;
  need.profile = ProfileAll(supply, observation.estimates.service_time);
  need.for_rate = ForRate(observation);
  need.extra = std::max(need.profile.extra, need.for_rate - supply.committed());
  return need;
}

void DeadlinePolicy::DecideBySpeed(const Observation& observation, Decision* decision) {
  const Estimates& estimates = observation.estimates;
  Supply supply{observation.now,          observation.fleet.ready,     observation.fleet.starting,
                observation.fleet.parked, ItemsPerSecond(observation), estimates.cold_start,
                estimates.release};
  Need need = NeedOf(observation, supply);
  LearnHold(observation, supply, need);
  if (need.extra > 0 || need.profile.short_handed) {
    AddThreads(observation, &supply, &need, decision);
  }
  if (need.extra > 0) {
    Grow(observation, need, decision);
  } else {
    Stay(observation, need, decision);
  }
  decision->standby =
      StandbySize(work_.arrivals().LargeBatch(), supply, Sla(estimates.service_time));
  Bound(observation, decision);
  idle_.Decided(observation.fleet, decision->replicas);
  JudgeEnd(observation, supply, need, decision);
}

// Learns whether the replicas that were idle are needed now, or whether the others could have done
// the work in time.
void DeadlinePolicy::LearnHold(const Observation& observation, const Supply& supply,
                               const Need& need) {
  if (work_.empty()) return;
  idle_.WorkCame(observation.fleet, [&](int idle) {
    Supply without = supply;
    without.ready = std::max(0, supply.ready - idle);
    return ProfileAll(without, observation.estimates.service_time).extra - need.profile.extra;
  });
}

void DeadlinePolicy::AddThreads(const Observation& observation, Supply* supply, Need* need,
                                Decision* decision) {
  if (settling(observation)) return;
  const ThreadSizing threads = SizeThreads(observation.fleet, observation.estimates);
  if (threads.tasks == observation.fleet.tasks) return;
  supply->items_per_second *= threads.gain;
  raise_ = {observation.now, threads.tasks, supply->items_per_second};
  decision->tasks = threads.tasks;
  decision->binding = Binding::kThreads;
  *need = NeedOf(observation, *supply);
}

void DeadlinePolicy::Grow(const Observation& observation, const Need& need,
                          Decision* decision) const {
  const int committed = observation.fleet.committed();
  decision->wanted = std::min(kMaxReplicas, committed + need.extra);
  decision->deadline = need.profile.deadline;
  // Without replicas there are no calls to throttle: the figure is out of date.
  if (IsThrottled(observation.estimates) && committed > 0) {
    decision->replicas = committed;
    decision->binding = Binding::kThrottled;
    return;
  }
  decision->replicas = decision->wanted;
  decision->binding = need.rate_decides()       ? Binding::kRate
                      : need.profile.late_start ? Binding::kLateStart
                                                : Binding::kDeadline;
}

void DeadlinePolicy::Stay(const Observation& observation, const Need& need,
                          Decision* decision) const {
  const Fleet& fleet = observation.fleet;
  const int committed = fleet.committed();
  const int starting = committed - fleet.ready;
  decision->wanted =
      std::max(need.for_rate, need.profile.least_ready + (work_.empty() ? 0 : starting));
  const int held = std::max(
      {fleet.ready - idle_.Removable(), need.profile.least_ready, need.for_rate - starting});
  const int forecast = std::min(fleet.ready, ForForecast(observation));
  // All replicas stay while unseen work may be queued, and until added tasks have shown their
  // effect.
  const bool blind = work_.misses() > 0;
  const bool all_stay = blind || decision->tasks > fleet.tasks || settling(observation);
  decision->replicas =
      all_stay ? committed : std::min(fleet.ready, std::max(held, forecast)) + starting;
  if (decision->tasks > fleet.tasks) return;
  decision->binding = decision->replicas < committed ? Binding::kIdle
                      : blind                        ? Binding::kNoMetrics
                      : forecast > held              ? Binding::kForecast
                      : fleet.idle_since.empty()     ? Binding::kNothing
                                                     : Binding::kHold;
}

// The number of replicas that the usual work of the next cold start keeps busy. Rounded down,
// because a replica for the remainder would mostly be idle.
int DeadlinePolicy::ForForecast(const Observation& observation) const {
  const double speed = ItemsPerSecond(observation);
  if (!options_.forecast || !(speed > 0) || observation.fleet.idle_since.empty()) return 0;
  if (!expected_.has_value()) return 0;
  return static_cast<int>(std::min<double>(kMaxReplicas, *expected_ / speed));
}

// While the speed of a replica is unknown, starts one replica to learn it.
void DeadlinePolicy::DecideBlindly(const Observation& observation, Decision* decision) {
  if (!work_.empty() && observation.fleet.committed() == 0) {
    decision->wanted = decision->replicas = 1;
    decision->binding = Binding::kDeadline;
    decision->deadline = work_.backlog().cohorts->front().arrived + options_.sla;
  } else {
    Stay(observation, Need(), decision);
    if (!work_.empty()) {
      decision->wanted = decision->replicas = observation.fleet.committed();
      decision->binding = Binding::kNothing;
    }
  }
  // When the work will be done nobody can tell, but what is late already is late.
  if (!work_.empty()) {
    const absl::Duration late =
        observation.now - (work_.backlog().cohorts->front().arrived + options_.sla);
    if (late > absl::ZeroDuration()) {
      decision->feasibility.feasible = false;
      decision->feasibility.late_by = late;
      decision->feasibility.finish = absl::InfiniteFuture();
    }
  }
  Bound(observation, decision);
}

void DeadlinePolicy::Bound(const Observation& observation, Decision* decision) const {
  const Bounds& bounds = observation.bounds;
  if (work_.misses() >= std::max(1, options_.on_metric_loss.after)) {
    const int kept = options_.on_metric_loss.Keep(observation.fleet.committed(), bounds);
    if (kept > decision->replicas) decision->binding = Binding::kNoMetrics;
    decision->replicas = std::max(decision->replicas, kept);
  }
  decision->standby = std::max(decision->standby, bounds.standby);
  if (decision->replicas > bounds.max) {
    decision->replicas = bounds.max;
    decision->binding = Binding::kMax;
  } else if (decision->replicas < bounds.min) {
    decision->replicas = bounds.min;
    decision->binding = Binding::kMin;
  }
}

void DeadlinePolicy::JudgeEnd(const Observation& observation, const Supply& supply,
                              const Need& need, Decision* decision) const {
  if (work_.empty()) {
    decision->feasibility.finish = observation.now;
    return;
  }
  // Replicas that patience still holds back count as decided.
  const double missing = std::min<double>(kMaxReplicas, std::ceil(need.profile.missing));
  int replicas = decision->replicas;
  if (decision->binding != Binding::kThrottled) {
    const int later =
        std::min(observation.bounds.max, supply.committed() + static_cast<int>(missing));
    replicas = std::max(replicas, later);
  }
  decision->feasibility =
      Judge(work_.backlog(), supply, Sla(observation.estimates.service_time), replicas);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Policy>> MakeDeadlinePolicy(const DeadlineOptions& options) {
  if (absl::Status status = Check(options); !status.ok()) return status;
  return std::make_unique<DeadlinePolicy>(options);
}

}  // namespace muster::scaling::policy
