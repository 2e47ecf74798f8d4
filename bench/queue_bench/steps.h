// SPDX-License-Identifier: Apache-2.0

// The steps of the benchmark, in the order in which main takes them.
#pragma once

#include <string>

#include "bench/queue_bench/arguments.h"
#include "bench/queue_bench/bodies.h"
#include "bench/queue_bench/engine.h"
#include "bench/queue_bench/raw_store.h"
#include "bench/queue_bench/report.h"

namespace muster::queue_bench {

// Each step finds the engine's main queue and the raw store at kDepth, and leaves them so.
class Steps {
 public:
  // Makes the stores in arguments.directory, and fills them to kDepth.
  explicit Steps(const Arguments& arguments);

  void AtStandingDepth();
  void SinglePuts();
  void BesideBeanstalkd();
  // Measures after many messages have passed: their tombstones lie at the queue's head.
  void AfterManyPassed();
  // Also measures the memory of a ready message, and the time of a restart.
  void AtGreatDepth();
  // Measures many queues with kBatch messages each. Leaves the messages there, so it is the last
  // step.
  void OverManyQueues();
  void Flatness();

 private:
  void BatchesBesideRaw(EngineSide& side, const std::string& at);

  const Arguments arguments_;
  Report report_;
  Bodies bodies_;
  Engine engine_;
  EngineSide queue_;
  RawStore raw_;
};

}  // namespace muster::queue_bench
