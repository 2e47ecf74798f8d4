// What a listener hands to the code that works on messages, and what it gets back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/queue/queue_store.h"

namespace muster::listener {

// What happened to one message. Unset means Retry: an error must never look like success.
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
  // kDefer: not empty when the message is for others, that have what this worker has not. Names
  // what is wanted, in the same words whoever lacks it. The listener then chooses the delay, and
  // announces the message to the others instead of coming back for it (handover.h).
  std::string wanted;

  // kOk: what to put durably into the listener's output queue before the delete. Outputs that no
  // queue can take (limits.h) turn the settlement into kDead.
  // kDead, and kRetry that turns out to be the last attempt: see Subscriber::OnGivenUp.
  std::vector<queue::NewMessage> outputs;
};

// Makes fewer messages of outputs that are about to be put together, and that say the same. Called
// on a thread of the listener's, with at most one put's worth (limits.h); adds at most
// kPackingBytes for each of them.
using OutputPacker = std::function<std::vector<queue::NewMessage>(std::vector<queue::NewMessage>)>;
inline constexpr size_t kPackingBytes = 16;

// A leased message in the hands of a subscriber. message->interrupted marks a suspect: its last
// holder died with it.
struct Delivery {
  const queue::Message* message;  // not owned; lives until OnMessages returns
  const queue::QueueId*
      queue;                  // where it came from (a partition); not owned, outlives the listener
  size_t slot = 0;            // its place in the batch; the context's own
  int attempt = 1;            // handler starts charged, this one included
  bool last_attempt = false;  // attempt == max_attempts
};

// A batch's side of the listener; lives until OnMessages returns. Thread-safe.
class DeliveryContext {
 public:
  virtual ~DeliveryContext() = default;

  // Charges the attempt: call it when work on `delivery` really starts. Fills attempt and
  // last_attempt. On any error leave the message alone, it needs no Settle either:
  // FailedPrecondition: the lease is lost. Cancelled: the listener is stopping and has given the
  // message back. Others: the store could not be asked; the message will come again.
  virtual absl::Status Begin(Delivery& delivery) = 0;

  // Settles `delivery`; the first call counts, later ones are ignored. Returns at once: outputs are
  // put and messages are deleted by the settler, in batches. A delivery that was never settled when
  // OnMessages returns is settled as kUnset, or, when the listener is stopping, as kRelease.
  virtual void Settle(const Delivery& delivery, Settlement settlement) = 0;

  // Fires when `delivery` should be abandoned: its lease is lost, or the listener is stopping.
  virtual std::stop_token stop_token(const Delivery& delivery) = 0;

  // Fires when the listener is stopping: finish or release what is in hand, soon.
  virtual std::stop_token stop_token() const = 0;
};

// The code behind a listener. One instance per dequeue task, so it need not be thread-safe.
class Subscriber {
 public:
  virtual ~Subscriber() = default;

  // Works on leased messages, in order. Begin, work, Settle for each. An exception ends the batch:
  // what was begun and not settled is retried, with the exception's text as the reason.
  virtual void OnMessages(absl::Span<Delivery> deliveries, DeliveryContext& context) = 0;

  // `message` is about to go to the poison queue. What this returns is put durably into the output
  // queue first, so that whoever counts hears of it. Empty: nobody needs to. Called on the task's
  // thread, outside OnMessages.
  virtual std::vector<queue::NewMessage> OnGivenUp(const queue::Message& message,
                                                   const queue::Cause& cause) {
    return {};
  }
};

}  // namespace muster::listener
