// SPDX-License-Identifier: Apache-2.0
#include "muster/listener/open_receives.h"

#include <algorithm>
#include <utility>

namespace muster::listener {

OpenReceives::OpenReceives(const std::vector<queue::QueueId>& partitions, int first,
                           absl::Duration patience, queue::QueueStore* store, base::Clock* clock,
                           Events events)
    : partitions_(partitions),
      patience_(patience),
      store_(store),
      clock_(clock),
      events_(std::move(events)),
      can_wait_(store->traits().long_poll) {
  if (!can_wait_) return;
  const int count = static_cast<int>(partitions.size());
  base::MutexLock lock(&mu_);
  slots_.resize(static_cast<size_t>(std::min(count, kMaxOpenReceives)));
  for (size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].partition = (first + static_cast<int>(i)) % count;
  }
}

OpenReceives::~OpenReceives() { Close(); }

void OpenReceives::Open(const std::vector<queue::QueueStats>& seen, bool retry) {
  base::MutexLock opening(&open_mu_);
  std::vector<size_t> wanted;
  // Die outside mu_, which their last events may want.
  std::vector<std::unique_ptr<queue::QueueStore::Wait>> ended;
  {
    base::MutexLock lock(&mu_);
    const absl::Duration now = clock_->Monotonic();
    crowded_ = false;
    for (size_t i = 0; i < slots_.size(); ++i) {
      Slot& slot = slots_[i];
      if (slot.state == State::kOpen && now >= slot.until + kOpenReceiveGrace) {
        slot.state = State::kOver;
      }
      if (slot.state == State::kOpen || (slot.state == State::kFailed && !retry)) continue;
      ended.push_back(std::move(slot.wait));
      const bool is_left_to_others =
          seen[static_cast<size_t>(slot.partition)].waits >= kMaxWaitsOfQueue;
      crowded_ = crowded_ || is_left_to_others;
      if (!is_left_to_others) wanted.push_back(i);
    }
  }
  ended.clear();
  for (const size_t slot : wanted) OpenSlot(slot);
}

void OpenReceives::OpenSlot(size_t place) {
  uint64_t opened = 0;
  int partition = 0;
  {
    base::MutexLock lock(&mu_);
    Slot& slot = slots_[place];
    slot.state = State::kOpen;  // before the call: its event may come first
    slot.until = clock_->Monotonic() + patience_;
    opened = ++slot.opened;
    partition = slot.partition;
  }
  auto wait = store_->AwaitMessage(partitions_[static_cast<size_t>(partition)], patience_,
                                   [this, place, opened](absl::StatusOr<queue::Message> message) {
                                     return Take(place, opened, std::move(message));
                                   });
  if (!wait.ok()) {
    if (Note(place, opened, State::kFailed)) events_.on_end(wait.status());
    return;
  }
  base::MutexLock lock(&mu_);
  slots_[place].wait = *std::move(wait);
}

bool OpenReceives::Take(size_t slot, uint64_t opened, absl::StatusOr<queue::Message> message) {
  const bool is_over =
      message.ok() || absl::IsNotFound(message.status()) || absl::IsAborted(message.status());
  if (!Note(slot, opened, is_over ? State::kOver : State::kFailed)) return false;
  if (!message.ok()) {
    events_.on_end(message.status());
    return false;
  }
  int partition = 0;
  {
    base::MutexLock lock(&mu_);
    partition = slots_[slot].partition;
  }
  return events_.on_message(partition, *std::move(message));
}

bool OpenReceives::Note(size_t place, uint64_t opened, State state) {
  base::MutexLock lock(&mu_);
  Slot& slot = slots_[place];
  if (slot.opened != opened || slot.state != State::kOpen) return false;
  slot.state = state;
  return true;
}

void OpenReceives::Close() {
  base::MutexLock opening(&open_mu_);
  std::vector<std::unique_ptr<queue::QueueStore::Wait>> ended;
  {
    base::MutexLock lock(&mu_);
    for (Slot& slot : slots_) {
      slot.state = State::kClosed;
      ended.push_back(std::move(slot.wait));
    }
  }
}

bool OpenReceives::cover_all() const {
  base::MutexLock lock(&mu_);
  return slots_.size() == partitions_.size() && can_wait_ &&
         std::all_of(slots_.begin(), slots_.end(),
                     [](const Slot& slot) { return slot.state == State::kOpen; });
}

bool OpenReceives::will_cover_all() const {
  base::MutexLock lock(&mu_);
  return can_wait_ && !crowded_ && slots_.size() == partitions_.size() &&
         std::none_of(slots_.begin(), slots_.end(),
                      [](const Slot& slot) { return slot.state == State::kFailed; });
}

}  // namespace muster::listener
