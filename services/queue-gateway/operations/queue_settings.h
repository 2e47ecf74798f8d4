// SPDX-License-Identifier: Apache-2.0

// QueueSettings: what the metadata of a queue ask of the gateway beyond Azure's contract.
//
//   muster-maxdequeue  1 to 1,000,000   a message is received so often at most; then it is poison
//   muster-poison      a queue's name   where its poison goes; QUEUE-poison if this is left out
//   muster-longpoll    1 to 50          seconds for which a get waits for a message
//   muster-dedup       1 to 604,800     seconds in which a put is not repeated (queue_store.h)
//   muster-dedup-by    text, request-id what makes two puts one: the text (if left out), or the
//                                       header x-ms-client-request-id
//
// Names count in any case, as those of headers. Other names that begin with "muster-" are refused:
// a setting with a slip would do nothing.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "services/queue-gateway/operations/call.h"
#include "services/queue-gateway/protocol/error.h"

namespace muster::queue_gateway::operations {

enum class DedupBy { kNothing, kText, kRequestId };

struct QueueSettings {
  int max_dequeues = 0;      // 0: no bound
  std::string poison_queue;  // set if max_dequeues is
  absl::Duration long_poll;  // zero: gets do not wait
  // For how long a get leases messages that says nothing of it; nullopt: for the contract's time.
  std::optional<absl::Duration> visibility = std::nullopt;
  DedupBy dedup_by = DedupBy::kNothing;
};

// InvalidMetadata naming what is wrong: a value out of its bounds, a name that is not known, one
// that needs another, or one that the engine cannot heed.
protocol::OrError<QueueSettings> ReadSettings(const queue::Metadata& metadata,
                                              absl::string_view queue_name,
                                              const queue::Traits& traits);

// The metadata that a request wants its queue to have. Errors are those of MetadataOf and
// ReadSettings.
protocol::OrError<queue::Metadata> NewMetadataOf(const Call& call, const Stores& stores);
// Of an engine that was given such metadata: it refuses those that mean something to it, and do not
// say it properly.
protocol::Error FromMetadataStatus(const absl::Status& status);

// Those of a queue that exists. Metadata that ReadSettings refuses, which another program has set,
// count as none. The statuses of the store.
absl::StatusOr<QueueSettings> SettingsOf(const queue::QueueId& queue, const Stores& stores);

}  // namespace muster::queue_gateway::operations
