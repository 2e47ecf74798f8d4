// WriteGate: many writers at a time, or one that needs all others to have finished.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "muster/base/mutex.h"
#include "muster/queue/queue_store.h"
#include "muster/queue/rocksdb/codec.h"
#include "muster/queue/rocksdb/message_index.h"
#include "muster/queue/rocksdb/storage.h"

namespace muster::queue::rocksdb {

// Thread-safe. Not re-entrant: who is in must not enter again.
class WriteGate {
 public:
  void EnterShared() {
    base::MutexLock lock(&mu_);
    ++waiting_;
    while (exclusive_) changed_.Wait(&mu_);
    --waiting_;
    if (owed_ > 0 && --owed_ == 0) changed_.NotifyAll();
    ++writers_;
  }

  void LeaveShared() {
    base::MutexLock lock(&mu_);
    if (--writers_ == 0 && exclusive_) changed_.NotifyAll();
  }

  // From now on nobody enters; returns when the last of the others has left. Who waited while
  // somebody was alone goes first, so that a caller who is alone again and again keeps nobody out.
  void EnterExclusive() {
    base::MutexLock lock(&mu_);
    while (exclusive_ || owed_ > 0) changed_.Wait(&mu_);
    exclusive_ = true;
    while (writers_ > 0) changed_.Wait(&mu_);
  }

  void LeaveExclusive() {
    base::MutexLock lock(&mu_);
    exclusive_ = false;
    owed_ = waiting_;
    changed_.NotifyAll();
  }

 private:
  base::Mutex mu_;
  base::CondVar changed_;
  int writers_ ABSL_GUARDED_BY(mu_) = 0;
  int waiting_ ABSL_GUARDED_BY(mu_) = 0;  // to enter shared
  int owed_ ABSL_GUARDED_BY(mu_) = 0;     // of them, those who go before the next exclusive one
  bool exclusive_ ABSL_GUARDED_BY(mu_) = false;
};

// In the gate for a scope.
class SharedEntry {
 public:
  explicit SharedEntry(WriteGate* gate) : gate_(gate) { gate_->EnterShared(); }
  ~SharedEntry() { gate_->LeaveShared(); }
  SharedEntry(const SharedEntry&) = delete;
  SharedEntry& operator=(const SharedEntry&) = delete;

 private:
  WriteGate* const gate_;  // not owned
};

class ExclusiveEntry {
 public:
  explicit ExclusiveEntry(WriteGate* gate) : gate_(gate) { gate_->EnterExclusive(); }
  ~ExclusiveEntry() { gate_->LeaveExclusive(); }
  ExclusiveEntry(const ExclusiveEntry&) = delete;
  ExclusiveEntry& operator=(const ExclusiveEntry&) = delete;

 private:
  WriteGate* const gate_;  // not owned
};

// DedupIds: the ids under which a queue's messages were put, on disk, so that a million of them
// cost no memory; a bloom filter answers most look-ups of a new id.

// Thread-safe.
class DedupIds {
 public:
  // `storage` is not owned.
  DedupIds(Storage* storage, uint64_t queue) : storage_(storage), queue_(queue) {}

  // While it lives no other put looks up or writes the same ids: of two concurrent puts of one id
  // the second waits and then finds the first.
  class Reservation {
   public:
    // Empty ids are passed over. Waits until all can be had together, so that no two puts wait for
    // each other.
    Reservation(DedupIds* ids, std::vector<std::string> wanted);
    ~Reservation();
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

    // One answer for each id of `wanted`, in order. A damaged record counts as none.
    absl::StatusOr<std::vector<std::optional<DedupRecord>>> LookUp() const;

   private:
    DedupIds* const ids_;  // not owned
    const std::vector<std::string> wanted_;
  };

  // Adds the record of `id` to a batch.
  void Write(::rocksdb::WriteBatch* batch, const std::string& id, const DedupRecord& record) const;

  // Counts ids that were put; true when enough have come together for a sweep.
  bool SweepIsDue(size_t ids_put);
  // Looks at a bounded number of records, going on where the last sweep ended, and deletes those
  // that `forget` says no longer matter. Nobody else may put meanwhile.
  void Sweep(const std::function<bool(const DedupRecord&)>& forget);

 private:
  Storage* const storage_;  // not owned
  const uint64_t queue_;

  base::Mutex mu_;
  base::CondVar released_;
  absl::flat_hash_set<std::string> reserved_ ABSL_GUARDED_BY(mu_);
  size_t put_since_sweep_ ABSL_GUARDED_BY(mu_) = 0;
  std::string sweep_from_ ABSL_GUARDED_BY(mu_);
};

// DurableQueue: one queue of the embedded engine. Its order lives in memory (message_index.h), its
// records in RocksDB (codec.h), and every verb that changes something goes three steps:
//
//   1. under mu_: check, take what the verb needs out of the index, so that nobody else touches it;
//   2. without mu_: write one batch. RocksDB joins the batches of concurrent calls into one sync;
//   3. under mu_: put the outcome into the index; if the write failed, what was there before.
//
// So the index never shows what is not on disk, and a lease is never given twice while its write is
// on the way. Verbs that need the whole queue (Clear, Redrive …) wait at gate_ until no such write
// is under way.

// Thread-safe, but for the Load functions, which come before anything else. The verbs mean what
// queue_store.h says; their arguments are within the limits.
class DurableQueue {
 public:
  // `storage` is not owned.
  DurableQueue(Storage* storage, uint64_t number, QueueRecord record);

  void LoadMessage(uint64_t seq, const std::optional<MessageState>& state);
  void LoadPoison(uint64_t seq);
  void LoadCounters(const Counters& counters);
  // A dedup id was put with a message of this sequence, which may be long gone.
  void LoadUsedSequence(uint64_t seq);

  const queue::QueueId& id() const { return id_; }

  queue::Metadata metadata();
  absl::Status SetMetadata(const queue::Metadata& metadata);
  // Deletes all that is stored; every later verb answers NotFound.
  absl::Status Destroy();

  absl::StatusOr<std::vector<queue::PutResult>> Put(absl::Span<const queue::NewMessage> messages);
  absl::StatusOr<std::vector<queue::Message>> Receive(const queue::ReceiveOptions& options);
  absl::StatusOr<std::vector<queue::Message>> Peek(int max_messages);
  absl::StatusOr<std::vector<absl::StatusOr<int>>> BeginAttempt(
      absl::Span<const queue::Receipt> receipts);
  absl::StatusOr<std::vector<absl::StatusOr<queue::UpdateResult>>> Update(
      absl::Span<const queue::UpdateRequest> requests);
  absl::StatusOr<std::vector<absl::Status>> Delete(absl::Span<const queue::Receipt> receipts);
  absl::Status Clear();
  absl::StatusOr<std::vector<absl::Status>> DeadLetter(
      absl::Span<const queue::DeadLetterRequest> requests);
  absl::StatusOr<std::vector<queue::PoisonMessage>> ListPoison(absl::string_view after,
                                                               int max_messages);
  absl::StatusOr<int64_t> Redrive(absl::Span<const std::string> message_ids, int64_t max_messages);
  absl::StatusOr<int64_t> PurgePoison();
  absl::StatusOr<queue::QueueStats> Stats();

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
    std::string body;                   // what could be saved of it, if it is damaged
    std::optional<std::string> damage;  // why the message cannot be given to anybody
  };
  enum class Lapsed { kAccept, kRefuse };
  struct Planned;  // one message of a put

  absl::Status CheckAliveLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::string NameOf(uint64_t seq) const;  // "queue 'a/b' message 1234…"
  std::string MessageId(uint64_t seq) const;

  // Moves the index on to now, in steps between which others get the lock.
  void CatchUp();
  // Takes expired messages out of the index; one step.
  void ExpireLocked(int64_t now_us) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Deletes a bounded number of expired messages from disk.
  void CollectGarbage();

  // `lapsed`: what to do with a lease whose visibility has passed, though nobody received since,
  // and with a receipt that nobody holds the message under.
  absl::StatusOr<Claim> ClaimLocked(const queue::Receipt& receipt, Lapsed lapsed, Claims* claims)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Checks out the message of every receipt that is good.
  absl::StatusOr<Claims> ClaimAll(const std::vector<const queue::Receipt*>& receipts,
                                  Lapsed lapsed);
  // Writes `batch` with the claims' part of the counters, unless there is nothing to write.
  absl::Status WriteClaims(const Claims& claims, ::rocksdb::WriteBatch* batch, Counters delta,
                           muster::rocksdb::Durability durability);
  // Ends a check-out: every message gets its `after` state, or `before` if `written` is an error.
  void CheckInAll(const std::vector<Claim>& claims, const absl::Status& written);

  absl::Status PlanPutLocked(absl::Span<const queue::NewMessage> messages,
                             const std::vector<std::optional<DedupRecord>>& known,
                             std::vector<Planned>* plan) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status WritePut(absl::Span<const queue::NewMessage> messages,
                        const std::vector<Planned>& plan);
  std::vector<queue::PutResult> PublishPut(const std::vector<Planned>& plan);
  bool IsDuplicateLocked(const DedupRecord& dedup, int64_t now_us) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Forgets some dedup ids that no longer matter, every few thousand puts.
  void SweepDedup();

  absl::StatusOr<Claims> Lease(const queue::ReceiveOptions& options);
  absl::StatusOr<std::vector<Fetched>> Fetch(const std::vector<Claim>& claims) const;
  queue::Message ToMessage(uint64_t seq, const MessageState& state, std::string body) const;
  // A receive that may come back with nothing but damaged messages, which it set aside.
  absl::StatusOr<std::vector<queue::Message>> ReceiveOnce(const queue::ReceiveOptions& options,
                                                          bool* set_aside);

  // Adds to `batch` what turns a message into poison.
  void BuryMessage(::rocksdb::WriteBatch* batch, const Claim& claim, absl::string_view body,
                   const queue::Cause& cause) const;
  // Ends a check-out: the messages are poison now, or as before if `written` is an error.
  void BuryAll(const std::vector<Claim>& claims, const absl::Status& written);
  // nullopt when the message is no longer there. Damage is told in the cause.
  absl::StatusOr<std::optional<queue::PoisonMessage>> ReadPoison(uint64_t seq) const;
  // The poison messages that a Redrive means, oldest first.
  absl::StatusOr<std::vector<uint64_t>> ChoosePoison(absl::Span<const std::string> message_ids,
                                                     int64_t max_messages);
  absl::StatusOr<std::vector<uint64_t>> StillPoison(absl::Span<const uint64_t> seqs);
  // One step of a Redrive; those that are poison no more are passed over.
  absl::StatusOr<int64_t> RedriveSome(absl::Span<const uint64_t> seqs);

  void PutState(::rocksdb::WriteBatch* batch, uint64_t seq, const MessageState& state) const;
  void DeleteMessage(::rocksdb::WriteBatch* batch, uint64_t seq) const;
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

}  // namespace muster::queue::rocksdb
