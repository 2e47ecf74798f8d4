// What a receipt of this engine holds: where the server hears of the delivery.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/queue/queue_store.h"

namespace muster::queue::jetstream {

// One delivery of a message, as the subject says that acknowledges it:
//
//   $JS.ACK.<stream>.<consumer>.<deliveries>.<stream sequence>.<consumer sequence>.<time>.<pending>
//
// or, with a domain and the hash of an account before the stream, and more behind it.
struct Delivery {
  std::string ack_subject;
  uint64_t sequence = 0;  // of the message in its stream
  int deliveries = 0;     // this one included
  absl::Time stored;      // when the stream took the message
};

// InvalidArgument: not such a subject.
absl::StatusOr<Delivery> ParseAckSubject(absl::string_view subject);

// Of a message that was delivered, or (Put) stored under `sequence`.
queue::Receipt ReceiptOf(const queue::QueueId& queue, const Delivery& delivery);
queue::Receipt ReceiptOfPut(const queue::QueueId& queue, uint64_t sequence);

struct ReadReceipt {
  bool of_put = false;
  Delivery delivery;  // of a put: only its sequence
};

// InvalidArgument: not a receipt of this queue.
absl::StatusOr<ReadReceipt> ParseReceipt(const queue::QueueId& queue, absl::string_view receipt);

}  // namespace muster::queue::jetstream
