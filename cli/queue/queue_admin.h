// SPDX-License-Identifier: Apache-2.0

// QueueAdmin: reads and changes queues for `muster queue`, in a data directory or on a server.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/output/environment.h"
#include "muster/item/held_key_admin.h"
#include "muster/item/redrive.h"
#include "muster/queue/queue_store.h"

namespace muster::cli {

struct QueueCounts {
  queue::QueueId id;
  queue::QueueStats stats;
};

// Statuses are the store's, or the service's. Not thread-safe.
class QueueAdmin {
 public:
  virtual ~QueueAdmin() = default;

  // All queues of an account, in order of name.
  virtual absl::StatusOr<std::vector<QueueCounts>> List(const std::string& account) = 0;
  virtual absl::StatusOr<queue::QueueStats> Stats(const queue::QueueId& id) = 0;
  virtual absl::StatusOr<std::vector<queue::Message>> Peek(const queue::QueueId& id, int max) = 0;
  // Up to `max` behind the message `after`, the oldest first; "": from the oldest.
  virtual absl::StatusOr<std::vector<queue::PoisonMessage>> Poison(const queue::QueueId& id,
                                                                   const std::string& after,
                                                                   int max) = 0;
  virtual absl::StatusOr<item::RedriveSummary> Redrive(const item::RedriveRequest& request) = 0;
  // Keys that are held in a queue, as item::ListHeldKeys, item::ReleaseHeldKeys and
  // item::RedriveHeldKeys.
  virtual absl::StatusOr<std::vector<item::HeldKeyView>> Held(const queue::QueueId& id) = 0;
  virtual absl::StatusOr<std::vector<item::HeldKeyView>> Release(
      const item::HeldKeyRequest& request) = 0;
  virtual absl::StatusOr<item::HeldKeyRedrive> RedriveHeld(const item::HeldKeyRequest& request) = 0;
  // Answers how many messages were dropped; the keys that they hold are released.
  virtual absl::StatusOr<int64_t> PurgePoison(const queue::QueueId& id) = 0;
  // Deletes all messages but poison.
  virtual absl::Status Purge(const queue::QueueId& id) = 0;
};

// The queues of the data directory, or of the server, that `options` name. Nothing is opened before
// it is asked for.
absl::StatusOr<std::unique_ptr<QueueAdmin>> OpenQueueAdmin(const CommonOptions& options,
                                                           const Environment& environment);

}  // namespace muster::cli
