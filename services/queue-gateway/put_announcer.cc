// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/put_announcer.h"

#include <algorithm>
#include <utility>

#include "muster/base/log.h"

namespace muster::queue_gateway {

PutAnnouncer::PutAnnouncer(bus::TriggerBus* bus, std::string instance, base::Clock* clock)
    : bus_(bus), instance_(std::move(instance)), clock_(clock), thread_([this] { Run(); }) {}

PutAnnouncer::~PutAnnouncer() {
  {
    base::MutexLock lock(&mu_);
    ends_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void PutAnnouncer::OnPut(const queue::QueueId& queue, int64_t messages) {
  base::MutexLock lock(&mu_);
  const auto found = bursts_.find(queue);
  if (found != bursts_.end()) {
    found->second.unannounced += messages;
    return;
  }
  if (bursts_.size() == kMaxAnnouncedQueues) return;
  bursts_.emplace(queue, Burst{messages, clock_->Monotonic()});
  changed_.NotifyAll();
}

void PutAnnouncer::Run() {
  while (true) {
    std::vector<Due> due;
    bool ends = false;
    {
      base::MutexLock lock(&mu_);
      while (!ends_ && clock_->Monotonic() < NextLocked()) {
        clock_->WaitUntil(&changed_, &mu_, NextLocked());
      }
      ends = ends_;
      due = TakeDueLocked(ends ? absl::InfiniteDuration() : clock_->Monotonic());
    }
    Announce(due);
    if (ends) return;
  }
}

std::vector<PutAnnouncer::Due> PutAnnouncer::TakeDueLocked(absl::Duration now) {
  std::vector<Due> due;
  for (auto it = bursts_.begin(); it != bursts_.end();) {
    const auto at = it++;
    Burst& burst = at->second;
    if (burst.next > now) continue;
    if (burst.unannounced == 0) {
      bursts_.erase(at);
      continue;
    }
    due.push_back({at->first, std::exchange(burst.unannounced, 0)});
    burst.next = now + kAnnounceInterval;
  }
  return due;
}

absl::Duration PutAnnouncer::NextLocked() const {
  absl::Duration next = absl::InfiniteDuration();
  for (const auto& [queue, burst] : bursts_) next = std::min(next, burst.next);
  return next;
}

void PutAnnouncer::Announce(const std::vector<Due>& due) {
  for (const Due& one : due) {
    const absl::Status sent = bus_->Publish(
        bus::WorkDetected(instance_, one.queue.account, one.queue.name, one.messages));
    const bool failed_before = std::exchange(failed_, !sent.ok());
    if (sent.ok()) continue;
    // Said once for an outage. The others would wait as long in vain.
    if (!failed_before) {
      base::LogUnlessOk(base::kWarning,
                        "listeners are not told of puts; their safety checks see them", sent,
                        {{"queue", one.queue.ToString()}});
    }
    return;
  }
}

}  // namespace muster::queue_gateway
