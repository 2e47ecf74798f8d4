// SPDX-License-Identifier: Apache-2.0

// QueueRegistry: makes, deletes and lists queues, keeps their metadata, and hands out the
// StreamQueue of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/mutex.h"
#include "muster/nats/jetstream.h"
#include "muster/queue/jetstream/attempt_log.h"
#include "muster/queue/jetstream/dead_letter_store.h"
#include "muster/queue/jetstream/jetstream_queue_store.h"
#include "muster/queue/jetstream/stream_queue.h"
#include "muster/queue/queue_store.h"

namespace muster::queue::jetstream {

// Returns the NotFound error for `queue`.
absl::Status NoQueue(const queue::QueueId& queue);

// Queues that a process has used, and that are remembered before it looks which of them it may
// forget. Some kilobytes each, and clients may use each name once: another process that deletes the
// queue tells nobody.
inline constexpr size_t kMaxIdleQueues = 1024;

// The verbs follow the contracts of queue_store.h and check their arguments. Thread-safe.
class QueueRegistry {
 public:
  // No pointer is owned; all must outlive the registry.
  QueueRegistry(JetStreamClients clients, Notes notes, DeadLetterStore* poison,
                const Options* options, size_t max_idle = kMaxIdleQueues)
      : max_idle_(max_idle),
        clients_(clients),
        jetstream_(clients.bulk),
        notes_(notes),
        poison_(poison),
        options_(options) {}

  absl::Status Create(const queue::QueueId& queue, const queue::Metadata& metadata)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Delete(const queue::QueueId& queue) ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::vector<queue::QueueInfo>> List(const queue::ListQueuesRequest& request)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<queue::Metadata> GetMetadata(const queue::QueueId& queue) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status SetMetadata(const queue::QueueId& queue, const queue::Metadata& metadata)
      ABSL_LOCKS_EXCLUDED(mu_);

  // NotFound: there is no such queue. The pointer is shared, so that running verbs can finish while
  // another call deletes the queue.
  absl::StatusOr<std::shared_ptr<StreamQueue>> Find(const queue::QueueId& queue)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Whether the server says that the queue no longer exists, or is not as Create made it: another
  // stream is in its place, or has its subject. Create then says what is in the way.
  bool IsGone(const queue::QueueId& queue) ABSL_LOCKS_EXCLUDED(mu_);

  // How many queues are remembered.
  size_t remembered() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::StatusOr<queue::Metadata> ReadMetadata(const queue::QueueId& queue)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Makes the missing parts of the queue and brings the settings of the others up to date. Returns
  // the metadata of the queue: `metadata`, or the metadata that it already had.
  //
  // One client at a time makes the consumer: the client whose compare-and-set wrote the metadata
  // last. The others wait for the consumer, and take over when it does not come. nats-server before
  // 2.9.22 sometimes makes two consumers of one name for two simultaneous requests
  // (nats-server pull request 4377), and the pulls of that name are never answered again.
  //
  // Another process may delete the queue meanwhile, part by part: then it is made anew.
  absl::StatusOr<queue::Metadata> Make(const queue::QueueId& queue, const queue::Metadata& metadata)
      ABSL_LOCKS_EXCLUDED(mu_);
  // NotFound: a part is gone that was there before.
  absl::StatusOr<queue::Metadata> MakeOnce(const queue::QueueId& queue,
                                           const queue::Metadata& metadata)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Replaces the metadata message with the sequence `replaced` (0: there is none). The error
  // kWrongLastSequence: another client has written it meanwhile.
  absl::Status WriteMetadata(const queue::QueueId& queue, const queue::Metadata& metadata,
                             uint64_t replaced) ABSL_LOCKS_EXCLUDED(mu_);
  // Waits for the consumer that another client makes. False: it has not come, so its maker may be
  // gone. NotFound: the queue is being deleted.
  absl::StatusOr<bool> AwaitConsumer(const queue::QueueId& queue) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the metadata of a queue that Make has completed before, if all of it still exists.
  std::optional<queue::Metadata> IfMade(const queue::QueueId& queue) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns how long the leases of a queue with this metadata last.
  absl::Duration LeaseBy(const queue::Metadata& metadata) const {
    return queue::VisibilityOf(metadata).value_or(options_->settings.lease);
  }
  // Sets the lease duration of the consumer to that in `metadata`.
  absl::Status EnsureConsumer(const queue::QueueId& queue, const queue::Metadata& metadata)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Has the StreamQueue follow, if this process has used the queue.
  void FollowLease(const queue::QueueId& queue, absl::Duration lease) ABSL_LOCKS_EXCLUDED(mu_);
  // Reads the lease duration from the consumer. NotFound: there is no consumer.
  absl::Status RefreshLease(const queue::QueueId& queue) ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<bool> IsAsMade(const queue::QueueId& queue) ABSL_LOCKS_EXCLUDED(mu_);
  void Forget(const queue::QueueId& queue) ABSL_LOCKS_EXCLUDED(mu_);
  // Forgets the queues that no call uses and of which nothing is held, once there are many.
  void ForgetIdleLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const size_t max_idle_;
  const JetStreamClients clients_;
  nats::JetStream* const jetstream_;  // not owned
  const Notes notes_;
  DeadLetterStore* const poison_;  // not owned
  const Options* const options_;   // not owned

  base::Mutex mu_;
  // The queues that this process has used.
  absl::flat_hash_map<queue::QueueId, std::shared_ptr<StreamQueue>> queues_ ABSL_GUARDED_BY(mu_);
  // The queues with up-to-date streams and consumer: to make such a queue again takes two requests
  // instead of five.
  absl::flat_hash_set<queue::QueueId> made_ ABSL_GUARDED_BY(mu_);
  // Grows with what cannot be forgotten, so that each look is paid for by as many new queues.
  size_t look_at_ ABSL_GUARDED_BY(mu_) = max_idle_;
};

}  // namespace muster::queue::jetstream
