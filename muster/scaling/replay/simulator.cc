// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/replay/simulator.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/fingerprint.h"
#include "muster/scaling/policy/standby.h"
#include "muster/scaling/replay/distribution.h"
#include "muster/scaling/replay/station.h"

namespace muster::scaling::replay {

// DecisionHash: one hash of all decisions, to compare two runs at a glance. A decision counts when
// it differs from the previous one in replicas, tasks, standby, wanted, reason or feasibility.
class DecisionHash {
 public:
  void Add(int64_t second, const scaling::policy::Decision& decision);
  // 32 hex digits.
  std::string Hash() const { return fingerprinter_.Digest().ToHex(); }

 private:
  base::Fingerprinter fingerprinter_;
  std::string last_;
};

namespace {

// Appends eight bytes, lowest first, on machines of every byte order.
void AppendNumber(int64_t number, std::string* bytes) {
  for (int shift = 0; shift < 64; shift += 8) {
    bytes->push_back(static_cast<char>(static_cast<uint64_t>(number) >> shift & 0xff));
  }
}

}  // namespace

void DecisionHash::Add(int64_t second, const scaling::policy::Decision& decision) {
  std::string entry;
  for (const int64_t number :
       {int64_t{decision.replicas}, int64_t{decision.tasks}, int64_t{decision.standby},
        int64_t{decision.wanted}, static_cast<int64_t>(decision.binding),
        int64_t{decision.feasibility.feasible}}) {
    AppendNumber(number, &entry);
  }
  if (entry == last_) return;
  last_ = entry;
  AppendNumber(second, &entry);
  fingerprinter_.Update(entry);
}

// StaleReadings: delays queue statistics by some seconds.

class StaleReadings {
 public:
  explicit StaleReadings(absl::Duration delay) : delay_(delay) {}

  // Stores the readings and replaces them by the newest stored ones that are old enough, or by
  // none.
  void Apply(absl::Time now, std::vector<scaling::policy::QueueReading>* queues) {
    if (delay_ <= absl::ZeroDuration()) return;
    remembered_.push_back(queues->front());
    while (remembered_.size() > 1 && remembered_[1].at + delay_ <= now) remembered_.pop_front();
    if (remembered_.front().at + delay_ <= now) {
      queues->front() = remembered_.front();
    } else {
      queues->clear();
    }
  }

 private:
  const absl::Duration delay_;
  std::deque<scaling::policy::QueueReading> remembered_;
};

namespace {

scaling::policy::Estimates WhatIsKnown(const SimOptions& options) {
  scaling::policy::Estimates estimates;
  estimates.items_per_second = options.rate() * options.faults.rate_factor;
  estimates.service_time = options.service_time;
  const Distribution cold_start(options.cold_start_shape,
                                absl::ToInt64Microseconds(options.cold_start),
                                options.cold_start_sigma);
  estimates.cold_start = absl::Microseconds(cold_start.P95Us());
  return estimates;
}

// The simulated agent. Its inputs are late, wrong or missing, as the faults state.
class Agent {
 public:
  Agent(const Trace& trace, const SimOptions& options, scaling::policy::Policy* policy)
      : start_(trace.start),
        options_(options),
        policy_(policy),
        triggers_(Stream(options.seed, RandomStream::kTriggers)),
        readings_(options.faults.metrics_delay) {
    observation_.bounds.min = options.min;
    observation_.bounds.max = options.max;
    observation_.estimates = WhatIsKnown(options);
    observation_.fleet.tasks = options.tasks;
    observation_.fleet.max_tasks = options.tasks;
  }

  // Returns the number of replicas to have, those on standby included; `came` items arrived since
  // the last call.
  int Decide(int64_t second, int64_t came, const Station& station) {
    observation_.now = start_ + absl::Seconds(second);
    observation_.queues.resize(1);
    observation_.queues.front().queue = options_.queue;
    station.Observe(start_, &observation_);
    readings_.Apply(observation_.now, &observation_.queues);
    const bool lost = came > 0 && options_.faults.lost_triggers > 0 &&
                      triggers_() < options_.faults.lost_triggers;
    if (Down(second)) return station.committed();
    if (came > 0 && !lost) policy_->Announce({observation_.now, came});
    const scaling::policy::Decision decision =
        scaling::policy::DecideWithStandby(observation_, policy_, &standby_);
    log_.Add(second, decision);
    const int replicas = std::clamp(decision.replicas, options_.min, options_.max);
    standby_ = std::clamp(decision.standby, 0, options_.max - replicas);
    return replicas + standby_;
  }

  std::string Hash() const { return log_.Hash(); }

 private:
  bool Down(int64_t second) const {
    const absl::Duration now = absl::Seconds(second);
    return std::any_of(options_.faults.outages.begin(), options_.faults.outages.end(),
                       [now](const Outage& outage) {
                         return outage.from <= now && now < outage.from + outage.length;
                       });
  }

  const absl::Time start_;
  const SimOptions& options_;
  scaling::policy::Policy* const policy_;
  const base::UniformSource triggers_;
  StaleReadings readings_;
  scaling::policy::Observation observation_;
  int standby_ = 0;  // as decided last, within the bounds
  DecisionHash log_;
};

// Runs the seconds of a simulation and decides when it ends.
class Run {
 public:
  Run(const Trace& trace, const SimOptions& options, scaling::policy::Policy* policy,
      const SeriesSink& sink)
      : trace_(trace),
        quiet_seconds_(std::max(kLettingGoSeconds, 2 * absl::ToInt64Seconds(options.cold_start))),
        station_(MakeStation(trace, options)),
        agent_(trace, options, policy),
        sink_(sink) {}

  void ToTheEnd() {
    for (; !Over(); ++second_) {
      station_->AdvanceTo(second_ * kSecondUs);
      const int64_t came = station_->total_in() - total_in_;
      total_in_ = station_->total_in();
      const int before = station_->committed();
      const int wanted = agent_.Decide(second_, came, *station_);
      if (wanted != before) {
        ++actions_;
        station_->Resize(wanted);
      }
      if (wanted != before || !was_done_) Account();
      was_done_ = Done();
      if (sink_) Show(came);
    }
  }

  Metrics Result(int tasks) {
    station_->GiveUp();
    const Tally& tally = station_->tally();
    Metrics metrics;
    metrics.items = tally.latencies.items();
    metrics.violations = tally.violations;
    metrics.latencies = tally.latencies;
    metrics.work_seconds = static_cast<double>(tally.work_us) / kSecondUs / tasks;
    metrics.replica_seconds = static_cast<double>(replica_us_) / kSecondUs;
    metrics.ready_seconds = static_cast<double>(ready_us_) / kSecondUs;
    metrics.actions = actions_;
    metrics.decision_hash = agent_.Hash();
    return metrics;
  }

 private:
  bool Done() const {
    return second_ > trace_.seconds && station_->all_arrived() && station_->outstanding() == 0;
  }

  bool Over() const {
    const int64_t quiet = second_ - accounted_second_;
    if (second_ > 0 && Done()) return quiet > quiet_seconds_;
    return second_ > trace_.seconds + kPatienceSeconds && station_->all_arrived();
  }

  void Account() {
    accounted_second_ = second_;
    replica_us_ = station_->tally().replica_us;
    ready_us_ = station_->tally().ready_us;
  }

  void Show(int64_t came) {
    const int64_t violations = station_->tally().violations;
    sink_({second_, came, station_->outstanding(), static_cast<double>(station_->committed()),
           violations - violations_});
    violations_ = violations;
  }

  const Trace& trace_;
  const int64_t quiet_seconds_;
  const std::unique_ptr<Station> station_;
  Agent agent_;
  const SeriesSink& sink_;
  int64_t second_ = 0;
  int64_t total_in_ = 0;
  int64_t actions_ = 0;
  int64_t violations_ = 0;  // passed to the sink already
  bool was_done_ = false;
  // The costs if the run ended now.
  int64_t accounted_second_ = 0;
  int64_t replica_us_ = 0;
  int64_t ready_us_ = 0;
};

}  // namespace

Metrics Simulate(const Trace& trace, const SimOptions& options, scaling::policy::Policy* policy,
                 const SeriesSink& sink) {
  Run run(trace, options, policy, sink);
  run.ToTheEnd();
  return run.Result(options.tasks);
}

}  // namespace muster::scaling::replay
