// SPDX-License-Identifier: Apache-2.0

// Redelivery: has the messages come again that cannot be counted yet, as each of them may:
//
//   its batch's ledger is away          given back for a pause (AwayLedgers)
//     and every initiator says no       moved to the tail, once that has moved on
//   its batch was deleted meanwhile     given back at once
//   this controller cannot read it      left until its lease lapses
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/queue/queue_store.h"
#include "services/controller/away_ledgers.h"

namespace muster::controller {

// Of one partition. Not thread-safe. What it does is best effort: a message that it could not give
// back or move comes again when its lease lapses.
class Redelivery {
 public:
  // `lease`: of the messages that are received. `away`, `queues` and `clock` are not owned.
  Redelivery(queue::QueueId partition, absl::Duration lease, AwayLedgers* away,
             queue::QueueStore* queues, base::Clock* clock)
      : partition_(std::move(partition)),
        lease_(lease),
        away_(away),
        queues_(queues),
        clock_(clock) {}

  // The message has a result of `batch`, which AwayLedgers has as away.
  void ComeLater(uint64_t batch, queue::Message message);
  void ComeAtOnce(queue::Receipt receipt);
  // The message comes again when its lease lapses. Logs `what` from time to time.
  void LeaveUntilLapse(absl::string_view what, const absl::Status& why);

  // Messages that Send is to give back or move.
  size_t pending() const { return put_back_.size() + copies_.size(); }
  void Send();

  // When to look again for messages that come later; infinite: there are none.
  absl::Duration ComesAgainIn();

 private:
  // Whether a message that waits is to go to the tail of its queue. At the head it would keep the
  // initiators from seeing what the queue has lost without a scan (LostItemDetector). Not the
  // results of a batch whose initiator answers: it would take them for lost.
  bool GoesToTheTail(uint64_t batch, const queue::Message& message);
  void PutAtTheTail();

  const queue::QueueId partition_;
  const absl::Duration lease_;
  AwayLedgers* const away_;          // not owned
  queue::QueueStore* const queues_;  // not owned
  base::Clock* const clock_;         // not owned

  // Since the last Send.
  std::vector<queue::UpdateRequest> put_back_;
  // Copies of messages that go to the tail, and the receipts of the originals.
  std::vector<queue::NewMessage> copies_;
  std::vector<queue::Receipt> copied_;
  // Messages that wait below this position go to the tail; it is set anew from time to time, so
  // that none goes there twice in a row.
  uint64_t tail_ = 0;
  absl::Duration sets_tail_ = -absl::InfiniteDuration();  // when, monotonic
  absl::Duration left_until_;   // until then, messages that were left may come again
  absl::Duration tells_again_;  // when to log again about messages that were left
};

}  // namespace muster::controller
