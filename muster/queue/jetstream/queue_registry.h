// QueueRegistry: the queues that there are. Makes, deletes and lists them, keeps their metadata,
// and hands out the StreamQueue of each.
#pragma once

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

// NotFound.
absl::Status NoQueue(const queue::QueueId& queue);

// The verbs have queue_store.h's contracts, and check their arguments. Thread-safe.
class QueueRegistry {
 public:
  // Nothing is owned; all outlives the registry.
  QueueRegistry(JetStreamClients clients, AttemptLog* notes, DeadLetterStore* poison,
                const Options* options)
      : clients_(clients),
        jetstream_(clients.bulk),
        attempt_log_(notes),
        poison_(poison),
        options_(options) {}

  absl::Status Create(const queue::QueueId& queue, const queue::Metadata& metadata);
  absl::Status Delete(const queue::QueueId& queue);
  absl::StatusOr<std::vector<queue::QueueInfo>> List(const queue::ListQueuesRequest& request);
  absl::StatusOr<queue::Metadata> GetMetadata(const queue::QueueId& queue);
  absl::Status SetMetadata(const queue::QueueId& queue, const queue::Metadata& metadata);

  // NotFound: there is no such queue. Shared with verbs that are under way while a queue is
  // deleted.
  absl::StatusOr<std::shared_ptr<StreamQueue>> Find(const queue::QueueId& queue);
  // Whether the server says that the queue is not there (any more), or not as Create made it:
  // somebody put another stream in its place, or gave its subject away. Create says what is in its
  // place.
  bool IsGone(const queue::QueueId& queue);

 private:
  absl::StatusOr<queue::Metadata> ReadMetadata(const queue::QueueId& queue);
  // Makes what of the queue is not there, and brings the settings of the rest up to date. Answers
  // the metadata that it has: `metadata`, or others that were there.
  absl::StatusOr<queue::Metadata> Make(const queue::QueueId& queue,
                                       const queue::Metadata& metadata);
  // The metadata of a queue that Make ended for once, if all of it is there still.
  std::optional<queue::Metadata> IfMade(const queue::QueueId& queue);
  // How long leases of a queue with this metadata last.
  absl::Duration LeaseBy(const queue::Metadata& metadata) const {
    return queue::VisibilityOf(metadata).value_or(options_->settings.lease);
  }
  // Has the consumer's leases last as `metadata` says.
  absl::Status EnsureConsumer(const queue::QueueId& queue, const queue::Metadata& metadata);
  // Looks at how long the consumer has leases last. NotFound: there is none.
  absl::Status RefreshLease(const queue::QueueId& queue);
  absl::StatusOr<bool> IsAsMade(const queue::QueueId& queue);
  void Forget(const queue::QueueId& queue);

  const JetStreamClients clients_;
  nats::JetStream* const jetstream_;  // not owned
  AttemptLog* const attempt_log_;     // not owned
  DeadLetterStore* const poison_;     // not owned
  const Options* const options_;      // not owned

  base::Mutex mu_;
  // Those that were seen.
  absl::flat_hash_map<queue::QueueId, std::shared_ptr<StreamQueue>> queues_ ABSL_GUARDED_BY(mu_);
  // Those whose streams and consumer have today's settings: to make them again takes two requests
  // instead of five.
  absl::flat_hash_set<queue::QueueId> made_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::queue::jetstream
