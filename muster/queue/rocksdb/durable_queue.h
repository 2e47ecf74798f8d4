// SPDX-License-Identifier: Apache-2.0

// DurableQueue: one queue of the embedded engine. Its order lives in memory (message_index.h), its
// records in RocksDB (codec.h). Every verb that changes something takes three steps:
//
//   1. under mu_: check, and check the messages out of the index, so no other call touches them;
//   2. without mu_: write one batch. RocksDB joins the batches of concurrent calls into one sync;
//   3. under mu_: put the new state into the index, or the old state if the write failed.
//
// So the index never shows a state that is not on disk, and no message is leased twice while the
// write of its lease is under way. Verbs that need the whole queue (Clear, Redrive …) wait at gate_
// until no such write is under way.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "muster/base/mutex.h"
#include "muster/queue/queue_store.h"
#include "muster/queue/rocksdb/codec.h"
#include "muster/queue/rocksdb/dedup_ids.h"
#include "muster/queue/rocksdb/message_index.h"
#include "muster/queue/rocksdb/storage.h"
#include "muster/queue/rocksdb/write_gate.h"

namespace muster::queue::rocksdb {

// Thread-safe, except the Load functions, which are called before all others. queue_store.h
// specifies the verbs; the arguments are within the limits.
class DurableQueue {
 public:
  // `storage` is not owned.
  DurableQueue(Storage* storage, uint64_t number, QueueRecord record);

  void LoadMessage(uint64_t seq, const std::optional<MessageState>& state);
  void LoadPoison(uint64_t seq);
  void LoadCounters(const Counters& counters);
  // Notes that a dedup id refers to the message `seq`, which may be long gone.
  void LoadUsedSequence(uint64_t seq);

  const queue::QueueId& id() const { return id_; }
  // No other queue of the storage has it, or ever gets it.
  uint64_t number() const { return number_; }

  queue::Metadata metadata() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status SetMetadata(const queue::Metadata& metadata) ABSL_LOCKS_EXCLUDED(mu_);
  // Deletes all records of the queue; every later verb returns NotFound.
  absl::Status Destroy() ABSL_LOCKS_EXCLUDED(mu_);

  absl::StatusOr<std::vector<queue::PutResult>> Put(absl::Span<const queue::NewMessage> messages)
      ABSL_LOCKS_EXCLUDED(mu_);
  // A put, or a delete, whose second step another makes, for several queues together.
  class PutSteps;
  class DeleteSteps;
  // Call it after a put, without its steps.
  void SweepDedupIfDue(absl::Span<const queue::NewMessage> messages) ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::vector<queue::Message>> Receive(const queue::ReceiveOptions& options)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::vector<queue::Message>> Peek(int max_messages) ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::vector<absl::StatusOr<int>>> BeginAttempt(
      absl::Span<const queue::Receipt> receipts) ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::vector<absl::StatusOr<queue::UpdateResult>>> Update(
      absl::Span<const queue::UpdateRequest> requests) ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::vector<absl::Status>> Delete(absl::Span<const queue::Receipt> receipts)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Clear() ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::vector<absl::Status>> DeadLetter(
      absl::Span<const queue::DeadLetterRequest> requests) ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::vector<queue::PoisonMessage>> ListPoison(absl::string_view after,
                                                               int max_messages)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::vector<std::optional<queue::PoisonMessage>>> FindPoison(
      absl::Span<const queue::PoisonName> names) ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<int64_t> Redrive(absl::Span<const std::string> message_ids, int64_t max_messages)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<int64_t> PurgePoison() ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<int64_t> DropPoison(absl::Span<const std::string> message_ids)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<queue::QueueStats> Stats() ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<queue::QueueExtent> Extent() ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::vector<queue::StoredMessage>> Scan(uint64_t from, int max)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Deletes all expired messages from disk, step by step, until `cancelled` is set.
  void Collect(const std::atomic<bool>& cancelled) ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<absl::Duration> TimeToVisible() ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<bool> Holds(absl::string_view message_id) ABSL_LOCKS_EXCLUDED(mu_);
  // `to` is another queue of the same storage.
  absl::StatusOr<std::vector<absl::Status>> MoveTo(DurableQueue* to,
                                                   absl::Span<const queue::MoveRequest> requests)
      ABSL_LOCKS_EXCLUDED(mu_);
  // The requests that move messages back, by the account and name of the queue they came from:
  // those in `message_ids` that were moved here, or the oldest `max_messages` that nobody holds.
  // Without those whose queue is not there, by `is_there`.
  using MovesByOrigin =
      std::map<std::pair<std::string, std::string>, std::vector<queue::MoveRequest>>;
  absl::StatusOr<MovesByOrigin> ChooseMoved(
      absl::Span<const std::string> message_ids, int64_t max_messages,
      const std::function<bool(const queue::QueueId&)>& is_there) ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until no other call changes messages, and looks at all of them: some 50 ms for a million.
  absl::Status Reclaim() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // A message that this call has checked out.
  struct Claim {
    size_t slot = 0;  // which receipt of the call
    uint64_t seq = 0;
    MessageState before;
    MessageState after;
  };
  struct Refusal {
    size_t slot = 0;
    absl::Status status;
  };
  struct Claims {
    std::vector<Claim> taken;
    std::vector<Refusal> refused;
    int64_t stale = 0;  // refused because the lease was lost
    int64_t now_us = 0;
  };
  // A body on its way to a receiver.
  struct Fetched {
    std::string body;                   // if damaged: the bytes that could be saved
    std::optional<std::string> damage;  // why the message cannot be delivered
  };
  enum class Lapsed { kAccept, kRefuse };
  // One message of a put.
  struct Planned {
    uint64_t seq = 0;
    bool duplicate = false;  // then `seq` is that of the first message
    // For a duplicate: as the first put wrote it, without a lease if that is not known any more.
    MessageState state;
  };

  absl::Status CheckAliveLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::string NameOf(uint64_t seq) const;  // "queue 'a/b' message 1234…"
  std::string MessageId(uint64_t seq) const;

  // Advances the index to the current time in steps, and lets go of mu_ between them.
  void CatchUp() ABSL_LOCKS_EXCLUDED(mu_);
  // Takes expired messages out of the index, in one bounded step.
  void ExpireLocked(int64_t now_us) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Deletes a bounded number of expired messages from disk.
  void CollectGarbage() ABSL_LOCKS_EXCLUDED(mu_);

  // `lapsed`: whether to accept a receipt without a live lease: its visibility has passed but no
  // receive took the message since, or the message has no holder.
  absl::StatusOr<Claim> ClaimLocked(const queue::Receipt& receipt, Lapsed lapsed, Claims* claims)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Claim CheckOutLocked(uint64_t seq) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Claims once for each of `slots`, with the lock.
  absl::StatusOr<Claims> ClaimEach(
      size_t slots, absl::FunctionRef<absl::StatusOr<Claim>(size_t slot, Claims*)> claim_one)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Checks out the message of every valid receipt.
  absl::StatusOr<Claims> ClaimAll(const std::vector<const queue::Receipt*>& receipts, Lapsed lapsed)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Adds the counter changes of the claims to `batch`.
  void CountClaims(const Claims& claims, Counters delta, ::rocksdb::WriteBatch* batch)
      ABSL_LOCKS_EXCLUDED(mu_);
  // That, and writes the batch, unless there is nothing to write.
  absl::Status WriteClaims(const Claims& claims, ::rocksdb::WriteBatch* batch, Counters delta,
                           muster::rocksdb::Durability durability) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends a check-out: every message gets its `after` state, or its `before` state if `written` is
  // an error.
  void CheckInAll(const std::vector<Claim>& claims, const absl::Status& written)
      ABSL_LOCKS_EXCLUDED(mu_);

  absl::Status PlanPutLocked(absl::Span<const queue::NewMessage> messages,
                             const std::vector<std::optional<DedupRecord>>& known,
                             std::vector<Planned>* plan) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddPut(absl::Span<const queue::NewMessage> messages, const std::vector<Planned>& plan,
              ::rocksdb::WriteBatch* batch) const;
  std::vector<queue::PutResult> PublishPut(const std::vector<Planned>& plan)
      ABSL_LOCKS_EXCLUDED(mu_);
  bool IsDuplicateLocked(const DedupRecord& dedup, int64_t now_us) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Deletes some dedup ids that no longer matter, once every few thousand puts.
  void SweepDedup() ABSL_LOCKS_EXCLUDED(mu_);

  absl::StatusOr<Claims> Lease(const queue::ReceiveOptions& options) ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::vector<Fetched>> Fetch(const std::vector<Claim>& claims) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Up to `max` messages from the sequence `from` on, whole or damaged, without their bodies.
  absl::StatusOr<std::vector<Claim>> StoredFrom(uint64_t from, int max) ABSL_LOCKS_EXCLUDED(mu_);
  queue::Message ToMessage(uint64_t seq, const MessageState& state, std::string body) const;
  // One pass of Receive. It may return no message although more are ready, when all that it took
  // were damaged; then it has set them aside as poison and sets `*set_aside`.
  absl::StatusOr<std::vector<queue::Message>> ReceiveOnce(const queue::ReceiveOptions& options,
                                                          bool* set_aside) ABSL_LOCKS_EXCLUDED(mu_);

  // Adds to `batch` the records that turn a message into poison.
  void BuryMessage(::rocksdb::WriteBatch* batch, const Claim& claim, absl::string_view body,
                   const queue::Cause& cause) const;
  // Ends a check-out: the messages are now poison, or as before if `written` is an error.
  void BuryAll(const std::vector<Claim>& claims, const absl::Status& written)
      ABSL_LOCKS_EXCLUDED(mu_);
  // nullopt when the message is no longer there. The cause describes any damage.
  absl::StatusOr<std::optional<queue::PoisonMessage>> ReadPoison(uint64_t seq) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Checks out the messages that are not where their put has placed them, and ends their leases.
  std::vector<Claim> ClaimMovedLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns the poison messages that a Redrive or DropPoison selects, oldest first.
  absl::StatusOr<std::vector<uint64_t>> ChoosePoison(absl::Span<const std::string> message_ids,
                                                     int64_t max_messages) ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::vector<uint64_t>> StillPoison(absl::Span<const uint64_t> seqs)
      ABSL_LOCKS_EXCLUDED(mu_);
  // One step of a Redrive. Skips messages that are no longer poison.
  absl::StatusOr<int64_t> RedriveSome(absl::Span<const uint64_t> seqs) ABSL_LOCKS_EXCLUDED(mu_);

  void PutState(::rocksdb::WriteBatch* batch, uint64_t seq, const MessageState& state) const;
  // `noted`: the message may have a note record.
  void DeleteMessage(::rocksdb::WriteBatch* batch, uint64_t seq, bool noted) const;
  // The note of a message; an empty one if it has none, or a damaged one.
  absl::StatusOr<NoteRecord> ReadNote(uint64_t seq) const;
  void PutNote(::rocksdb::WriteBatch* batch, uint64_t seq, const NoteRecord& note) const;
  // Adds to `batch` who receives the message of `claim`, and sets `last_holder` of `message`.
  absl::Status NoteHolder(::rocksdb::WriteBatch* batch, const std::string& holder, Claim* claim,
                          queue::Message* message) const;

  // Whether the message is ready, delayed or in flight; its records may outlive it for a while.
  bool IsStored(uint64_t seq) ABSL_LOCKS_EXCLUDED(mu_);
  // Whether it is, and neither a receiver nor another call has it.
  bool IsFree(uint64_t seq) ABSL_LOCKS_EXCLUDED(mu_);
  // Calls `visit` for the messages from `seq` on that were moved here, until it returns false or an
  // error. The notes are those of the moment of the call.
  absl::Status ForEachMoved(
      uint64_t seq,
      const std::function<absl::StatusOr<bool>(uint64_t, const NoteOrigin&)>& visit) const;
  // The sequence behind the message `after`; 0 if that is empty.
  absl::StatusOr<uint64_t> SequenceAfter(absl::string_view after) const;
  // The first `most` from `from` on: of this queue without an origin, or moved here.
  absl::StatusOr<std::map<uint64_t, std::optional<NoteOrigin>>> PoisonFrom(uint64_t from,
                                                                           size_t most)
      ABSL_LOCKS_EXCLUDED(mu_);
  // nullopt when the message is no longer there.
  absl::StatusOr<std::optional<queue::PoisonMessage>> ReadMoved(uint64_t seq,
                                                                const NoteOrigin& origin) const;
  // nullopt when no message of this name is poison here.
  absl::StatusOr<std::optional<queue::PoisonMessage>> FindOnePoison(const queue::PoisonName& name)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Checks out the messages that `requests` name.
  absl::StatusOr<Claims> ClaimForMove(absl::Span<const queue::MoveRequest> requests)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<Claim> ClaimByIdLocked(absl::string_view message_id, int64_t now_us)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes out of `claims` the messages whose records are damaged: a receive sets them aside.
  absl::StatusOr<std::vector<std::string>> TakeBodies(Claims* claims) ABSL_LOCKS_EXCLUDED(mu_);
  // The places of moved messages here, by the claims of the queue they come from.
  absl::StatusOr<std::vector<std::pair<uint64_t, MessageState>>> PlaceMoved(
      const std::vector<Claim>& claims, absl::Span<const queue::MoveRequest> requests)
      ABSL_LOCKS_EXCLUDED(mu_);
  void AddToCounters(::rocksdb::WriteBatch* batch, const Counters& delta) const;

  Storage* const storage_;  // not owned
  const uint64_t number_;
  const queue::QueueId id_;

  WriteGate gate_;
  DedupIds dedup_ids_;
  base::Mutex mu_;
  bool deleted_ ABSL_GUARDED_BY(mu_) = false;
  QueueRecord record_ ABSL_GUARDED_BY(mu_);
  Counters counters_ ABSL_GUARDED_BY(mu_);
  MessageIndex index_ ABSL_GUARDED_BY(mu_);
  absl::btree_set<uint64_t> poison_ ABSL_GUARDED_BY(mu_);
  std::vector<uint64_t> garbage_ ABSL_GUARDED_BY(mu_);  // expired, still on disk
};

// Who holds the steps of several queues made them in the order of number(), so that two such
// callers never wait for each other. One thread makes and destroys them.
class DurableQueue::PutSteps {
 public:
  // Waits while the queue is changed as a whole. Neither argument is owned.
  PutSteps(DurableQueue* queue, absl::Span<const queue::NewMessage> messages);

  // Adds to `batch` what is to be written. On an error it has added nothing, and there is nothing
  // to finish.
  absl::Status Plan(::rocksdb::WriteBatch* batch);
  // That the batch needs at least.
  muster::rocksdb::Durability durability() const { return muster::rocksdb::Durability::kPower; }
  // `written`: what became of the batch, or, if nothing was added to it, whether the storage works.
  absl::StatusOr<std::vector<queue::PutResult>> Finish(const absl::Status& written);

 private:
  DurableQueue* const queue_;                           // not owned
  const absl::Span<const queue::NewMessage> messages_;  // not owned
  const SharedEntry writing_;
  const DedupIds::Reservation reservation_;
  std::vector<Planned> plan_;
};

// As PutSteps.
class DurableQueue::DeleteSteps {
 public:
  DeleteSteps(DurableQueue* queue, absl::Span<const queue::Receipt> receipts);

  absl::Status Plan(::rocksdb::WriteBatch* batch);
  // When every receipt was refused the batch holds only a counter change, which needs no sync.
  muster::rocksdb::Durability durability() const {
    return claims_.taken.empty() ? muster::rocksdb::Durability::kProcess
                                 : muster::rocksdb::Durability::kPower;
  }
  absl::StatusOr<std::vector<absl::Status>> Finish(const absl::Status& written);

 private:
  DurableQueue* const queue_;                        // not owned
  const absl::Span<const queue::Receipt> receipts_;  // not owned
  const SharedEntry writing_;
  Claims claims_;
};

}  // namespace muster::queue::rocksdb
