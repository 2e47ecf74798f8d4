#include "muster/scaling/replay/hpa.h"

#include <algorithm>
#include <cmath>

namespace muster::scaling::replay {
namespace {

constexpr int kLeastDoubled = 4;
constexpr double kMostDesired = 1e9;

}  // namespace

Hpa::Hpa(const HpaSettings& settings) : settings_(settings) {}

int Hpa::Tick(absl::Time now, int replicas, double metric) {
  if (replicas == 0) return 0;
  const int desired = Desired(replicas, metric);
  const absl::Duration window =
      settings_.behavior.has_value() ? settings_.behavior->down_stabilization : kHpaStabilization;
  const int stabilized = Stabilized(now, desired, window);
  // A behavior block's window holds back a fall only; a rise follows the metric of this instant.
  const int wanted = settings_.behavior.has_value() && desired > replicas ? desired
                     : settings_.behavior.has_value() ? std::min(stabilized, replicas)
                                                      : stabilized;
  const int floor = std::max(1, settings_.min);
  return std::max(floor, std::min({wanted, settings_.max, UpLimit(replicas)}));
}

int Hpa::Desired(int replicas, double metric) const {
  const double ratio = metric / (settings_.target * replicas);
  if (std::fabs(1 - ratio) <= kHpaTolerance) return replicas;
  return static_cast<int>(std::min(std::ceil(metric / settings_.target), kMostDesired));
}

int Hpa::Stabilized(absl::Time now, int desired, absl::Duration window) {
  while (!recommendations_.empty() && recommendations_.front().at < now - window) {
    recommendations_.pop_front();
  }
  recommendations_.push_back({now, desired});
  return std::max_element(recommendations_.begin(), recommendations_.end(),
                          [](const Recommendation& a, const Recommendation& b) {
                            return a.replicas < b.replicas;
                          })
      ->replicas;
}

int Hpa::UpLimit(int replicas) const {
  if (!settings_.behavior.has_value()) return std::max(2 * replicas, kLeastDoubled);
  const int64_t by_percent = replicas + (int64_t{replicas} * settings_.behavior->up_percent) / 100;
  return static_cast<int>(std::max<int64_t>(replicas + settings_.behavior->up_pods, by_percent));
}

}  // namespace muster::scaling::replay
