// What a listener hands to the code that works on messages, and what it gets back.
#pragma once

#include <cstdint>
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
    kUnset,       // as kRetry, with no delay asked for
    kOk,          // outputs are put durably, then the message is deleted
    kRetry,       // visible again after `delay` (or the retry policy's); poison after max_attempts
    kDefer,       // visible again after `delay`; the attempt is not charged
    kDead,        // to the poison queue at once, with `why`
    kRelease,     // visible again at once, not charged: this worker is stopping
  };
  Kind kind = Kind::kUnset;
  absl::Duration delay = absl::ZeroDuration();
  std::string why;  // one line; kept as the poison message's cause

  // kOk: what to put durably into the listener's output queue before the delete.
  // kDead, and kRetry that turns out to be the last attempt: see Subscriber::OnGivenUp.
  std::vector<queue::NewMessage> outputs;
};

// A leased message in the hands of a subscriber.
struct Delivery {
  const queue::Message* message;  // not owned; lives until the delivery is settled
  queue::QueueId queue;           // where it came from (a partition)
  int attempt = 1;                // handler starts charged, this one included
  bool last_attempt = false;      // attempt == max_attempts
};

// A delivery's side of the listener. Thread-safe.
class DeliveryContext {
 public:
  virtual ~DeliveryContext() = default;

  // Charges the attempt: call it when work on `delivery` really starts. Fills attempt and
  // last_attempt. FailedPrecondition: the lease is lost, leave the message alone.
  virtual absl::Status Begin(Delivery& delivery) = 0;

  // Settles `delivery`; exactly one call for each. Returns at once: outputs are put and messages are
  // deleted by the settler, in batches. A delivery that was never settled when OnMessages returns
  // is settled as kUnset.
  virtual void Settle(const Delivery& delivery, Settlement settlement) = 0;

  // Asked to stop: finish or release what is in hand, soon.
  virtual std::stop_token stop_token() const = 0;
};

// The code behind a listener. One instance per dequeue task, so it need not be thread-safe.
class Subscriber {
 public:
  virtual ~Subscriber() = default;

  // Works on leased messages, in order. Begin, work, Settle for each.
  virtual void OnMessages(absl::Span<Delivery> deliveries, DeliveryContext& context) = 0;

  // `message` is about to go to the poison queue. What this returns is put durably into the output
  // queue first, so that whoever counts hears of it. Empty: nobody needs to.
  virtual std::vector<queue::NewMessage> OnGivenUp(const queue::Message& message,
                                                   const queue::Cause& cause) {
    return {};
  }
};

}  // namespace muster::listener
