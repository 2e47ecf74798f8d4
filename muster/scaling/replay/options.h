// Every bound of the simulator, with its reason.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/scaling/replay/distribution.h"

namespace muster::scaling::replay {

// A file of more is no trace: it is read as a whole. 2 GiB hold 60 years of minutes.
inline constexpr uint64_t kMaxTraceBytes = uint64_t{2} << 30;
// Each second takes some hundred nanoseconds, so that a mistaken year would look like a hang.
inline constexpr absl::Duration kMaxSpan = absl::Hours(24 * 366 * 5);
// Work is counted in microseconds, of at most kMaxServiceTime each, in 63 bits.
inline constexpr int64_t kMaxItems = 100'000'000'000;
inline constexpr absl::Duration kMaxServiceTime = absl::Hours(24);
inline constexpr int64_t kMaxWorkUs = int64_t{1} << 60;
// With service by the item, each item is an event, and held in memory.
inline constexpr int64_t kMaxItemsOneByOne = 200'000'000;
inline constexpr int kMaxReplicas = 100'000;
inline constexpr int kMaxTasks = 1'000;
inline constexpr int kMaxSeeds = 10'000;
// After the last item the policies may let their replicas go: Kubernetes takes 300 s for each of
// two windows. What is not let go by then is kept for ever, and costs nothing more.
inline constexpr int64_t kLettingGoSeconds = 900;
// A policy that never serves what waits (fixed 0, say) must come to an end.
inline constexpr int64_t kPatienceSeconds = int64_t{24} * 3600;

// What is simulated: the workers, and what goes wrong around them.

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
