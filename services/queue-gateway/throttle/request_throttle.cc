// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/throttle/request_throttle.h"

#include <algorithm>
#include <cstdint>

namespace muster::queue_gateway::throttle {

namespace {

// A sweep visits all that is remembered, so it is not made for each request.
constexpr absl::Duration kSweepInterval = absl::Seconds(1);

// Rounded down, so that a second's worth is never one request short.
absl::Duration PaceOf(double target) {
  return absl::Floor(absl::Seconds(1) / target, absl::Nanoseconds(1));
}

// How far requests may be ahead of their pace: a second's worth, and one request at least.
absl::Duration BurstOf(double target) { return std::max(absl::Seconds(1), PaceOf(target)); }

}  // namespace

int RetryAfterSeconds(absl::Duration wait) {
  const int64_t seconds = absl::ToInt64Seconds(absl::Ceil(wait, absl::Seconds(1)));
  return static_cast<int>(std::max<int64_t>(seconds, 1));
}

absl::Duration RequestThrottle::Admit(absl::string_view account, absl::string_view queue) {
  if (!HasTarget()) return absl::ZeroDuration();
  if (queue.size() > kMaxQueueNameBytes) queue = "";
  const Name of_account(account, "");
  const Name of_queue(account, queue);
  const absl::Duration now = clock_->Monotonic();
  base::MutexLock lock(&mu_);
  const double queue_target = queue.empty() ? 0 : targets_.per_queue;
  // Both are asked before either counts: a request that the account refuses leaves its queue alone.
  const absl::Duration wait = std::max(WaitLocked(of_account, targets_.per_account, now),
                                       WaitLocked(of_queue, queue_target, now));
  if (wait > absl::ZeroDuration()) return wait;
  CountLocked(of_account, targets_.per_account, now);
  CountLocked(of_queue, queue_target, now);
  return absl::ZeroDuration();
}

size_t RequestThrottle::remembered() const {
  base::MutexLock lock(&mu_);
  return paid_until_.size();
}

absl::Duration RequestThrottle::WaitLocked(const Name& name, double target,
                                           absl::Duration now) const {
  if (target <= 0) return absl::ZeroDuration();
  const auto known = paid_until_.find(name);
  if (known == paid_until_.end()) return absl::ZeroDuration();
  const absl::Duration room_from = known->second + PaceOf(target) - BurstOf(target);
  return std::max(room_from - now, absl::ZeroDuration());
}

void RequestThrottle::CountLocked(const Name& name, double target, absl::Duration now) {
  if (target <= 0) return;
  auto known = paid_until_.find(name);
  if (known == paid_until_.end()) {
    ForgetIdleLocked(now);
    if (paid_until_.size() >= kMaxRemembered) return;
    known = paid_until_.emplace(name, now).first;
  }
  known->second = std::max(known->second, now) + PaceOf(target);
}

void RequestThrottle::ForgetIdleLocked(absl::Duration now) {
  if (paid_until_.size() < kMaxRemembered || now < next_sweep_) return;
  next_sweep_ = now + kSweepInterval;
  // What is paid for in full is as if it had never been.
  std::erase_if(paid_until_, [now](const auto& known) { return known.second <= now; });
}

}  // namespace muster::queue_gateway::throttle
