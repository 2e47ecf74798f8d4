// SPDX-License-Identifier: Apache-2.0

// Subscriber: the code that works on messages; and what passes between it and the listener.
#pragma once

#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/queue/queue_store.h"

namespace muster::listener {

// The outcome of one message. Unset means Retry: an error must never look like success.
struct Settlement {
  enum class Kind {
    kUnset,    // as kRetry, with no delay asked for
    kOk,       // outputs are put durably, then the message is deleted
    kRetry,    // visible again after `delay` (or the retry policy's); poison after max_attempts
    kDefer,    // visible again after `delay`; the attempt is not charged
    kDead,     // to the poison queue at once, with `why`
    kRelease,  // visible again at once, not charged: this worker is stopping
  };
  Kind kind = Kind::kUnset;
  absl::Duration delay = absl::ZeroDuration();
  std::string why;  // one line; kept as the poison message's cause
  // kDefer: not empty when the message is for other listeners. Names what they need and this worker
  // lacks; every worker must use the same words for the same need. The listener then chooses the
  // delay, and announces the message to the others instead of coming back for it (Handover,
  // trigger_sender.h).
  std::string wanted;

  // kOk: messages to put durably into the output queue of the listener before the delete. Outputs
  // that no queue can take (limits.h) turn the settlement into kDead. kDead, and a kRetry that
  // turns out to be the last attempt: see Subscriber::OnGivenUp.
  std::vector<queue::NewMessage> outputs;

  // Called when the message is settled, or when that has failed: on a thread of the listener, which
  // must not be kept waiting. Not called if the lease was lost before the message came to the
  // settler. May be empty.
  std::function<void(const absl::Status&)> on_settled = nullptr;
};

// Packs outputs that are about to be put together into fewer messages with the same content. Called
// on a thread of the listener, with at most one put of messages (limits.h). Adds at most
// kPackingBytes per message.
using OutputPacker = std::function<std::vector<queue::NewMessage>(std::vector<queue::NewMessage>)>;
inline constexpr size_t kPackingBytes = 16;

// A leased message that a subscriber works on. message->interrupted marks a suspect: its last
// holder died while it worked on it.
struct Delivery {
  const queue::Message* message;  // not owned; lives until OnMessages returns
  const queue::QueueId*
      queue;                  // where it came from (a partition); not owned, outlives the listener
  size_t slot = 0;            // its place in the batch; the context's own
  int attempt = 1;            // handler starts charged, this one included
  bool last_attempt = false;  // attempt == max_attempts
  // When the receive that brought it began and ended (Clock::Monotonic).
  absl::Duration asked_at;
  absl::Duration received_at;
};

// The part of the listener that serves one batch; lives until OnMessages returns. Thread-safe.
class DeliveryContext {
 public:
  virtual ~DeliveryContext() = default;

  // Charges the attempt: call it when work on `delivery` really starts. Fills attempt and
  // last_attempt. After an error do not work on the message and do not settle it.
  // FailedPrecondition: the lease is lost. Cancelled: the listener is stopping and has given the
  // message back. Others: the store did not answer; the message will come again.
  virtual absl::Status Begin(Delivery& delivery) = 0;

  // Settles `delivery`, begun or not; the first call counts, later ones are ignored. Returns at
  // once: the settler puts outputs and deletes messages in batches. A delivery that is unsettled
  // when OnMessages returns is settled as kUnset or, when the listener is stopping, as kRelease.
  virtual void Settle(const Delivery& delivery, Settlement settlement) = 0;

  // Fires when `delivery` should be abandoned: its lease is lost, or the listener is stopping.
  virtual std::stop_token stop_token(const Delivery& delivery) = 0;

  // Fires when the listener is stopping: finish or release the current messages soon.
  virtual std::stop_token stop_token() const = 0;
};

// The code behind a listener. One instance per dequeue task, so it need not be thread-safe.
class Subscriber {
 public:
  virtual ~Subscriber() = default;

  // Works on leased messages, in order: for each Begin, work, Settle. An exception ends the batch:
  // messages that were begun and not settled are retried, with the text of the exception as the
  // reason.
  virtual void OnMessages(absl::Span<Delivery> deliveries, DeliveryContext& context) = 0;

  // `message` is about to become poison. The listener first puts the returned messages durably into
  // the output queue, so that a counter of results learns of the loss. Empty: puts nothing. Called
  // on the thread of the task, outside OnMessages.
  virtual std::vector<queue::NewMessage> OnGivenUp(const queue::Message& message,
                                                   const queue::Cause& cause) {
    return {};
  }
};

}  // namespace muster::listener
