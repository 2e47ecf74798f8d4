// SPDX-License-Identifier: Apache-2.0

// TargetFixture: a target for tests of policies, with short calls to set an observation and carry
// out decisions.
#pragma once

#include <algorithm>
#include <memory>

#include "absl/time/time.h"
#include "muster/scaling/policy/deadline_policy.h"

namespace muster::scaling::policy {

// L = 30 s, D = 300 s, 40 items a second and replica, S = 1 s; nothing runs at 06:00.
class TargetFixture {
 public:
  TargetFixture() {
    absl::ParseTime(absl::RFC3339_full, "2026-01-02T06:00:00Z", &start_, nullptr);
    observation.now = start_;
    observation.estimates.items_per_second = 40;
    observation.estimates.service_time = absl::Seconds(1);
    observation.estimates.cold_start = absl::Seconds(30);
    options.sla = absl::Seconds(300);
  }

  absl::Time At(double seconds) const { return start_ + absl::Seconds(seconds); }
  void Now(double seconds) { observation.now = At(seconds); }

  // Sets the queue's statistics.
  void Read(int64_t waiting, int64_t out = 0) {
    QueueReading reading;
    reading.queue = "in-0";
    reading.at = observation.now;
    reading.ready = waiting;
    reading.total_in = waiting + out;
    reading.total_out = out;
    observation.queues = {reading};
  }

  void LoseStatistics() { observation.queues.clear(); }

  void Ready(int replicas) {
    observation.fleet.ready = replicas;
    observation.fleet.starting.clear();
    observation.fleet.idle_since.clear();
  }

  void Idle(int replicas, double since) {
    observation.fleet.idle_since.assign(replicas, At(since));
  }

  // Passes time in seconds; the policy looks after each, and nothing else happens.
  Decision LookUntil(double seconds) {
    Decision decision;
    while (observation.now < At(seconds)) {
      observation.now += absl::Seconds(1);
      for (QueueReading& reading : observation.queues) reading.at = observation.now;
      decision = Decide();
    }
    return decision;
  }

  void Announce(double seconds, int64_t items) { policy().Announce({At(seconds), items}); }
  Decision Decide() { return policy().Decide(observation); }

  // Carries out a decision: parked replicas begin to work, others start, idle ones leave.
  void CarryOut(const Decision& decision) {
    Fleet& fleet = observation.fleet;
    while (fleet.committed() < decision.replicas) {
      const Estimates& estimates = observation.estimates;
      const bool warm = fleet.parked > 0;
      fleet.parked -= warm ? 1 : 0;
      const absl::Duration start =
          warm ? std::min(estimates.release, estimates.cold_start) : estimates.cold_start;
      fleet.starting.push_back(observation.now + start);
    }
    while (fleet.committed() > decision.replicas && fleet.ready > 0) {
      --fleet.ready;
      if (!fleet.idle_since.empty()) fleet.idle_since.erase(fleet.idle_since.begin());
    }
    while (fleet.committed() > decision.replicas) fleet.starting.pop_back();
    fleet.tasks = decision.tasks;
  }

  Policy& policy() {
    if (policy_ == nullptr) policy_ = MakeDeadlinePolicy(options).value();
    return *policy_;
  }

  DeadlineOptions options;  // read until the first look
  Observation observation;

 private:
  absl::Time start_;
  std::unique_ptr<Policy> policy_;
};

}  // namespace muster::scaling::policy
