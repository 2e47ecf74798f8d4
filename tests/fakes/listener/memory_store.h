// SPDX-License-Identifier: Apache-2.0

// MemoryStore: a QueueStore in memory, for tests of code that reads queues. It is not durable, but
// it keeps the contract; it fails, blocks and reports on command.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/queue/queue_store.h"

namespace muster::listener::testing {

enum class Verb { kPut, kReceive, kBeginAttempt, kUpdate, kDelete, kDeadLetter, kStats };
inline constexpr int kVerbs = 7;

// Thread-safe. A queue is made on its first use.
class MemoryStore final : public queue::QueueStore {
 public:
  // Called before a verb does its work, without locks: may block. The verb returns an error of the
  // hook, and does nothing.
  using Hook = std::function<absl::Status(Verb, const queue::QueueId&)>;

  // Called when a verb has done its work, before it returns, without locks: may block.
  using AfterHook = std::function<void(Verb, const queue::QueueId&)>;

  // Called for each message of a BeginAttempt, Update, Delete or DeadLetter, with its body, under
  // the lock of the store. An error becomes the result of the message; the call as a whole is OK.
  using MessageHook = std::function<absl::Status(Verb, const std::string&)>;

  explicit MemoryStore(base::Clock* clock);

  void SetHook(Hook hook);
  void SetAfterHook(AfterHook hook);
  // `before`: on an error nothing is done with the message. `after`: the work was done, but the
  // answer is lost.
  void SetMessageHooks(MessageHook before, MessageHook after);
  // Behaves like a remote engine: a message that was leased once counts as in flight, with or
  // without a holder. Call it before any other function.
  void BlurStats();
  // Says that a call which is not answered takes so long. Call it before any other function.
  void SetLongestCall(absl::Duration time) { traits_.longest_call = time; }
  // Behaves like a store with expensive calls.
  void BeginTogether();
  // Returns how often a verb was called, failures included.
  int calls(Verb verb) const;
  // Blocks until `verb` has been called, and has returned, at least `n` times.
  void AwaitCalls(Verb verb, int n) const;
  // Blocks until `n` messages of the queue have been deleted, or set aside as poison.
  void AwaitDeleted(const queue::QueueId& queue, int n) const;
  void AwaitPoison(const queue::QueueId& queue, int n) const;
  // The bodies put into a queue so far, in order, and the bodies deleted from it.
  std::vector<std::string> put(const queue::QueueId& queue) const;
  std::vector<std::string> deleted(const queue::QueueId& queue) const;
  // Ends every lease of the queue, as a power cut may: messages are ready, receipts are stale.
  void BreakLeases(const queue::QueueId& queue);

  const queue::Traits& traits() const override { return traits_; }
  absl::Status CreateQueue(const queue::QueueId&, const queue::Metadata&) override;
  absl::Status DeleteQueue(const queue::QueueId&) override;
  absl::StatusOr<std::vector<queue::QueueInfo>> ListQueues(
      const queue::ListQueuesRequest&) override;
  absl::StatusOr<queue::Metadata> GetMetadata(const queue::QueueId&) override;
  absl::Status SetMetadata(const queue::QueueId&, const queue::Metadata&) override;
  absl::StatusOr<std::vector<queue::PutResult>> Put(
      const queue::QueueId& queue, absl::Span<const queue::NewMessage> messages) override;
  absl::StatusOr<std::vector<queue::Message>> Receive(
      const queue::QueueId& queue, const queue::ReceiveOptions& options) override;
  absl::StatusOr<std::vector<queue::Message>> Peek(const queue::QueueId&, int) override;
  absl::StatusOr<std::vector<absl::StatusOr<int>>> BeginAttempt(
      const queue::QueueId& queue, absl::Span<const queue::Receipt> receipts) override;
  absl::StatusOr<std::vector<absl::StatusOr<queue::UpdateResult>>> Update(
      const queue::QueueId& queue, absl::Span<const queue::UpdateRequest> requests) override;
  absl::StatusOr<std::vector<absl::Status>> Delete(
      const queue::QueueId& queue, absl::Span<const queue::Receipt> receipts) override;
  absl::Status Clear(const queue::QueueId&) override;
  absl::StatusOr<std::vector<absl::Status>> DeadLetter(
      const queue::QueueId& queue, absl::Span<const queue::DeadLetterRequest> requests) override;
  absl::StatusOr<std::vector<queue::PoisonMessage>> ListPoison(const queue::QueueId& queue,
                                                               absl::string_view after,
                                                               int max_messages) override;
  absl::StatusOr<std::vector<std::optional<queue::PoisonMessage>>> FindPoison(
      const queue::QueueId&, absl::Span<const queue::PoisonName>) override;
  absl::StatusOr<int64_t> Redrive(const queue::QueueId&, absl::Span<const std::string>,
                                  int64_t) override;
  absl::StatusOr<int64_t> PurgePoison(const queue::QueueId&) override;
  absl::StatusOr<int64_t> DropPoison(const queue::QueueId&, absl::Span<const std::string>) override;
  absl::StatusOr<queue::QueueStats> Stats(const queue::QueueId& queue) override;
  absl::StatusOr<queue::QueueExtent> Extent(const queue::QueueId& queue) override;
  absl::StatusOr<std::vector<queue::StoredMessage>> Scan(const queue::QueueId&, uint64_t,
                                                         int) override;
  absl::StatusOr<uint64_t> Reclaim(const queue::QueueId& queue) override;

 private:
  struct Record {
    queue::Message message;
    absl::Duration visible_at;
    uint64_t lease = 0;    // of the newest receipt
    bool began = false;    // an attempt, under this lease
    bool suspect = false;  // an attempt that began under an earlier lease was never settled
  };
  using Key = std::pair<absl::Duration, uint64_t>;  // visible at, sequence
  struct Queue {
    std::map<uint64_t, Record> records;
    std::set<Key> by_visibility;
    std::vector<queue::PoisonMessage> poison;
    std::vector<std::string> put;
    std::vector<std::string> deleted;
  };
  using QueueKey = std::pair<std::string, std::string>;

  // Runs the hook, counts the call, and reports on return that it was made.
  class Call;

  Queue& Of(const queue::QueueId& queue) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  const Queue* Find(const queue::QueueId& queue) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns the record for which a receipt is valid, and its sequence; or the reason why `verb`
  // skips it.
  absl::StatusOr<Record*> Resolve(Verb verb, Queue& queue, const queue::Receipt& receipt,
                                  uint64_t& sequence) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns the result for a message for which `verb` has done its work.
  absl::Status Answer(Verb verb, const std::string& body) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void MoveTo(Queue& queue, uint64_t sequence, Record& record, absl::Duration visible_at)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  queue::Receipt NewReceipt(uint64_t sequence, Record& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Erase(Queue& queue, uint64_t sequence) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  base::Clock* const clock_;  // not owned
  queue::Traits traits_;

  mutable base::Mutex mu_;
  mutable base::CondVar changed_;
  Hook hook_ ABSL_GUARDED_BY(mu_);
  AfterHook after_hook_ ABSL_GUARDED_BY(mu_);
  MessageHook before_message_ ABSL_GUARDED_BY(mu_);
  MessageHook after_message_ ABSL_GUARDED_BY(mu_);
  std::array<int, kVerbs> calls_ ABSL_GUARDED_BY(mu_) = {};
  std::map<QueueKey, Queue> queues_ ABSL_GUARDED_BY(mu_);
  uint64_t next_sequence_ ABSL_GUARDED_BY(mu_) = 1;
  uint64_t next_lease_ ABSL_GUARDED_BY(mu_) = 1;
};

}  // namespace muster::listener::testing
