// SPDX-License-Identifier: Apache-2.0

// The options of the simulator, and its bounds, each with its reason.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/scaling/replay/distribution.h"

namespace muster::scaling::replay {

// A trace is read as a whole. 2 GiB hold 60 years of minutes; a larger file is not a trace.
inline constexpr uint64_t kMaxTraceBytes = uint64_t{2} << 30;
// Each simulated second takes some hundred nanoseconds, so a mistaken year would look like a hang.
inline constexpr absl::Duration kMaxSpan = absl::Hours(24 * 366 * 5);
// Work is counted in microseconds in 63 bits; an item has at most kMaxServiceTime.
inline constexpr int64_t kMaxItems = 100'000'000'000;
inline constexpr absl::Duration kMaxServiceTime = absl::Hours(24);
inline constexpr int64_t kMaxWorkUs = int64_t{1} << 60;
// With service by the item, each item is an event, and held in memory.
inline constexpr int64_t kMaxItemsOneByOne = 200'000'000;
inline constexpr int kMaxReplicas = 100'000;
inline constexpr int kMaxTasks = 1'000;
inline constexpr int kMaxSeeds = 10'000;
// The time after the last item in which policies may let replicas go: Kubernetes takes 300 s for
// each of two windows. Replicas kept longer cost nothing more.
inline constexpr int64_t kLettingGoSeconds = 900;
// A run must end even if the policy never serves the waiting items, as `fixed:0` does.
inline constexpr int64_t kPatienceSeconds = int64_t{24} * 3600;

// What is simulated: the workers, and faults around them.

enum class Service {
  // Work is a fluid that the ready replicas drain, oldest first. Exact, and fast for any number of
  // items; a replica that is let go holds nothing.
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
  absl::Duration metrics_delay;  // the age of queue statistics when the policy sees them
  double lost_triggers = 0;      // the share of announcements that are lost
  double rate_factor = 1;        // the policy's estimate of a replica's speed over its real speed
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
  int tasks = 1;       // items that a replica works on at the same time
  int min = 0;
  int max = 1000;
  std::string queue = "trace";  // its name, as policies see it
  Faults faults;
  uint64_t seed = 1;  // of all random sources

  // Items per second of a replica.
  double rate() const { return tasks / absl::ToDoubleSeconds(service_time); }
};

// InvalidArgument, naming the option as the command line does: a time that is not above 0 or above
// the bounds in this file, a min above the max, a share outside 0 to 1.
absl::Status Check(const SimOptions& options);

}  // namespace muster::scaling::replay
