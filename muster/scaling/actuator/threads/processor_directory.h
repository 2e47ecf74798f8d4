// Which processors there are.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/v1/heartbeat.pb.h"

namespace muster::scaling::actuator::threads {

struct LiveProcessor {
  std::string instance;
  std::string address;  // HOST:PORT of its WorkerService
  absl::Time started;
  std::set<std::string> jobs;  // that it works for
};

// As it tells in its heartbeats.
LiveProcessor FromHeartbeat(const v1::Heartbeat& heartbeat);

// Those that are there now and do not leave, as of bus::Roster. Thread-safe, and does not block.
using ProcessorDirectory = std::function<std::vector<LiveProcessor>()>;

}  // namespace muster::scaling::actuator::threads
