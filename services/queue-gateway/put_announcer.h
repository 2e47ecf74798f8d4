// SPDX-License-Identifier: Apache-2.0

// PutAnnouncer: tells the listeners of a mesh, by multicast, that clients have put messages.
// AnnouncingStore: a queue store that has it told of each put.
//
//   Put ─► OnPut: noted ─► thread: first put of a burst at once, then once an interval, and its end
//
// A put waits for no announcement: thousands of clients put one message each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/bus/trigger_bus.h"
#include "muster/queue/queue_store.h"
#include "muster/queue/store_decorators.h"

namespace muster::queue_gateway {

// Between two triggers for one queue: what a listener that sleeps may wait for the end of a burst.
inline constexpr absl::Duration kAnnounceInterval = absl::Milliseconds(20);
// With puts in the last interval, some hundred bytes each. Of further ones, listeners learn by
// their safety checks.
inline constexpr size_t kMaxAnnouncedQueues = 10'000;

// Thread-safe. Best effort, as the bus: an event that cannot be sent is lost. Has one thread, which
// sleeps while no client puts.
class PutAnnouncer {
 public:
  // Neither pointer is owned; both outlive this. `instance`: the sender that the events name.
  PutAnnouncer(bus::TriggerBus* bus, std::string instance, base::Clock* clock);
  // Sends what is noted, once, and ends the thread.
  ~PutAnnouncer();

  // `messages` messages were put. Does not wait.
  void OnPut(const queue::QueueId& queue, int64_t messages) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Burst {
    int64_t unannounced = 0;
    absl::Duration next;  // when it may be announced again, on the monotonic clock
  };
  struct Due {
    queue::QueueId queue;
    int64_t messages;
  };

  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  // Takes what may be announced now, and forgets the queues without a put in the last interval.
  std::vector<Due> TakeDueLocked(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Duration NextLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Announce(const std::vector<Due>& due);

  bus::TriggerBus* const bus_;  // not owned
  const std::string instance_;
  base::Clock* const clock_;  // not owned
  base::Mutex mu_;
  base::CondVar changed_;
  absl::flat_hash_map<queue::QueueId, Burst> bursts_ ABSL_GUARDED_BY(mu_);
  bool ends_ ABSL_GUARDED_BY(mu_) = false;
  bool failed_ = false;  // the last event could not be sent; only the thread uses it
  std::thread thread_;
};

// Thread-safe.
class AnnouncingStore final : public queue::InterceptedStore {
 public:
  // Neither pointer is owned.
  AnnouncingStore(queue::QueueStore* behind, PutAnnouncer* announcer)
      : InterceptedStore(behind), announcer_(announcer) {}

  absl::StatusOr<std::vector<queue::PutResult>> Put(
      const queue::QueueId& queue, absl::Span<const queue::NewMessage> messages) override {
    auto put = InterceptedStore::Put(queue, messages);
    if (put.ok()) announcer_->OnPut(queue, static_cast<int64_t>(messages.size()));
    return put;
  }
  std::vector<absl::StatusOr<std::vector<queue::PutResult>>> PutEach(
      absl::Span<const queue::ForQueue<queue::NewMessage>> puts) override {
    return QueueStore::PutEach(puts);  // each by Put
  }

 private:
  PutAnnouncer* const announcer_;  // not owned
};

}  // namespace muster::queue_gateway
