// SPDX-License-Identifier: Apache-2.0

// QueueStore: the seam between everything that queues and the engine that keeps the messages.
//
// A queue holds messages. A message is ready, delayed (put for later), in flight (leased to a
// receiver for its visibility timeout) or poison (given up, with its cause). Delivery is at least
// once. Receive returns ready messages ordered by (time they became visible, sequence of their
// put).
//
// Every verb takes a batch, every verb returns absl::Status:
//   InvalidArgument     an argument breaks a limit (limits.h) or is malformed; nothing was done
//   NotFound            the queue, or the message of a receipt, is not there
//   AlreadyExists       CreateQueue over a queue with other metadata
//   FailedPrecondition  the receipt is stale: the lease was lost or superseded
//   ResourceExhausted   a limit or a throttle; try again later
//   Unavailable         the engine cannot answer now; the outcome is unknown: try again
//   DataLoss            a stored record is corrupt; the message names it; the rest stays usable
// Verbs that settle several messages return one Status per message, in order. The outer status is
// an error only when the call as a whole did nothing.
//
// Durability: when Put, Delete, Update or DeadLetter returns OK, the effect survives the event that
// traits().ack_survives names. A lease (Receive) and an attempt (BeginAttempt) survive the death of
// the process. After a power cut a lease may be lost early, which at-least-once delivery allows.
//
// Thread-safe: any verb from any thread. No verb blocks on another receiver's lease.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
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

// The token of a lease: opaque to callers, URL-safe text. It names the message, the lease and the
// engine epoch, so that the engine refuses a stale holder however late it comes.
using Receipt = std::string;

inline constexpr absl::Duration kNeverExpires = absl::InfiniteDuration();

// What a caller puts.
struct NewMessage {
  std::string body;                             // ≤ limits.h, bytes
  absl::Duration delay = absl::ZeroDuration();  // invisible for so long first; < ttl
  absl::Duration ttl = absl::Hours(24 * 7);     // then it is garbage; or kNeverExpires
  // When not empty: a second put with this id, made within kDedupWindow of the first or while the
  // first message is still stored (also as poison), puts nothing. It returns the first message's id
  // with `duplicate` set. A queue with a window of its own (kDedupWindowName, below) has that one
  // instead, whether or not the first message is still stored. Without traits().keeps_ids it is
  // kDedupWindow alone, and once the engine's server is restarted only while the first message is
  // stored as well: then two messages may have one id. So an id saves work, and what must happen
  // once is to be decided elsewhere, as the report does it.
  std::string dedup_id;
};

// What a call that serves several queues has for one of them. `items` are not owned.
template <typename Item>
struct ForQueue {
  QueueId queue;
  absl::Span<const Item> items;
};

struct PutResult {
  std::string message_id;  // a GUID
  // Usable at once for Update and Delete. For a duplicate: that of the first put, if the engine
  // knows it still, else empty; likewise the times below.
  Receipt receipt;
  absl::Time insertion_time;
  absl::Time expiration_time;  // absl::InfiniteFuture() when it never expires
  absl::Time next_visible_time;
  bool duplicate = false;
  // The message's place in the order of puts, within one incarnation of the queue (QueueExtent);
  // that of the first message for a duplicate.
  uint64_t position = 0;
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
  // holder died or hung. The next holder should suspect the message. The flag stays set until a
  // holder that began an attempt of its own ends that attempt in order
  // (UpdateRequest::attempt_ended) or settles the message.
  bool interrupted = false;
  Receipt receipt;        // empty for Peek
  uint64_t position = 0;  // as of PutResult
  // The `holder` of the receive before this one; empty where it named none.
  std::string last_holder = {};
};

// A message as Scan shows it.
struct StoredMessage {
  std::string message_id;
  std::string body;
  uint64_t position = 0;  // as of PutResult
};

struct ReceiveOptions {
  int max_messages = 1;                           // 1 .. traits().max_receive
  absl::Duration visibility = absl::Seconds(30);  // how long the lease lasts
  // The name of the receiver, for Message::last_holder of the next receive; at most
  // kMaxHolderBytes. Kept only where traits().moves.
  std::string holder = {};
};

// Changes a leased message. `visibility` always applies: its default gives the message back at
// once. The body stays as it is unless `body` is set.
struct UpdateRequest {
  Receipt receipt;
  // How long the message stays invisible from now on; zero gives the message back at once. The
  // lease continues under the new receipt until then.
  absl::Duration visibility = absl::ZeroDuration();
  std::optional<std::string> body;
  // The holder gives up the lease on purpose. No handler works on the message until it is visible
  // again, so it counts as delayed, not as in flight. The attempt that the holder began, if any,
  // ended without the death of the holder, so the next receiver sees interrupted = false.
  bool attempt_ended = false;
  // With attempt_ended: refunds the attempt that BeginAttempt charged under this lease (outcome
  // Defer).
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
  std::string holder;  // the role instance that gave the message up
  absl::Time time;     // when; the engine fills it in if it is left at its default
};

// What kind of end a Cause tells of, for counters.
enum class DeadLetterKind {
  kAttempts,  // its last attempt failed, or it had none left
  kCrash,     // the worker of its last attempt died or hung
  kRefused,   // its handler, or who read it before, said that it will never work
  kOutput,    // what it has for the output queue fits no queue
  kResult,    // it is a result that no report can count
};

struct DeadLetterRequest {
  Receipt receipt;
  Cause cause;
  DeadLetterKind kind = DeadLetterKind::kAttempts;  // not kept
};

struct PoisonMessage {
  std::string message_id;
  std::string body;
  absl::Time insertion_time;
  Cause cause;
  // The queue that it was moved from (Move), and its id there; empty: it was given up in this one.
  QueueId origin = {};
  std::string origin_id = {};
};

// Names a poison message: by its id there, or as the message was when it was received.
struct PoisonName {
  std::string message_id = {};  // as ListPoison shows it
  // As Message shows them; not needed with an id. They name what was given up in the queue itself.
  uint64_t position = 0;
  absl::Time insertion_time = absl::UnixEpoch();
};

// Moves a message to another queue.
struct MoveRequest {
  // One of both is set: the receipt of a leased message, or the id of a message without a lease.
  Receipt receipt;
  std::string message_id;
  // Why it is moved: kept with the message, with the queue it came from, until it is deleted or
  // moved on. nullopt: the message forgets where it came from.
  std::optional<Cause> cause;
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
  int64_t waits = 0;           // AwaitMessage, of all processes; 0 unless traits().long_poll

  int64_t stored() const { return ready + in_flight + delayed; }
};

// What a queue still holds, by the positions of its puts. A producer that has noted the incarnation
// and the highest position of its puts can tell without a look at messages that none of its own is
// left: the incarnation is another one, or `oldest` lies beyond that position.
struct QueueExtent {
  // Opaque. Another one once the queue was deleted and made again, or its store was lost: positions
  // of two incarnations cannot be compared.
  std::string incarnation;
  // No message below this position is ready, in flight or delayed; none of them comes back, except
  // by a redrive. Equal to `next` when the queue holds no message.
  uint64_t oldest = 0;
  // Later puts get at least this position. Below a position that was given before: the store was
  // set back, and has lost the messages in between.
  uint64_t next = 0;
};

// What a dead holder held in one queue, and others got back.
struct Released {
  QueueId queue;
  int64_t messages = 0;  // at most: the holder may have settled some of them
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

// The event that an acknowledged change survives.
enum class Survives { kProcess, kPower };

// The abilities of an engine. The conformance suite tests the engine against them.
struct Traits {
  std::string engine;  // "rocksdb", "jetstream"
  Survives ack_survives = Survives::kProcess;
  bool fenced_receipts = false;  // a stale receipt is always refused
  bool per_message_ttl = false;
  bool delayed_put = false;
  bool dedup = false;
  bool body_update = false;
  // True: Receive and Update set how long a lease lasts. False: the metadata of the queue sets it
  // (kVisibilityName, below), or else the settings of the engine; next_visible_time shows the
  // result.
  bool per_receive_visibility = false;
  // True: Stats and times always follow the clock of the caller and the rules of this file. False:
  // they follow a remote server; see the engine.
  bool exact_stats = false;
  // A message keeps its id as poison and when it is redriven, the oldest poison is that which was
  // put first, Clear forgets dedup ids, and these are kept for as long as NewMessage says, also
  // over restarts. False: poison has ids of its own, and the oldest is that which was given up
  // first.
  bool keeps_ids = false;
  // True: several first attempts may begin in one BeginAttempt, which then costs no more than one
  // attempt. If the holder dies, each of these messages becomes a suspect and none is charged,
  // because it is unknown which of their handlers had started.
  bool begins_together = false;
  // A caller can wait for a message without asking again and again (AwaitMessage).
  bool long_poll = false;
  // Messages can be moved between queues in one step (Move), holders are kept with leases, and
  // TimeToVisible and Holds are answered.
  bool moves = false;
  // Others can give back at once what a dead holder held (ReleaseHeldBy).
  bool releases_holders = false;
  // PutEach and DeleteEach make one durable step of all queues.
  bool joins_queues = false;
  // A call that the engine does not answer ends after this time; zero: every call is answered.
  absl::Duration longest_call = absl::ZeroDuration();
  int max_receive = 32;
  size_t max_body_bytes = size_t{1} << 20;  // of a message
};

class QueueStore {
 public:
  virtual ~QueueStore() = default;

  virtual const Traits& traits() const = 0;

  // Returns OK also when the queue exists with the same metadata.
  virtual absl::Status CreateQueue(const QueueId& queue, const Metadata& metadata) = 0;
  // Deletes the queue and all its messages, poison included.
  virtual absl::Status DeleteQueue(const QueueId& queue) = 0;
  // In order of name.
  virtual absl::StatusOr<std::vector<QueueInfo>> ListQueues(const ListQueuesRequest& request) = 0;
  virtual absl::StatusOr<Metadata> GetMetadata(const QueueId& queue) = 0;
  // Replaces all metadata.
  virtual absl::Status SetMetadata(const QueueId& queue, const Metadata& metadata) = 0;

  // All or nothing: on an error no message was put, or (Unavailable) the outcome is unknown.
  virtual absl::StatusOr<std::vector<PutResult>> Put(const QueueId& queue,
                                                     absl::Span<const NewMessage> messages) = 0;

  // Puts into several queues, each of which is named once. Answers for each, in order, what Put
  // would: what is wrong with one concerns no other. One after the other, unless
  // traits().joins_queues; then a write that fails is Unavailable for all.
  virtual std::vector<absl::StatusOr<std::vector<PutResult>>> PutEach(
      absl::Span<const ForQueue<NewMessage>> puts);

  // Leases up to max_messages ready messages; returns an empty vector when none is ready. Two live
  // leases never share a message. Receive sets a message with a corrupt record aside as poison,
  // with a DataLoss cause, and continues with the next message.
  virtual absl::StatusOr<std::vector<Message>> Receive(const QueueId& queue,
                                                       const ReceiveOptions& options) = 0;

  // A wait that has begun. It ends when it is destroyed: when the destructor returns, `take` is not
  // running and never runs again; so do not destroy it from within `take`.
  class Wait {
   public:
    virtual ~Wait() = default;
  };

  // Gets the message that a wait has leased for the caller, and returns whether the caller takes
  // it: what it does not take is ready again at once. Or gets the reason why the wait has ended
  // without one. NotFound: the time is up. Aborted: there is a message, but the engine cannot tell
  // how long it has been leased, and has given it back: receive it. Anything else: the engine waits
  // no more, as when the queue is gone.
  using TakeMessage = std::function<bool(absl::StatusOr<Message>)>;

  // Waits for at most `patience` until a message is ready, leases it and calls `take`, once, on a
  // thread of the engine: be quick. Waiting takes no thread of the caller, and no call to the
  // engine until it ends. A wait outlives a lost connection to the engine. A message that comes for
  // a wait that was ended is ready again at once, received once more. Unimplemented unless
  // traits().long_poll.
  virtual absl::StatusOr<std::unique_ptr<Wait>> AwaitMessage(const QueueId& queue,
                                                             absl::Duration patience,
                                                             TakeMessage take);

  // Returns ready messages in the order in which Receive would return them. Leases nothing.
  virtual absl::StatusOr<std::vector<Message>> Peek(const QueueId& queue, int max_messages) = 0;

  // Charges an attempt to each leased message. The caller calls it when the handler of the message
  // starts, and only then. Where traits().begins_together, the caller may charge several first
  // attempts when the first of them starts; it then gives each message that does not start back
  // with refund_attempt. The receipts stay valid. Returns, per receipt, the attempts charged
  // including this one. A lease with a visibility that has passed is refused (FailedPrecondition)
  // even if no receive took the message since: to start work on it would be to do it twice. A
  // receipt without a live lease is refused too: the message was put with a delay, or its holder
  // gave the lease up (attempt_ended).
  virtual absl::StatusOr<std::vector<absl::StatusOr<int>>> BeginAttempt(
      const QueueId& queue, absl::Span<const Receipt> receipts) = 0;

  // Extends, shortens or gives back leases; may replace bodies.
  virtual absl::StatusOr<std::vector<absl::StatusOr<UpdateResult>>> Update(
      const QueueId& queue, absl::Span<const UpdateRequest> requests) = 0;

  // A receipt still deletes after its visibility has passed, as long as no receive took the message
  // since.
  virtual absl::StatusOr<std::vector<absl::Status>> Delete(const QueueId& queue,
                                                           absl::Span<const Receipt> receipts) = 0;
  // Deletes from several queues, as PutEach puts.
  virtual std::vector<absl::StatusOr<std::vector<absl::Status>>> DeleteEach(
      absl::Span<const ForQueue<Receipt>> deletes);

  // Deletes all messages that are not poison, leased ones too, and forgets their dedup ids.
  virtual absl::Status Clear(const QueueId& queue) = 0;

  // Sets leased messages aside as poison, with their cause.
  virtual absl::StatusOr<std::vector<absl::Status>> DeadLetter(
      const QueueId& queue, absl::Span<const DeadLetterRequest> requests) = 0;

  // Returns poison messages, oldest first (traits().keeps_ids): those of the queue, and those that
  // were moved here with a cause, which are ready or leased as well; fewer than `max_messages`
  // where bodies are large. Empty: there are no more. `after` is the last message id of the
  // previous page, whether that message is still poison or not, or empty.
  virtual absl::StatusOr<std::vector<PoisonMessage>> ListPoison(const QueueId& queue,
                                                                absl::string_view after,
                                                                int max_messages) = 0;
  // Looks these messages up, at most kMaxFindPoison (limits.h). Returns one for each name, in
  // order; nullopt: it is not among the poison. Costs no more where there is much poison.
  virtual absl::StatusOr<std::vector<std::optional<PoisonMessage>>> FindPoison(
      const QueueId& queue, absl::Span<const PoisonName> names) = 0;
  // Makes poison messages ready again, with attempts and dequeue count at zero: the messages in
  // `message_ids`, the oldest first, or the oldest `max_messages` when `message_ids` is empty.
  // Returns how many; an error only when none became ready. Other messages of the queue can be
  // received and settled meanwhile. Messages that were moved here go back where they came from,
  // after those of the queue; one that is held stays, and so does one whose queue is gone
  // (FailedPrecondition if there was no other).
  virtual absl::StatusOr<int64_t> Redrive(const QueueId& queue,
                                          absl::Span<const std::string> message_ids,
                                          int64_t max_messages) = 0;
  // Drops all poison messages of the queue; not those that were moved here. Returns how many.
  virtual absl::StatusOr<int64_t> PurgePoison(const QueueId& queue) = 0;
  // Drops those of these poison messages that are there. Returns how many.
  virtual absl::StatusOr<int64_t> DropPoison(const QueueId& queue,
                                             absl::Span<const std::string> message_ids) = 0;

  // Moves messages to the end of queue `to`, all or none of those that are not refused, in one
  // durable step: each is in exactly one of both queues at any time. A moved message has a new id,
  // its whole time to live again, counts at zero, and is ready at once. Refused, per request:
  // NotFound, FailedPrecondition (as of Delete; by id: the message is leased), InvalidArgument.
  // The outer NotFound names the queue that is not there. Unimplemented unless traits().moves.
  virtual absl::StatusOr<std::vector<absl::Status>> Move(const QueueId& from, const QueueId& to,
                                                         absl::Span<const MoveRequest> requests);

  virtual absl::StatusOr<QueueStats> Stats(const QueueId& queue) = 0;

  // How long until a message becomes ready: zero if one is, InfiniteDuration if there is none that
  // could. What other calls do meanwhile may change it. Unimplemented unless traits().moves.
  virtual absl::StatusOr<absl::Duration> TimeToVisible(const QueueId& queue);
  // Whether the queue has a message with this id that is ready, delayed or in flight.
  // Unimplemented unless traits().moves.
  virtual absl::StatusOr<bool> Holds(const QueueId& queue, absl::string_view message_id);

  // Takes every put into account that has returned before the call.
  virtual absl::StatusOr<QueueExtent> Extent(const QueueId& queue) = 0;

  // Returns messages that are ready, in flight or delayed, whoever holds them, from the position
  // `from` on, in the order of their positions: at most `max` (limits.h), fewer where their bodies
  // are large. Leases and changes nothing. Empty: there are no more. Takes every put into account
  // that has returned before the call. A message with a corrupt record is left out.
  //
  // A caller that asks on, each time from behind the last position, until the answer is empty, sees
  // each message that is there all the while. Of a message that is deleted meanwhile, after the put
  // of a copy has returned, it sees the message or the copy.
  virtual absl::StatusOr<std::vector<StoredMessage>> Scan(const QueueId& queue, uint64_t from,
                                                          int max) = 0;

  // Makes all messages ready that are leased or delayed, for a reader that is alone with the queue
  // and reads it in the order of its puts. Receive then returns the messages whose position lies
  // below the result before any other, among themselves perhaps in another order, and the others in
  // the order of their puts; so the reader knows the head of the queue once it has seen a position
  // that is not below, or an empty queue. A result of 0: all come in order. Attempts stay charged,
  // and a message on which a handler had begun comes back interrupted. Receipts of before are stale
  // where traits().fenced_receipts; elsewhere those of other processes are not, so these must have
  // stopped. Messages that are being received or settled meanwhile by others may be left out.
  virtual absl::StatusOr<uint64_t> Reclaim(const QueueId& queue) = 0;

  // Gives back at once, in all queues, what the process `holder` holds, if it is dead; without
  // that its messages come again when their leases lapse. `silence`: since its last sign of life.
  // No attempt is charged that had not begun. When several callers ask, one of them gives back.
  // Messages may be left out: their leases lapse as usual. Should the holder live nevertheless, cut
  // off from the engine, the engine refuses its receipts when it is back. FailedPrecondition: it
  // lives, or may live; ask again later. Does nothing unless traits().releases_holders.
  virtual absl::StatusOr<std::vector<Released>> ReleaseHeldBy(const std::string& holder,
                                                              absl::Duration silence);
};

// The lease duration of a queue, as its metadata sets it. Engines without per_receive_visibility
// follow it; with the other engines each Receive sets the duration.

// The metadata name, which counts in any case. Its value is a duration such as "30s" or "1h30m",
// within the bounds of a receive visibility (limits.h).
inline constexpr char kVisibilityName[] = "muster-visibility";

// nullopt: `metadata` has no visibility, or one that cannot be parsed.
std::optional<absl::Duration> VisibilityOf(const Metadata& metadata);

// Returns `metadata` with this visibility; nullopt: without any.
Metadata WithVisibility(Metadata metadata, std::optional<absl::Duration> visibility);

// How long a queue remembers dedup ids, as its metadata sets it: whole seconds, within
// kMaxDedupWindow (limits.h). The name counts in any case.
inline constexpr char kDedupWindowName[] = "muster-dedup";

// nullopt: `metadata` has no window, or one that cannot be parsed.
std::optional<absl::Duration> DedupWindowOf(const Metadata& metadata);

// Sets how long the leases of an existing queue last from now on; nullopt: the default of its
// engine. Keeps the other metadata. Returns the statuses of the store.
absl::Status SetVisibility(QueueStore* store, const QueueId& queue,
                           std::optional<absl::Duration> visibility);

}  // namespace muster::queue
