// Metrics: how a policy fared on a trace.
#pragma once

#include <cstdint>
#include <string>

#include "muster/scaling/replay/latency_histogram.h"

namespace muster::scaling::replay {

struct Metrics {
  int64_t items = 0;
  int64_t violations = 0;
  LatencyHistogram latencies;
  double replica_seconds = 0;  // paid: starting replicas cost as ready ones do
  double ready_seconds = 0;
  double work_seconds = 0;  // what replicas that never idle nor start would take
  int64_t actions = 0;      // changes of the number of replicas
  std::string decision_hash;

  double violation_ratio() const;
  double cost_over_work() const;
  // Of the time of ready replicas, what they did not work.
  double idle_share() const;

  // Everything of both; the hash is that of both hashes.
  void Merge(const Metrics& other);
};

}  // namespace muster::scaling::replay
