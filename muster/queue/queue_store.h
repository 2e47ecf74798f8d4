// QueueStore: the seam between everything that queues and the engine that keeps the messages.
//
// A queue holds messages. A message is ready, delayed (put for later), in flight (leased to a
// receiver for its visibility timeout) or poison (given up, with its cause). Delivery is at least
// once. Ready messages come in the order of (time they became visible, sequence of their put).
//
// Every verb takes a batch, every verb returns absl::Status:
//   InvalidArgument     an argument breaks a limit (limits.h) or is malformed; nothing was done
//   NotFound            the queue, or the message of a receipt, is not there
//   AlreadyExists       CreateQueue over a queue with other metadata
//   FailedPrecondition  the receipt is stale: the lease was lost or superseded
//   ResourceExhausted   a limit or a throttle; try again later
//   Unavailable         the engine cannot answer now; the outcome is unknown: try again
//   DataLoss            a stored record is corrupt; the message names it; the rest stays usable
// Verbs that settle several messages answer one Status for each of them, in order; the outer
// status is an error only when the call as a whole did nothing.
//
// Durability: when Put, Delete, Update or DeadLetter answers OK, the effect survives what
// traits().ack_survives names. A lease (Receive) and an attempt (BeginAttempt) survive the death of
// the process; after a power cut a lease may be lost early, which at-least-once allows.
//
// Thread-safe: any verb from any thread. No verb blocks on another receiver's lease.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace muster::queue {

// The address of a queue: "account/name". Both parts obey ValidateQueueId (limits.h).
struct QueueId {
  std::string account;
  std::string name;

  std::string ToString() const;
  friend bool operator==(const QueueId& a, const QueueId& b) {
    return a.account == b.account && a.name == b.name;
  }
  template <typename H>
  friend H AbslHashValue(H h, const QueueId& id) {
    return H::combine(std::move(h), id.account, id.name);
  }
};

// Name/value pairs that travel with a queue; names keep their case.
using Metadata = std::map<std::string, std::string>;

// A lease's token: opaque to callers, URL-safe text. It names message, lease and engine epoch, so
// that a stale holder is refused however late it comes.
using Receipt = std::string;

inline constexpr absl::Duration kNeverExpires = absl::InfiniteDuration();

// What a caller puts.
struct NewMessage {
  std::string body;                             // ≤ limits.h, bytes
  absl::Duration delay = absl::ZeroDuration();  // invisible for so long first; < ttl
  absl::Duration ttl = absl::Hours(24 * 7);     // then it is garbage; or kNeverExpires
  // When not empty: a second put with this id within kDedupWindow of the first, or while the first
  // message is still stored (as poison, too), puts nothing and answers the first message's id with
  // `duplicate` set.
  std::string dedup_id;
};

struct PutResult {
  std::string message_id;  // a GUID
  Receipt receipt;         // usable at once for Update and Delete; empty for a duplicate
  absl::Time insertion_time;
  absl::Time expiration_time;  // absl::InfiniteFuture() when it never expires
  absl::Time next_visible_time;
  bool duplicate = false;
};

// A message as Receive and Peek show it.
struct Message {
  std::string message_id;
  std::string body;
  absl::Time insertion_time;
  absl::Time expiration_time;
  absl::Time next_visible_time;  // when the lease ends, for a received one
  int dequeue_count = 0;         // times received, this one included
  int attempts = 0;              // handler starts charged so far (BeginAttempt)
  // A handler began on this message under an earlier lease, and that lease was lost unsettled: its
  // holder died or hung. The next holder should suspect the message. Stays set until a holder that
  // began an attempt of its own ends it in order (UpdateRequest::attempt_ended) or settles.
  bool interrupted = false;
  Receipt receipt;  // empty for Peek
};

struct ReceiveOptions {
  int max_messages = 1;                           // 1 .. traits().max_receive
  absl::Duration visibility = absl::Seconds(30);  // how long the lease lasts
};

// Changes a leased message. Each field that is unset stays as it is.
struct UpdateRequest {
  Receipt receipt;
  // From now on invisible for so long; zero gives the message back at once. The lease goes on under
  // the new receipt until then.
  absl::Duration visibility = absl::ZeroDuration();
  std::optional<std::string> body;
  // The holder lets go on purpose: nobody works on the message until it is visible again, so that
  // it counts as delayed, not as in flight. The attempt that the holder began, if any, ended
  // without its death, so the next receiver sees interrupted = false.
  bool attempt_ended = false;
  // With attempt_ended: takes back what BeginAttempt charged under this lease (outcome Defer).
  bool refund_attempt = false;
};

struct UpdateResult {
  Receipt receipt;  // replaces the one given, which is stale from now on
  absl::Time next_visible_time;
};

// Why a message was given up. Kept with the poison message.
struct Cause {
  std::string reason;  // one line for people
  int attempts = 0;    // handler starts when it was given up
  std::string holder;  // who gave it up (role instance)
  absl::Time time;     // when; the engine fills it in if it is left at its default
};

struct DeadLetterRequest {
  Receipt receipt;
  Cause cause;
};

struct PoisonMessage {
  std::string message_id;
  std::string body;
  absl::Time insertion_time;
  Cause cause;
};

// One consistent snapshot of a queue. Expired messages are not counted.
struct QueueStats {
  int64_t ready = 0;
  int64_t in_flight = 0;
  int64_t delayed = 0;
  int64_t poison = 0;
  absl::Duration oldest_age = absl::ZeroDuration();  // of ready, in flight and delayed messages
  int64_t total_in = 0;                              // messages put since the queue was created
  int64_t total_out = 0;  // messages deleted (not cleared, expired or given up)
  int64_t total_expired = 0;
  int64_t stale_receipts = 0;  // Update, Delete, DeadLetter refused because the lease was lost

  int64_t stored() const { return ready + in_flight + delayed; }
};

struct QueueInfo {
  QueueId id;
  Metadata metadata;
};

struct ListQueuesRequest {
  std::string account;
  std::string prefix;
  std::string after;  // names greater than this one
  int max_results = 5000;
};

// What an acknowledgement outlives.
enum class Survives { kProcess, kPower };

// What an engine can do; the conformance suite reads it.
struct Traits {
  std::string engine;  // "rocksdb", "jetstream"
  Survives ack_survives = Survives::kProcess;
  bool fenced_receipts = false;  // a stale receipt is always refused
  bool per_message_ttl = false;
  bool delayed_put = false;
  bool dedup = false;
  bool body_update = false;
  // Receive and Update say how long a lease lasts; otherwise the queue does, by its metadata
  // (lease_metadata.h) or else as the engine was set up, and next_visible_time tells.
  bool per_receive_visibility = false;
  // Stats and times are as the caller's clock and this page have them, at every moment; otherwise
  // as a server far away has them: see the engine.
  bool exact_stats = false;
  // A redriven message keeps its id, Clear forgets dedup ids, and a dedup id outlives kDedupWindow
  // with its message.
  bool keeps_ids = false;
  // First attempts may begin together: BeginAttempt of many costs no more than of one. Whose holder
  // dies is a suspect then and was charged nothing: nobody knows whose handler had started.
  bool begins_together = false;
  int max_receive = 32;
  size_t max_body_bytes = size_t{1} << 20;  // of a message
};

class QueueStore {
 public:
  virtual ~QueueStore() = default;

  virtual const Traits& traits() const = 0;

  // OK also when the queue is there with the same metadata.
  virtual absl::Status CreateQueue(const QueueId& queue, const Metadata& metadata) = 0;
  // Deletes the queue with all that it holds, poison included.
  virtual absl::Status DeleteQueue(const QueueId& queue) = 0;
  // In order of name.
  virtual absl::StatusOr<std::vector<QueueInfo>> ListQueues(const ListQueuesRequest& request) = 0;
  virtual absl::StatusOr<Metadata> GetMetadata(const QueueId& queue) = 0;
  // Replaces all metadata.
  virtual absl::Status SetMetadata(const QueueId& queue, const Metadata& metadata) = 0;

  // All or nothing: on error no message was put, or (Unavailable) the outcome is unknown.
  virtual absl::StatusOr<std::vector<PutResult>> Put(const QueueId& queue,
                                                     absl::Span<const NewMessage> messages) = 0;

  // Leases up to max_messages ready messages; an empty vector when none is ready. Two live leases
  // never share a message. A message whose record is corrupt is skipped, set aside as poison with a
  // DataLoss cause, and does not hinder the rest.
  virtual absl::StatusOr<std::vector<Message>> Receive(const QueueId& queue,
                                                       const ReceiveOptions& options) = 0;

  // Ready messages in the order in which Receive would give them; leases nothing.
  virtual absl::StatusOr<std::vector<Message>> Peek(const QueueId& queue, int max_messages) = 0;

  // Charges an attempt to each leased message: called when its handler starts, and only then; where
  // traits().begins_together, for several first attempts when the first of them starts, and what
  // does not start after all is given back with refund_attempt. The receipt stays valid. Answers,
  // per receipt, the attempts charged including this one. A lease whose visibility has passed is
  // refused (FailedPrecondition) even if nobody received the message since: to start work on it
  // would be to do it twice. So is the receipt of a message that nobody holds: one that was put
  // with a delay, or whose holder let go (attempt_ended).
  virtual absl::StatusOr<std::vector<absl::StatusOr<int>>> BeginAttempt(
      const QueueId& queue, absl::Span<const Receipt> receipts) = 0;

  // Extends, shortens or gives back leases; may replace bodies.
  virtual absl::StatusOr<std::vector<absl::StatusOr<UpdateResult>>> Update(
      const QueueId& queue, absl::Span<const UpdateRequest> requests) = 0;

  // A receipt whose visibility has passed still deletes, as long as nobody received the message
  // since.
  virtual absl::StatusOr<std::vector<absl::Status>> Delete(const QueueId& queue,
                                                           absl::Span<const Receipt> receipts) = 0;

  // Deletes all messages that are not poison, leased ones too, and forgets their dedup ids.
  virtual absl::Status Clear(const QueueId& queue) = 0;

  // Sets leased messages aside as poison, with their cause.
  virtual absl::StatusOr<std::vector<absl::Status>> DeadLetter(
      const QueueId& queue, absl::Span<const DeadLetterRequest> requests) = 0;

  // Oldest first; `after` is the message id that the last page ended with, or empty.
  virtual absl::StatusOr<std::vector<PoisonMessage>> ListPoison(const QueueId& queue,
                                                                absl::string_view after,
                                                                int max_messages) = 0;
  // Makes poison messages ready again, with attempts and dequeue count at zero: those named, or the
  // oldest `max_messages` when `message_ids` is empty. Answers how many; an
  // error only when none was. The rest of the queue goes on meanwhile.
  virtual absl::StatusOr<int64_t> Redrive(const QueueId& queue,
                                          absl::Span<const std::string> message_ids,
                                          int64_t max_messages) = 0;
  // Drops all poison messages. Answers how many.
  virtual absl::StatusOr<int64_t> PurgePoison(const QueueId& queue) = 0;

  virtual absl::StatusOr<QueueStats> Stats(const QueueId& queue) = 0;
};

// How long the leases of a queue last, as its metadata says. Engines whose traits have no
// per_receive_visibility go by it; for the others each receive says it.

// The name in the metadata. Its value is a duration such as "30s" or "1h30m", within what a receive
// may ask (limits.h).
inline constexpr char kVisibilityName[] = "muster-visibility";

// nullopt: `metadata` says nothing of it, or nothing that can be understood.
std::optional<absl::Duration> VisibilityOf(const Metadata& metadata);

// `metadata` with this visibility; nullopt: with none.
Metadata WithVisibility(Metadata metadata, std::optional<absl::Duration> visibility);

// Has the leases of a queue that is there last so long from now on; nullopt: as long as its engine
// would have it. Other metadata stays. The store's statuses.
absl::Status SetVisibility(QueueStore* store, const QueueId& queue,
                           std::optional<absl::Duration> visibility);

}  // namespace muster::queue
