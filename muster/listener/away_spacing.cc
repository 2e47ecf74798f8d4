// SPDX-License-Identifier: Apache-2.0
#include "muster/listener/away_spacing.h"

#include <algorithm>

namespace muster::listener {
namespace {

// A change of pace shows after about so many looks.
constexpr int kSmoothing = 4;

}  // namespace

absl::Duration AwaySpacing::Next() {
  const absl::Duration now = clock_->Monotonic();
  base::MutexLock lock(&mu_);
  const absl::Duration at = std::clamp(next_, now, now + kMost);
  next_ = at + spacing_;
  return at - now;
}

void AwaySpacing::Observe(int messages, absl::Duration took) {
  if (messages <= 0) return;
  base::MutexLock lock(&mu_);
  const absl::Duration wanted = std::clamp(took * kShare / messages, kSpacing, kMostSpacing);
  spacing_ += (wanted - spacing_) / kSmoothing;
}

}  // namespace muster::listener
