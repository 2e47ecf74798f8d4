#include "muster/scaling/policy/deadline_options.h"

#include <cmath>

namespace muster::scaling::policy {

absl::Status Check(const DeadlineOptions& options) {
  const auto finite = [](absl::Duration duration) {
    return duration > absl::ZeroDuration() && duration < absl::InfiniteDuration();
  };
  if (!finite(options.sla)) return absl::InvalidArgumentError("sla: must be above 0");
  if (options.aim.has_value() && !finite(*options.aim)) {
    return absl::InvalidArgumentError("aim: must be above 0");
  }
  if (!(options.patience >= 0 && options.patience <= 1)) {
    return absl::InvalidArgumentError("patience: must be between 0 and 1");
  }
  if (!(options.hold >= 0 && std::isfinite(options.hold))) {
    return absl::InvalidArgumentError("hold: must be 0 or more cold starts");
  }
  if (!(options.rate_risk > 0 && options.rate_risk < 1)) {
    return absl::InvalidArgumentError("rate_risk: must be between 0 and 1, and neither");
  }
  return absl::OkStatus();
}

}  // namespace muster::scaling::policy
