// Hpa: the Horizontal Pod Autoscaler of Kubernetes, as it computes replicas from an external metric
// with an average value.
#pragma once

#include <deque>
#include <optional>

#include "absl/time/time.h"

namespace muster::scaling::replay {

// The `behavior` block: how fast it may go.
struct HpaBehavior {
  int up_pods = 4;
  int up_percent = 100;                                    // the larger of the two, per kHpaPeriod
  absl::Duration down_stabilization = absl::Seconds(300);  // down: all of them, per kHpaPeriod
};

struct HpaSettings {
  double target = 5;  // of the metric, per replica
  int min = 1;        // it never goes below 1
  int max = 1000;
  std::optional<HpaBehavior> behavior;  // without: doubling, or to 4, at each tick
};

inline constexpr absl::Duration kHpaPeriod = absl::Seconds(15);
inline constexpr absl::Duration kHpaStabilization = absl::Seconds(300);
inline constexpr double kHpaTolerance = 0.1;

// Not thread-safe.
class Hpa {
 public:
  explicit Hpa(const HpaSettings& settings);

  // One tick, each kHpaPeriod. `replicas` counts those that are not ready yet. Answers how many
  // there shall be; 0 stays 0.
  int Tick(absl::Time now, int replicas, double metric);

 private:
  struct Recommendation {
    absl::Time at;
    int replicas;
  };

  int Desired(int replicas, double metric) const;
  // The largest recommendation of the window that ends now, this one included.
  int Stabilized(absl::Time now, int desired, absl::Duration window);
  int UpLimit(int replicas) const;

  const HpaSettings settings_;
  std::deque<Recommendation> recommendations_;
};

}  // namespace muster::scaling::replay
