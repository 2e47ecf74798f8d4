// SPDX-License-Identifier: Apache-2.0

// HeldLog: which deliveries each process holds, so that others give them back at once when it dies.
// Without that, each of them comes again only when its lease lapses.
//
//   holder                                    survivor, to whom the holder has fallen silent
//   ──────                                    ──────────────────────────────────────────────
//   listens on muster.alive.<holder>          asks there: no listener, so the connection ended
//   pulls; notes what it got in a slot        writes the mark "given back", and asks again
//   settles; its slot is free once all        purges the notes: one survivor gets them
//     messages of the slot are settled        gives back what they name (StreamQueue::GiveBackOf)
//
// A holder that is merely slow, or frozen, keeps its connection and with it what it holds. A holder
// that was cut off finds the mark when its connection is back, before it settles anything: it loses
// its leases. Mark and question are in this order on both sides (a holder listens before it looks
// for the mark), so at least one side sees the other.
//
// The notes lie in the memory of the server, one message for each slot; a stream of its own bounds
// them. They are best effort: a message without a note comes again when its lease lapses.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/nats/jetstream.h"
#include "muster/queue/jetstream/stream_layout.h"
#include "muster/queue/queue_store.h"

namespace muster::queue::jetstream {

// Notes of one process and queue. A listener holds some pages of messages for each of its tasks;
// what a process holds beyond this many pages has no note.
inline constexpr int kHeldSlots = 64;
// How long a holder has to say that it lives.
inline constexpr absl::Duration kAliveTimeout = absl::Milliseconds(500);
// After an outage of the server, the other processes have this long to connect again.
inline constexpr absl::Duration kReconnectGrace = absl::Seconds(2);

// One line for each delivery: the subject that acknowledges it.
std::string EncodeHeld(absl::Span<const Delivery> held);
// Leaves out what is no delivery.
std::vector<Delivery> DecodeHeld(absl::string_view text);

// Thread-safe.
class HeldLog {
 public:
  // `holder` names this process, and no other; empty: the log is off, and writes no notes. No
  // pointer is owned. The calls that a worker waits for should be prompt on `jetstream`.
  HeldLog(nats::JetStream* jetstream, std::string holder, const Settings& settings,
          base::Clock* clock);
  // Removes the notes of this process, if it ever wrote any: it has settled what it could.
  ~HeldLog();
  HeldLog(const HeldLog&) = delete;
  HeldLog& operator=(const HeldLog&) = delete;

  bool is_on() const { return !holder_.empty(); }

  // Makes the stream if it does not exist, and answers from now on those who ask for this process.
  absl::Status Open();

  // Replaces the note in `slot`. Does not wait for an answer; best effort.
  void Note(const queue::QueueId& queue, int slot, absl::Span<const Delivery> held);

  // Counts how often others gave back what this process held: leases of an earlier term are lost.
  // After a loss of the connection it looks for the mark first. Unavailable: it cannot look now.
  absl::StatusOr<int64_t> RefreshTerm() ABSL_LOCKS_EXCLUDED(mu_);
  // The last answer of RefreshTerm.
  int64_t term() const { return term_.load(); }

  // Takes the notes of another process. It gets each note at most once over all processes, so the
  // caller must use what it gets. Empty: there are none. FailedPrecondition: the process lives, or
  // may live.
  using Held = std::map<std::pair<std::string, std::string>, std::vector<Delivery>>;
  absl::StatusOr<Held> TakeFrom(const std::string& holder) ABSL_LOCKS_EXCLUDED(mu_);

  // Removes the notes of all holders about a deleted queue, whether or not the log is on: another
  // queue of its name would have messages of the same numbers.
  absl::Status Forget(const queue::QueueId& queue);

 private:
  absl::Status CheckDead(const std::string& holder);
  // FailedPrecondition: this process itself was cut off lately, and others may still be.
  absl::Status CheckConnected() ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<Held> Read(const std::string& holder);
  nats::Connection& connection() const { return *jetstream_->connection(); }

  nats::JetStream* const jetstream_;  // not owned
  const std::string holder_;
  const Settings settings_;
  base::Clock* const clock_;  // not owned
  std::unique_ptr<nats::Connection::Subscription> alive_;
  std::atomic<bool> has_notes_ = false;
  std::atomic<int64_t> term_ = 0;
  std::atomic<int64_t> looked_after_ = 0;  // reconnections before the last look for the mark

  base::Mutex mu_;  // held during a look for the mark, so that the others wait for its result
  int64_t seen_reconnects_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Duration trusted_from_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
};

// HeldMessages: the notes of one queue, and what is in them. Thread-safe.
class HeldMessages {
 public:
  // `log` is not owned.
  HeldMessages(queue::QueueId queue, HeldLog* log) : queue_(std::move(queue)), log_(log) {}

  // Notes deliveries that came together. When all slots are in use, the oldest one is given up.
  void Add(absl::Span<const Delivery> received) ABSL_LOCKS_EXCLUDED(mu_);
  // The message is settled. The note may still name it: nothing can be given back of it.
  void Settled(const Delivery& delivery) ABSL_LOCKS_EXCLUDED(mu_);
  // The messages are about to be given back: another process may hold them soon, so the notes name
  // them no more.
  void GivingBack(absl::Span<const Delivery> deliveries) ABSL_LOCKS_EXCLUDED(mu_);
  void Clear() ABSL_LOCKS_EXCLUDED(mu_);
  bool empty() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Slot {
    std::vector<Delivery> held;
    uint64_t filled = 0;  // by the order of Add
  };

  int FreeSlotLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns the slot that had the delivery; -1: none.
  int RemoveLocked(uint64_t sequence, int deliveries) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const queue::QueueId queue_;
  HeldLog* const log_;  // not owned

  base::Mutex mu_;
  uint64_t fills_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<Slot> slots_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<uint64_t, int> slot_of_ ABSL_GUARDED_BY(mu_);  // by sequence
};

}  // namespace muster::queue::jetstream
