// SPDX-License-Identifier: Apache-2.0

// QueueModel: the contract of queue_store.h for one queue, in the simplest form. It stores nothing
// and has no limits, threads or faults; a property test compares the answers of an engine with its
// own.
//
// It is a value type: a copy of an earlier state models what a crash may leave.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "muster/queue/queue_store.h"

namespace muster::queue::testing {

// The verbs return what those of an engine return, with these differences:
//   - a message's id is the body that it was put with: no two bodies of a test are the same;
//   - a receipt is made of the id and the number of the call that gave it, so that two models that
//     saw the same calls give the same receipts, also if their calls had other results;
//   - no call names a message twice.
class QueueModel {
 public:
  // All following verbs happen at this time, as call number `call`.
  void At(absl::Time now, int call);

  absl::Status Create(const Metadata& metadata);
  absl::Status Destroy();
  absl::StatusOr<Metadata> GetMetadata() const;
  absl::Status SetMetadata(const Metadata& metadata);

  absl::StatusOr<std::vector<PutResult>> Put(const std::vector<NewMessage>& messages);
  absl::StatusOr<std::vector<Message>> Receive(const ReceiveOptions& options);
  absl::StatusOr<std::vector<Message>> Peek(int max_messages) const;
  absl::StatusOr<std::vector<absl::StatusOr<int>>> BeginAttempt(
      const std::vector<Receipt>& receipts);
  absl::StatusOr<std::vector<absl::StatusOr<UpdateResult>>> Update(
      const std::vector<UpdateRequest>& requests);
  absl::StatusOr<std::vector<absl::Status>> Delete(const std::vector<Receipt>& receipts);
  absl::Status Clear();
  absl::StatusOr<std::vector<absl::Status>> DeadLetter(
      const std::vector<DeadLetterRequest>& requests);
  absl::StatusOr<std::vector<PoisonMessage>> ListPoison() const;  // all of it
  absl::StatusOr<int64_t> Redrive(const std::vector<std::string>& ids, int64_t max_messages);
  absl::StatusOr<int64_t> PurgePoison();
  absl::StatusOr<QueueStats> Stats() const;

  // The store is opened again. `holders_in_process`, of the engine: the lease holders died with the
  // store, and the next reopening forgets later leases, unless they were written.
  void Reopen(bool holders_in_process);

  // Returns whether the last call must survive a power cut.
  bool must_be_durable() const { return must_be_durable_; }

  friend bool operator==(const QueueModel& a, const QueueModel& b) = default;

 private:
  struct Stored {
    std::string id, body;
    absl::Time insertion, expiration;
    absl::Time visible;
    absl::Time lease_end;  // what `visible` was set to last; later than it when holders died
    Receipt receipt;       // the only good one
    int dequeues = 0, attempts = 0;
    bool held = false, began = false, suspect = false;  // see codec.h of the embedded engine
    friend bool operator==(const Stored& a, const Stored& b) = default;
  };
  struct Buried {
    Stored message;
    std::string reason, holder;
    int attempts = 0;
    absl::Time time;
    friend bool operator==(const Buried& a, const Buried& b) = default;
  };
  struct Remembered {
    std::string id;  // the first message's
    uint64_t seq = 0;
    absl::Time until;  // when its message is gone
    friend bool operator==(const Remembered& a, const Remembered& b) = default;
  };
  using Messages = std::map<uint64_t, Stored>;

  void ForgetAll();              // forgets all but the time and the options of the open
  absl::Status Missing() const;  // NotFound when there is no queue
  const Remembered* FindDuplicate(const std::string& dedup_id) const;
  void Hide(Stored* message, absl::Duration visibility);
  // The visible messages, in their order.
  std::vector<uint64_t> Ready(int max_messages) const;
  static Message Show(const Stored& message);
  // Marks the message as written: a restart finds it in its current state.
  void Write(uint64_t seq) { unwritten_.erase(seq); }
  // Returns the message of a valid receipt. Counts a stale one.
  absl::StatusOr<Messages::iterator> Find(const Receipt& receipt);

  absl::Time now_;
  int call_ = 0;
  bool must_be_durable_ = false;

  bool exists_ = false;
  Metadata metadata_;
  uint64_t next_seq_ = 0;
  Messages messages_;  // by sequence
  bool holders_in_process_ = false;
  Messages unwritten_;  // as a restart finds messages with an unwritten lease
  std::map<uint64_t, Buried> poison_;
  std::map<std::string, Remembered> remembered_;  // by dedup id
  int64_t in_ = 0, out_ = 0, expired_ = 0, stale_ = 0;
};

}  // namespace muster::queue::testing
