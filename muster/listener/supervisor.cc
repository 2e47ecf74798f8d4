// SPDX-License-Identifier: Apache-2.0
#include "muster/listener/supervisor.h"

#include <algorithm>
#include <iterator>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status.h"

namespace muster::listener {

namespace {

// Wakes within this time are one wake, so that thousands of retries cost a few looks.
constexpr absl::Duration kWakeGranularity = absl::Milliseconds(10);
constexpr size_t kMaxScheduledWakes = 1024;
// ± 20%, so that the processes of a fleet do not check in step.
constexpr double kSafetyJitter = 0.2;

}  // namespace

Supervisor::Supervisor(SupervisorOptions options, base::Clock* clock, base::UniformSource uniform,
                       std::function<void(WakeReason)> on_wake)
    : options_(options), clock_(clock), on_wake_(std::move(on_wake)), uniform_(std::move(uniform)) {
  base::MutexLock lock(&join_mu_);
  thread_ = std::thread([this] { Run(); });
}

Supervisor::~Supervisor() { Stop(); }

void Supervisor::Start() {
  base::MutexLock lock(&mu_);
  next_safety_check_ = clock_->Monotonic();
  changed_.NotifyAll();
}

void Supervisor::Wake(WakeReason reason) {
  base::MutexLock lock(&mu_);
  bool& flag = reason == WakeReason::kPush   ? pushed_
               : reason == WakeReason::kIdle ? idle_
                                             : rescale_;
  if (!std::exchange(flag, true)) changed_.NotifyAll();
}

void Supervisor::WakeIn(absl::Duration delay, WakeReason reason) {
  const absl::Duration at =
      absl::Ceil(clock_->Monotonic() + std::max(delay, absl::ZeroDuration()), kWakeGranularity);
  base::MutexLock lock(&mu_);
  const auto [place, inserted] = scheduled_.insert({at, reason});
  if (inserted && place == scheduled_.begin()) changed_.NotifyAll();
  if (scheduled_.size() > kMaxScheduledWakes) scheduled_.erase(std::prev(scheduled_.end()));
}

void Supervisor::Stop() {
  {
    base::MutexLock lock(&mu_);
    stopped_ = true;
    changed_.NotifyAll();
  }
  base::MutexLock lock(&join_mu_);
  if (thread_.joinable()) thread_.join();
}

void Supervisor::Run() {
  WakeReason reason;
  while (AwaitReason(reason)) on_wake_(reason);
}

bool Supervisor::AwaitReason(WakeReason& reason) {
  base::MutexLock lock(&mu_);
  while (!stopped_) {
    if (TakeReasonLocked(reason)) return true;
    clock_->WaitUntil(&changed_, &mu_, NextDeadlineLocked());
  }
  return false;
}

bool Supervisor::TakeReasonLocked(WakeReason& reason) {
  const absl::Duration now = clock_->Monotonic();
  if (std::exchange(pushed_, false)) {
    reason = WakeReason::kPush;
  } else if (std::exchange(idle_, false)) {
    reason = WakeReason::kIdle;
  } else if (!scheduled_.empty() && scheduled_.begin()->first <= now) {
    reason = TakeScheduledLocked(now);
  } else if (rescale_ && next_rescale_ <= now) {
    rescale_ = false;
    next_rescale_ = now + options_.rescale_spacing;
    reason = WakeReason::kRescale;
  } else if (next_safety_check_ <= now) {
    PlanSafetyCheckLocked();
    reason = WakeReason::kSafety;
  } else {
    return false;
  }
  return true;
}

// Takes the first scheduled wake, and all others that are due for the same reason.
WakeReason Supervisor::TakeScheduledLocked(absl::Duration now) {
  const WakeReason reason = scheduled_.begin()->second;
  for (auto due = scheduled_.begin(); due != scheduled_.end() && due->first <= now;) {
    due = due->second == reason ? scheduled_.erase(due) : std::next(due);
  }
  return reason;
}

void Supervisor::PlanSafetyCheckLocked() {
  const double factor = 1 - kSafetyJitter + 2 * kSafetyJitter * uniform_();
  next_safety_check_ = clock_->Monotonic() + options_.safety_check_interval * factor;
}

absl::Duration Supervisor::NextDeadlineLocked() const {
  absl::Duration next = next_safety_check_;
  if (rescale_) next = std::min(next, next_rescale_);
  if (!scheduled_.empty()) next = std::min(next, scheduled_.begin()->first);
  return next;
}

DepthGauge::DepthGauge(const std::vector<queue::QueueId>& partitions, queue::QueueStore* store,
                       const LeaseTable* leases, CounterSet* counters,
                       std::function<void(const absl::Status&)> on_error)
    : partitions_(partitions),
      store_(store),
      leases_(leases),
      counters_(counters),
      on_error_(std::move(on_error)),
      last_seen_(partitions.size()) {}

Depth DepthGauge::Look() {
  Depth depth;
  int64_t in_flight = 0;
  for (size_t i = 0; i < partitions_.size(); ++i) {
    const absl::StatusOr<queue::QueueStats> stats = store_->Stats(partitions_[i]);
    if (!stats.ok()) {
      depth.known = false;
      on_error_(
          base::Annotate(stats.status(), absl::StrCat("stats of ", partitions_[i].ToString())));
      continue;
    }
    depth.ready += stats->ready;
    in_flight += stats->in_flight;
    base::MutexLock lock(&mu_);
    last_seen_[i] = *stats;
  }
  // Other processes hold messages, and their leases may have lapsed; such a store cannot tell, so
  // the depth is unknown.
  if (!store_->traits().exact_stats && in_flight > leases_->leased()) depth.known = false;
  counters_->Add(depth.ready > 0 ? &ListenerCounters::depth_checks_useful
                                 : &ListenerCounters::depth_checks_empty,
                 static_cast<int64_t>(partitions_.size()));
  return depth;
}

std::vector<queue::QueueStats> DepthGauge::last_seen() const {
  base::MutexLock lock(&mu_);
  return last_seen_;
}

std::vector<PartitionSeen> DepthGauge::partitions_seen() const {
  const std::vector<int64_t> leased = leases_->LeasedByPartition(partitions_.size());
  std::vector<PartitionSeen> seen;
  base::MutexLock lock(&mu_);
  for (size_t i = 0; i < partitions_.size(); ++i) {
    seen.push_back({partitions_[i], last_seen_[i].ready, last_seen_[i].oldest_age, leased[i]});
  }
  return seen;
}

}  // namespace muster::listener
