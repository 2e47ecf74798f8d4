// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/policy/idle_hold.h"

#include <algorithm>

#include "muster/base/check.h"

namespace muster::scaling::policy {

void IdleHold::Reset() { *this = IdleHold(); }

void IdleHold::See(absl::Time now, const Fleet& fleet, absl::Duration hold) {
  if (fleet.ready > ready_ || seen_at_ == absl::InfinitePast()) grown_at_ = now;
  ready_ = fleet.ready;

  int idle = 0, idle_long = 0, idle_all_along = 0;
  for (absl::Time since : fleet.idle_since) {
    if (since > now) continue;
    ++idle;
    idle_long += now - since >= hold ? 1 : 0;
    idle_all_along += since <= seen_at_ ? 1 : 0;
  }
  idle = std::min(idle, ready_);
  idle_long = std::min(idle_long, ready_);
  // With short, rare work no look finds a busy replica, although one replica is needed.
  const bool any_worked = idle_all_along < ready_;
  const int busy = std::max(ready_ - idle, any_worked ? 1 : 0);
  seen_at_ = now;

  while (!most_busy_.empty() && most_busy_.back().busy <= busy) most_busy_.pop_back();
  most_busy_.push_back({now, busy});
  while (most_busy_.front().at <= now - hold && most_busy_.size() > 1) most_busy_.pop_front();

  const bool saw_enough = now - grown_at_ >= hold;
  const int unused = saw_enough ? std::max(0, ready_ - most_busy_.front().busy) : 0;
  removable_ = std::max(idle_long, unused);
  MUSTER_CHECK(0 <= removable_ && removable_ <= ready_, "removable ", removable_, ", ready ",
               ready_);
}

}  // namespace muster::scaling::policy
