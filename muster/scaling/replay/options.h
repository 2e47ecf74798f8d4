// What is simulated: the workers, and what goes wrong around them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/scaling/replay/spread.h"

namespace muster::scaling::replay {

enum class Service {
  // Work is a liquid that the ready replicas drain, oldest first. Exact, and fast whatever the
  // number of items; a replica that is let go holds nothing.
  kFluid,
  // Each item occupies a task for its service time, of this shape.
  kFixed,
  kExponential,
  kLognormal,
};

// The agent is down: it sees nothing and does nothing.
struct Outage {
  absl::Duration from;  // since the trace's start
  absl::Duration length;
};

struct Faults {
  absl::Duration metrics_delay;  // queue statistics are so old when they are seen
  double lost_triggers = 0;      // share of the announcements that never come
  double rate_factor = 1;        // the policy takes a replica for so many times as fast as it is
  std::vector<Outage> outages;
};

struct SimOptions {
  Service service = Service::kFluid;
  absl::Duration service_time;  // of an item in a task; the mean where it is random
  double service_sigma = 0.5;   // of its logarithm, for kLognormal
  absl::Duration cold_start;    // the mean where it is random
  Shape cold_start_shape = Shape::kFixed;
  double cold_start_sigma = 0.5;
  absl::Duration sla;  // an item is late when it takes longer
  int tasks = 1;       // items that a replica works on at a time
  int min = 0;
  int max = 1000;
  std::string queue = "trace";  // its name, as policies see it
  Faults faults;
  uint64_t seed = 1;  // of all that is random

  // Items per second of a replica.
  double rate() const { return tasks / absl::ToDoubleSeconds(service_time); }
};

// InvalidArgument, naming the option as the command line does: a time that is not above 0 or is
// larger than limits.h allows, bounds that cross, a share that is none.
absl::Status Check(const SimOptions& options);

}  // namespace muster::scaling::replay
