// SPDX-License-Identifier: Apache-2.0

// ConsumerReader: reads a partition by a pull consumer of its own.
//
//   server ── pull: up to kPullEvents, kPullBytes, waiting ──► buffer ── Next ──► caller
//
// The reader asks for more while the caller works on what it has, once half of a pull is left in
// the buffer. The server forgets nothing by delivering: a consumer is only a place in the stream.
// So when anything goes wrong (a lost connection, a lost consumer, a gap in the sequences,
// silence), the reader leaves its consumer and makes another one at its own place.
//
// A reader that waits has one pull at the server, which it renews when it expires, by default every
// half minute; the server says three times in that that it is there. The consumer lies in the
// server's memory, and goes kConsumerExpires after the last pull, also when the reader's process
// died.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/nats/jetstream.h"
#include "muster/stream/event_stream_store.h"
#include "muster/stream/jetstream/consumer_inbox.h"

namespace muster::stream::jetstream {

// A reader holds at most one and a half pulls, and one event more.
inline constexpr int kPullEvents = 1000;
inline constexpr int64_t kPullBytes = int64_t{2} << 20;
inline constexpr absl::Duration kConsumerExpires = absl::Minutes(1);
// A reader that had no pull for so long looks whether its place is still kept: shorter, no event
// can have come and gone by its age (kMinRetention).
inline constexpr absl::Duration kMaxBlind = absl::Milliseconds(500);

// Where a reader reads: a stream of the server, as it was when the reader was opened.
struct ServerPartition {
  std::string name;    // for messages: "stream 'a' partition 3"
  std::string stream;  // of the server
  absl::Time created;  // tells it from a later one of this name
};

class ConsumerReader final : public PartitionReader, private Receiver {
 public:
  // Borrows all but `partition`.
  ConsumerReader(nats::JetStream* jetstream, ConsumerInbox* inbox, base::Clock* clock,
                 absl::Duration pull_expires, ServerPartition partition, int64_t offset);
  // Does not wait for the server.
  ~ConsumerReader() override;

  // Unavailable: the server does not answer; call again. A Cancel ends the waits for events, but
  // not the few calls to the server, which take JetStream::timeout() each at most.
  absl::StatusOr<std::vector<Event>> Next(int max_events, absl::Duration wait) override
      ABSL_LOCKS_EXCLUDED(mu_);
  void Cancel() override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // What to do next, to get events.
  enum class Step { kTake, kEnd, kPull, kResume };

  void Take(const nats::Incoming& message) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnReconnect() override ABSL_LOCKS_EXCLUDED(mu_);
  void TakeStatusLocked(const nats::Incoming& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TakeEventLocked(const nats::Incoming& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Waits until there is something to do. `patience`: until when events are waited for that are
  // there, however short the caller's wait is.
  Step Await(absl::Duration deadline, absl::Duration patience) ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::vector<Event>> TakeBuffered(int max_events) ABSL_LOCKS_EXCLUDED(mu_);
  // Makes a consumer at the reader's place.
  absl::Status Resume() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status MakeConsumer(const std::string& consumer, int64_t place);
  void LeaveConsumer() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Pull() ABSL_LOCKS_EXCLUDED(mu_);
  void PullAhead() ABSL_LOCKS_EXCLUDED(mu_);
  // NotFound, OutOfRange, or what the call to the server says; notes where the events end.
  absl::Status CheckPlace() ABSL_LOCKS_EXCLUDED(mu_);
  bool HasRoomLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  nats::JetStream* const jetstream_;  // not owned
  ConsumerInbox* const inbox_;        // not owned
  base::Clock* const clock_;          // not owned
  const absl::Duration pull_expires_;
  const absl::Duration heartbeat_;  // of the server, while a pull waits
  const absl::Duration silence_;    // two heartbeats, and some delay: the consumer is gone
  const ServerPartition partition_;
  std::string consumer_;  // empty: none yet; used by the caller's thread only

  base::Mutex mu_;
  base::CondVar changed_;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  bool broken_ ABSL_GUARDED_BY(mu_) = true;      // the consumer is of no use
  int64_t place_ ABSL_GUARDED_BY(mu_);           // of the next event for the caller
  int64_t expected_ ABSL_GUARDED_BY(mu_);        // of the next event from the server
  int64_t known_next_ ABSL_GUARDED_BY(mu_) = 0;  // the events before it are there
  int gaps_ ABSL_GUARDED_BY(mu_) = 0;            // found in a row at expected_
  int pulled_ ABSL_GUARDED_BY(mu_) = 0;          // events that the pull may still bring
  absl::Duration pull_ended_ ABSL_GUARDED_BY(mu_);
  absl::Duration heard_ ABSL_GUARDED_BY(mu_);  // the server's last sign of life
  // An event, or why it cannot be read.
  std::deque<absl::StatusOr<Event>> buffer_ ABSL_GUARDED_BY(mu_);
  int64_t buffered_bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace muster::stream::jetstream
