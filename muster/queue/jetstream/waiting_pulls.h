// SPDX-License-Identifier: Apache-2.0

// WaitingPulls: the pulls of this process that wait at the server for a message
// (QueueStore::AwaitMessage).
//
//   Begin ─► pull, expires after the patience ─┬─ a message ─────────► take ─► taken, or back
//              ▲                               ├─ the server's status ─► take: why no message came
//              │                               └─ the wait is ended ──► given back
//              └── sent again after a reconnect, and to a new leader of the consumer
//
// All waits share one subscription, and so one thread, however many queues they are of: the server
// delivers a pulled message under the subject of its stream, and the subject that acknowledges it
// names the stream. A pull cannot be called back. The one that a wait leaves behind when it is
// ended takes one more message at most, until it expires; this message is given to another wait of
// its queue, or back at once. With the end of the connection the server drops its pulls; before
// that, the subscription is drained, so that no message is on its way to a process that is gone.
//
// In a cluster the pulls wait at the leader of the consumer, and die with it, or when another
// server takes the lead, which only newer servers say to who waits. The new leader announces itself
// to all (ADR-1's advisories); a user of NATS that may not hear it waits until its patience is at
// an end.
//
// nats-server 2.9 does not always say that a pull has expired (seen with 2.9.10): a caller that
// waits ends the wait by a clock of its own. It also forgets a message that is due again, until its
// lease ends, if the only pull that waits has expired, or was given up, a moment ago (consumer.go:
// "sseq--"). So whoever asks every few milliseconds leaves pulls of seconds behind, which the next
// call takes over (Ask).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/nats/connection.h"
#include "muster/queue/queue_store.h"

namespace muster::queue::jetstream {

// Waits of one process. Each listener has a few.
inline constexpr size_t kMaxWaits = 4096;

// A message for a wait. It was delivered no earlier than `asked` on the monotonic clock.
struct Arrival {
  nats::Incoming message;
  absl::Duration asked;
};

// Thread-safe.
class WaitingPulls {
 public:
  // As QueueStore::TakeMessage. Calls to the server are allowed: its answers come on other threads.
  using Take = std::function<bool(absl::StatusOr<Arrival>)>;

  // Neither pointer is owned. The connection should be prompt.
  WaitingPulls(nats::Connection* connection, base::Clock* clock);
  // All waits have ended. Gives back what the server has sent meanwhile.
  ~WaitingPulls();
  WaitingPulls(const WaitingPulls&) = delete;
  WaitingPulls& operator=(const WaitingPulls&) = delete;

  // Without a connection the pull is sent when there is one. ResourceExhausted: kMaxWaits.
  // Unavailable: it cannot be sent.
  absl::StatusOr<std::unique_ptr<queue::QueueStore::Wait>> Begin(const queue::QueueId& queue,
                                                                 absl::Duration patience, Take take)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Waits here for one message, for `patience` at most; nullopt: none came. Its lease began after
  // the call did, unless the thread of all waits was held up. What comes after the call, until it
  // is called again, is given back at once, and counts as delivered once more. ResourceExhausted:
  // as Begin. Unavailable: the pull cannot be sent, or the server has ended it.
  absl::StatusOr<std::optional<nats::Incoming>> Ask(const queue::QueueId& queue,
                                                    absl::Duration patience)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  class Handle;
  struct Entry {
    queue::QueueId queue;
    absl::Duration asked;  // monotonic
    absl::Duration until;  // likewise
    Take take;
    bool leaves_pull;  // to the next Ask
  };
  // A pull that waits at the server, and that no entry waits for.
  struct LeftPull {
    queue::QueueId queue;
    absl::Duration until;  // monotonic
  };

  absl::Status Subscribe() ABSL_LOCKS_EXCLUDED(mu_);
  // Makes an entry, and sends its pull unless one was left for it.
  absl::StatusOr<std::unique_ptr<queue::QueueStore::Wait>> Enter(Entry entry)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Finds a pull that was left for an entry of `queue`, and forgets it. 0: there is none.
  uint64_t TakeOver(const queue::QueueId& queue, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Pull(uint64_t id, const queue::QueueId& queue, absl::Duration patience);
  // Sends the pulls again that waited where they wait no more: those of `queue`; null: all.
  void PullAgain(const queue::QueueId* queue) ABSL_LOCKS_EXCLUDED(mu_);
  void OnNewLeader(const nats::Incoming& advisory);
  void OnMessage(const nats::Incoming& message) ABSL_LOCKS_EXCLUDED(mu_);
  // Takes the wait for which `message` is, and notes that it runs. nullopt: there is none.
  std::optional<Entry> Match(const nats::Incoming& message) ABSL_LOCKS_EXCLUDED(mu_);
  void End(uint64_t id) ABSL_LOCKS_EXCLUDED(mu_);

  nats::Connection* const connection_;  // not owned
  base::Clock* const clock_;            // not owned
  const std::string inbox_;

  base::Mutex subscribe_mu_;  // held while the subscription is made: other waits need it, too
  std::unique_ptr<nats::Connection::Subscription> subscription_ ABSL_GUARDED_BY(subscribe_mu_);
  std::unique_ptr<nats::Connection::Subscription> leaders_ ABSL_GUARDED_BY(subscribe_mu_);
  std::unique_ptr<nats::Connection::Following> following_ ABSL_GUARDED_BY(subscribe_mu_);

  base::Mutex mu_;
  base::CondVar changed_;
  std::map<uint64_t, Entry> entries_ ABSL_GUARDED_BY(mu_);  // by id: the oldest first
  std::map<uint64_t, LeftPull> left_ ABSL_GUARDED_BY(mu_);  // by id; each for seconds
  uint64_t last_id_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t running_ ABSL_GUARDED_BY(mu_) = 0;  // the wait whose take runs; 0: none
};

}  // namespace muster::queue::jetstream
