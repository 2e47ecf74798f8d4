// SPDX-License-Identifier: Apache-2.0

// What operators do about held keys: list them with their dead letters, release them, redrive them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "muster/item/held_keys.h"
#include "muster/item/redrive.h"
#include "muster/queue/queue_store.h"

namespace muster::item {

struct HeldKeyView {
  HeldKey held;
  std::string message_id;  // of its dead letter; empty: it was redriven, and waits or is at work
  queue::Cause cause;      // of its dead letter
};

// Of the partitions of a job.
struct HeldSummary {
  size_t keys = 0;
  std::vector<queue::QueueId> partitions;  // that hold some
};

struct HeldKeyRequest {
  queue::QueueId queue;
  std::vector<std::string> keys;  // empty: all that are held
};

struct HeldKeyRedrive {
  RedriveSummary summary;
  std::vector<std::string> without_dead_letter;  // keys; they stay held
};

absl::StatusOr<HeldSummary> CountHeldKeys(absl::Span<const queue::QueueId> partitions,
                                          HeldKeyStore& keys);
// For people, with what to do; empty: nothing is held. The commands get `options`.
std::string InWords(const HeldSummary& held, absl::string_view options = "");

// (batch, item) → the message id and cause of each of `held` that is among the dead letters of the
// queue. Reads the poison queue page by page only for keys whose message is not known, until all of
// these are found.
absl::StatusOr<std::vector<HeldKeyView>> FindDeadLetters(const queue::QueueId& queue,
                                                         absl::Span<const HeldKey> held,
                                                         queue::QueueStore& queues);

// NotFound: the queue is not there.
absl::StatusOr<std::vector<HeldKeyView>> ListHeldKeys(const queue::QueueId& queue,
                                                      queue::QueueStore& queues,
                                                      HeldKeyStore& keys);

// Returns those released; the caller sends the trigger of the queue. NotFound: one that is named is
// not held, and nothing was done.
absl::StatusOr<std::vector<HeldKeyView>> ReleaseHeldKeys(const HeldKeyRequest& request,
                                                         queue::QueueStore& queues,
                                                         HeldKeyStore& keys);

// Redrives their dead letters, as RedriveItems. Each is worked on before the later items of its
// key, on every engine, because these do not begin while the key is held. FailedPrecondition: none
// of the keys has a dead letter.
absl::StatusOr<HeldKeyRedrive> RedriveHeldKeys(const HeldKeyRequest& request,
                                               queue::QueueStore& queues, HeldKeyStore& keys,
                                               BatchReopener& reopener);

// Drops all poison messages, and lets the keys go on that were held behind them. Returns how many
// messages.
absl::StatusOr<int64_t> PurgePoison(const queue::QueueId& queue, queue::QueueStore& queues,
                                    HeldKeyStore& keys);

}  // namespace muster::item
