// SPDX-License-Identifier: Apache-2.0
#include "muster/listener/trigger_sender.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace muster::listener {

namespace {

// Interval within a burst: short enough that no reader spends its first idle sleep (about 100 ms)
// in vain, long enough that triggers cost little beside the puts, which are fsynced.
constexpr absl::Duration kAnnounceInterval = absl::Milliseconds(5);

}  // namespace

TriggerSender::TriggerSender(bus::TriggerBus* bus, std::string instance, CounterSet* counters)
    : bus_(bus), instance_(std::move(instance)), counters_(counters) {}

void TriggerSender::Send(const queue::QueueId& queue, int64_t messages, const std::string& wanted) {
  if (bus_ == nullptr) return;
  const bus::CloudQueueWorkDetectedTriggerEvent work{.storage_account = queue.account,
                                                     .queue_name = queue.name,
                                                     .messages = messages,
                                                     .wanted = wanted};
  if (bus_->Publish({instance_, work}).ok()) counters_->Add(&ListenerCounters::triggers_sent);
}

BurstAnnouncer::BurstAnnouncer(queue::QueueId queue, TriggerSender* sender, base::Clock* clock)
    : queue_(std::move(queue)), sender_(sender), clock_(clock) {}

void BurstAnnouncer::OnPut(int64_t messages) {
  unannounced_ += messages;
  if (!in_burst_ || clock_->Monotonic() - announced_at_ >= kAnnounceInterval) Announce();
  in_burst_ = true;
}

void BurstAnnouncer::OnIdle() {
  if (unannounced_ > 0) Announce();
  in_burst_ = false;
}

void BurstAnnouncer::Announce() {
  sender_->Send(queue_, unannounced_);
  unannounced_ = 0;
  announced_at_ = clock_->Monotonic();
}

namespace {

// Messages that were put back together become visible together, except for the time that it takes
// to note each of them.
constexpr absl::Duration kTogether = absl::Milliseconds(10);

}  // namespace

void Handover::OnPutBack(const queue::QueueId& queue, const std::string& wanted,
                         absl::Duration delay) {
  const absl::Duration now = clock_->Monotonic();
  const absl::Duration visible = absl::Ceil(now + delay, kTogether);
  base::MutexLock lock(&mu_);
  RememberLocked(wanted, now);
  ++announcements_[{visible, queue.account, queue.name, wanted}];
  if (announcements_.size() > kMaxAnnouncements) {
    announcements_.erase(std::prev(announcements_.end()));
  }
}

void Handover::RememberLocked(const std::string& wanted, absl::Duration now) {
  away_until_[wanted] = now + kStaysAway;
  if (away_until_.size() <= kMaxWanted) return;
  const auto by_time = [](const auto& a, const auto& b) { return a.second < b.second; };
  away_until_.erase(std::min_element(away_until_.begin(), away_until_.end(), by_time));
}

void Handover::AnnounceDue() {
  for (const auto& [announcement, messages] : TakeDue()) {
    const auto& [visible, account, name, wanted] = announcement;
    triggers_->Send({account, name}, messages, wanted);
  }
}

std::vector<std::pair<Handover::Announcement, int64_t>> Handover::TakeDue() {
  std::vector<std::pair<Announcement, int64_t>> due;
  const absl::Duration now = clock_->Monotonic();
  base::MutexLock lock(&mu_);
  while (!announcements_.empty() && std::get<0>(announcements_.begin()->first) <= now) {
    // This listener must not follow its own announcement, however late it makes it.
    RememberLocked(std::get<3>(announcements_.begin()->first), now);
    due.push_back(std::move(*announcements_.begin()));
    announcements_.erase(announcements_.begin());
  }
  return due;
}

bool Handover::IsForOthers(absl::string_view wanted) const {
  if (wanted.empty()) return false;
  base::MutexLock lock(&mu_);
  const auto until = away_until_.find(wanted);
  return until != away_until_.end() && clock_->Monotonic() < until->second;
}

bool Handover::StaysAway() const {
  const absl::Duration now = clock_->Monotonic();
  base::MutexLock lock(&mu_);
  return std::any_of(away_until_.begin(), away_until_.end(),
                     [now](const auto& away) { return now < away.second; });
}

}  // namespace muster::listener
