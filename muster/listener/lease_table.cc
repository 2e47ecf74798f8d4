// SPDX-License-Identifier: Apache-2.0
#include "muster/listener/lease_table.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/status.h"
#include "muster/queue/limits.h"

namespace muster::listener {

namespace {

// A third: two renewals may fail before the lease is in danger.
constexpr int kRenewalsPerVisibility = 3;
// How often, per visibility, a failed renewal is tried again.
constexpr int kRetriesPerVisibility = 20;

absl::Status LostError(const Lease& lease) {
  return absl::FailedPreconditionError(
      absl::StrCat("the lease of message ", lease.message.message_id, " is lost"));
}

}  // namespace

LeaseTable::LeaseTable(base::Clock* clock, int max_unsettled, CounterSet* counters)
    : clock_(clock), max_unsettled_(max_unsettled), counters_(counters) {}

int LeaseTable::Reserve(int wanted) {
  base::MutexLock lock(&mu_);
  ++room_waiters_;
  while (unsettled_ >= max_unsettled_ && !aborted_) room_.Wait(&mu_);
  --room_waiters_;
  if (aborted_) return 0;
  const int places = std::min(wanted, max_unsettled_ - unsettled_);
  unsettled_ += places;
  return places;
}

void LeaseTable::Unreserve(int places) {
  if (places == 0) return;
  base::MutexLock lock(&mu_);
  MUSTER_CHECK(places > 0 && places <= unsettled_ - static_cast<int>(due_.size()), "places ",
               places, ", unsettled ", unsettled_, ", leased ", due_.size());
  unsettled_ -= places;
  if (room_waiters_ > 0) room_.NotifyAll();
}

std::vector<LeasePtr> LeaseTable::Add(int partition, std::vector<queue::Message> messages,
                                      absl::Duration received_at, absl::Duration visibility) {
  std::vector<LeasePtr> leases;
  leases.reserve(messages.size());
  for (queue::Message& message : messages) {
    leases.push_back(
        std::make_shared<Lease>(std::move(message), partition, received_at, visibility));
  }
  const absl::Duration due = received_at + visibility / kRenewalsPerVisibility;
  base::MutexLock lock(&mu_);
  MUSTER_CHECK(due_.size() + leases.size() <= static_cast<size_t>(unsettled_), "leased ",
               due_.size(), ", more ", leases.size(), ", places ", unsettled_);
  for (const LeasePtr& lease : leases) {
    lease->due_ = due_.emplace(due, lease);
    lease->stopped_ = stopped_;
  }
  if (due < renewer_wakes_) {
    renewer_wakes_ = due;
    due_changed_.NotifyAll();
  }
  return leases;
}

void LeaseTable::AbortWaits() {
  base::MutexLock lock(&mu_);
  aborted_ = true;
  room_.NotifyAll();
}

void LeaseTable::CountLostLocked(Lease& lease) {
  if (std::exchange(lease.counted_lost_, true) || counters_ == nullptr) return;
  counters_->Add(&ListenerCounters::leases_lost);
}

bool LeaseTable::HasRunOutLocked(Lease& lease) {
  if (lease.expires_ > clock_->Monotonic()) return false;
  CountLostLocked(lease);
  return true;
}

absl::Status LeaseTable::CheckUsableLocked(Lease& lease) {
  if (lease.lost_ || HasRunOutLocked(lease)) return LostError(lease);
  if (lease.settling_) return absl::CancelledError("the listener is stopping");
  return absl::OkStatus();
}

absl::StatusOr<queue::Receipt> LeaseTable::PinForCharge(Lease& lease) {
  base::MutexLock lock(&mu_);
  AwaitUnpinnedLocked(lease);
  // Check after the wait: the lease may have run out meanwhile.
  MUSTER_RETURN_IF_ERROR(CheckUsableLocked(lease));
  lease.pinned_ = true;
  return lease.receipt_;
}

void LeaseTable::Unpin(Lease& lease, bool charged) {
  base::MutexLock lock(&mu_);
  if (charged) lease.charged_ = true;
  UnpinLocked(lease);
}

absl::Status LeaseTable::Begin(Lease& lease) {
  base::MutexLock lock(&mu_);
  MUSTER_RETURN_IF_ERROR(CheckUsableLocked(lease));
  lease.begun_ = true;
  return absl::OkStatus();
}

LeasePtr LeaseTable::Keep(Lease& lease, int attempts, bool unused) {
  base::MutexLock lock(&mu_);
  MUSTER_CHECK(lease.settling_ && !lease.removed_, "message ", lease.message.message_id,
               ": settling ", lease.settling_, ", settled ", lease.removed_);
  AwaitUnpinnedLocked(lease);
  if (lease.lost_) return nullptr;
  queue::Message message = lease.message;
  message.receipt = lease.receipt_;
  message.attempts = unused ? attempts - 1 : attempts;
  if (lease.begun_) message.interrupted = false;
  auto again = std::make_shared<Lease>(std::move(message), lease.partition, lease.received_at,
                                       lease.visibility);
  again->expires_ = lease.expires_;
  again->charged_ = unused;
  again->stopped_ = stopped_;
  again->due_ = due_.emplace(lease.due_->first, again);
  due_.erase(lease.due_);
  lease.removed_ = true;
  return again;
}

bool LeaseTable::StartSettling(Lease& lease) {
  base::MutexLock lock(&mu_);
  return !std::exchange(lease.settling_, true);
}

std::vector<LeasePtr> LeaseTable::ReleaseUnbegun() {
  std::vector<LeasePtr> released;
  base::MutexLock lock(&mu_);
  for (const auto& [due, lease] : due_) {
    // Skip pinned leases: each is either beginning or being renewed, and its task releases it when
    // it reaches it.
    if (lease->begun_ || lease->settling_ || lease->pinned_) continue;
    lease->settling_ = true;
    released.push_back(lease);
  }
  return released;
}

absl::StatusOr<queue::Receipt> LeaseTable::PinForSettle(Lease& lease) {
  base::MutexLock lock(&mu_);
  MUSTER_CHECK(lease.settling_ && !lease.removed_, "message ", lease.message.message_id,
               ": settling ", lease.settling_, ", settled ", lease.removed_);
  AwaitUnpinnedLocked(lease);
  if (lease.lost_) return LostError(lease);
  HasRunOutLocked(lease);
  lease.pinned_ = true;
  return lease.receipt_;
}

void LeaseTable::Remove(Lease& lease) {
  base::MutexLock lock(&mu_);
  if (std::exchange(lease.removed_, true)) return;
  MUSTER_CHECK(unsettled_ > 0, "message ", lease.message.message_id, ", unsettled ", unsettled_);
  due_.erase(lease.due_);
  --unsettled_;
  UnpinLocked(lease);
  if (room_waiters_ > 0) room_.NotifyAll();
}

std::vector<LeaseTable::Renewal> LeaseTable::AwaitDue(int max) {
  base::MutexLock lock(&mu_);
  while (!renewals_closed_) {
    if (renewer_wakes_ > clock_->Monotonic()) {
      clock_->WaitUntil(&due_changed_, &mu_, renewer_wakes_);
      continue;
    }
    std::vector<Renewal> renewals = TakeDueLocked(max);
    renewer_wakes_ = due_.empty() ? absl::InfiniteDuration() : due_.begin()->first;
    if (!renewals.empty()) return renewals;
  }
  return {};
}

std::vector<LeaseTable::Renewal> LeaseTable::TakeDueLocked(int max) {
  const absl::Duration now = clock_->Monotonic();
  std::vector<Renewal> renewals;
  while (!due_.empty() && due_.begin()->first <= now && static_cast<int>(renewals.size()) < max) {
    const LeasePtr lease = due_.begin()->second;
    HasRunOutLocked(*lease);
    if (!lease->pinned_ && !lease->lost_) {
      lease->pinned_ = true;
      renewals.push_back({lease, lease->receipt_});
    }
    // Schedule the lease again in case it is not renewed: another thread has it pinned, or the
    // store does not answer.
    ScheduleLocked(*lease, lease->lost_ ? absl::InfiniteDuration()
                                        : now + lease->visibility / kRetriesPerVisibility);
  }
  return renewals;
}

void LeaseTable::CloseRenewals() {
  base::MutexLock lock(&mu_);
  renewals_closed_ = true;
  due_changed_.NotifyAll();
}

void LeaseTable::Renewed(Lease& lease, queue::Receipt receipt, absl::Duration asked_at) {
  base::MutexLock lock(&mu_);
  lease.receipt_ = std::move(receipt);
  lease.expires_ = asked_at + lease.visibility;
  if (!lease.removed_) ScheduleLocked(lease, asked_at + lease.visibility / kRenewalsPerVisibility);
  UnpinLocked(lease);
}

void LeaseTable::NotRenewed(Lease& lease) {
  const absl::Duration now = clock_->Monotonic();
  std::stop_source stop(std::nostopstate);
  {
    base::MutexLock lock(&mu_);
    UnpinLocked(lease);
    if (now < lease.expires_) return;
    // The task must stop: the store may have leased the message again. It may still settle the
    // message: lost_ stays false, so the store decides.
    stop = lease.stop_;
    lease.stopped_ = true;
  }
  stop.request_stop();
}

void LeaseTable::Lost(Lease& lease) {
  std::stop_source stop(std::nostopstate);
  {
    base::MutexLock lock(&mu_);
    stop = LoseLocked(lease);
  }
  // Outside the lock: it runs the stop callbacks of subscribers.
  stop.request_stop();
}

std::stop_source LeaseTable::LoseLocked(Lease& lease) {
  lease.lost_ = true;
  lease.stopped_ = true;
  CountLostLocked(lease);
  if (!lease.removed_) ScheduleLocked(lease, absl::InfiniteDuration());
  UnpinLocked(lease);
  return lease.stop_;
}

void LeaseTable::CountLost(Lease& lease) {
  base::MutexLock lock(&mu_);
  CountLostLocked(lease);
}

bool LeaseTable::lost(const Lease& lease) const {
  base::MutexLock lock(&mu_);
  return lease.lost_;
}

bool LeaseTable::charged(const Lease& lease) const {
  base::MutexLock lock(&mu_);
  return lease.charged_;
}

std::stop_token LeaseTable::TokenOf(Lease& lease) {
  base::MutexLock lock(&mu_);
  if (!lease.stop_.stop_possible()) {
    lease.stop_ = std::stop_source();
    // The stop source is new and has no callbacks yet, so no foreign code runs under the lock.
    if (lease.stopped_) lease.stop_.request_stop();
  }
  return lease.stop_.get_token();
}

void LeaseTable::StopAll() {
  std::vector<std::stop_source> stops;
  {
    base::MutexLock lock(&mu_);
    stopped_ = true;
    for (const auto& [due, lease] : due_) {
      lease->stopped_ = true;
      if (lease->stop_.stop_possible()) stops.push_back(lease->stop_);
    }
  }
  for (std::stop_source& stop : stops) stop.request_stop();
}

int LeaseTable::unsettled() const {
  base::MutexLock lock(&mu_);
  return unsettled_;
}

int LeaseTable::leased() const {
  base::MutexLock lock(&mu_);
  return static_cast<int>(due_.size());
}

std::vector<int64_t> LeaseTable::LeasedByPartition(size_t partitions) const {
  std::vector<int64_t> leased(partitions);
  base::MutexLock lock(&mu_);
  for (const auto& [due, lease] : due_) ++leased[static_cast<size_t>(lease->partition)];
  return leased;
}

void LeaseTable::AwaitUnpinnedLocked(const Lease& lease) {
  ++pin_waiters_;
  while (lease.pinned_) unpinned_.Wait(&mu_);
  --pin_waiters_;
}

void LeaseTable::UnpinLocked(Lease& lease) {
  lease.pinned_ = false;
  if (pin_waiters_ > 0) unpinned_.NotifyAll();
}

void LeaseTable::ScheduleLocked(Lease& lease, absl::Duration due) {
  auto node = due_.extract(lease.due_);
  node.key() = due;
  lease.due_ = due_.insert(std::move(node));
}

}  // namespace muster::listener
