#include "muster/listener/claim_sizer.h"

#include <algorithm>

namespace muster::listener {
namespace {

// Weight of the newest batch: a change of pace shows after about four batches.
constexpr double kNewestWeight = 0.25;

}  // namespace

int ClaimSizer::Claim(int max) const {
  base::MutexLock lock(&mu_);
  if (!measured_) return 1;
  const int ramp = std::min<int64_t>(max, int64_t{2} * largest_batch_);
  const double horizon = absl::ToDoubleSeconds(horizon_);
  if (seconds_per_message_ * ramp <= horizon) return std::max(1, ramp);
  return std::clamp(static_cast<int>(horizon / seconds_per_message_), 1, std::max(1, ramp));
}

void ClaimSizer::Observe(int messages, absl::Duration elapsed) {
  if (messages <= 0) return;
  const double seconds = std::max(0.0, absl::ToDoubleSeconds(elapsed)) / messages;
  base::MutexLock lock(&mu_);
  seconds_per_message_ =
      measured_ ? seconds_per_message_ + kNewestWeight * (seconds - seconds_per_message_) : seconds;
  largest_batch_ = std::max(largest_batch_, messages);
  measured_ = true;
}

}  // namespace muster::listener
