// SPDX-License-Identifier: Apache-2.0

// InterceptedStore: a queue store in front of another store. It calls Before and After around each
// call that it forwards. The stores that throttle, refuse or count calls derive from it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/queue/queue_store.h"

namespace muster::queue {

// One storage transaction is one call of one of these verbs, with any number of messages.
enum class Verb {
  kAdministration,  // of queues: create, delete, list, metadata
  kPut,
  kReceive,
  kPeek,  // and scan
  kBeginAttempt,
  kUpdate,
  kDelete,
  kClear,
  kDeadLetter,
  kPoison,  // list, redrive, purge; move
  kStats,   // and the extent, the time to the next message, and whether one is there
};

// "put", "receive" …
absl::string_view NameOf(Verb verb);

// Thread-safe if Before and After are.
class InterceptedStore : public QueueStore {
 public:
  // `behind` is not owned.
  explicit InterceptedStore(QueueStore* behind) : behind_(behind) {}

  const Traits& traits() const override { return behind_->traits(); }
  absl::Status CreateQueue(const QueueId& queue, const Metadata& metadata) override;
  absl::Status DeleteQueue(const QueueId& queue) override;
  absl::StatusOr<std::vector<QueueInfo>> ListQueues(const ListQueuesRequest& request) override;
  absl::StatusOr<Metadata> GetMetadata(const QueueId& queue) override;
  absl::Status SetMetadata(const QueueId& queue, const Metadata& metadata) override;
  absl::StatusOr<std::vector<PutResult>> Put(const QueueId& queue,
                                             absl::Span<const NewMessage> messages) override;
  // A put of each queue, and not made for one that Before refuses. Calls Put, as the engine would,
  // unless traits().joins_queues.
  std::vector<absl::StatusOr<std::vector<PutResult>>> PutEach(
      absl::Span<const ForQueue<NewMessage>> puts) override;
  absl::StatusOr<std::vector<Message>> Receive(const QueueId& queue,
                                               const ReceiveOptions& options) override;
  // A receive, which ends with the message.
  absl::StatusOr<std::unique_ptr<Wait>> AwaitMessage(const QueueId& queue, absl::Duration patience,
                                                     TakeMessage take) override;
  absl::StatusOr<std::vector<Message>> Peek(const QueueId& queue, int max_messages) override;
  absl::StatusOr<std::vector<absl::StatusOr<int>>> BeginAttempt(
      const QueueId& queue, absl::Span<const Receipt> receipts) override;
  absl::StatusOr<std::vector<absl::StatusOr<UpdateResult>>> Update(
      const QueueId& queue, absl::Span<const UpdateRequest> requests) override;
  absl::StatusOr<std::vector<absl::Status>> Delete(const QueueId& queue,
                                                   absl::Span<const Receipt> receipts) override;
  // Likewise.
  std::vector<absl::StatusOr<std::vector<absl::Status>>> DeleteEach(
      absl::Span<const ForQueue<Receipt>> deletes) override;
  absl::Status Clear(const QueueId& queue) override;
  absl::StatusOr<std::vector<absl::Status>> DeadLetter(
      const QueueId& queue, absl::Span<const DeadLetterRequest> requests) override;
  absl::StatusOr<std::vector<PoisonMessage>> ListPoison(const QueueId& queue,
                                                        absl::string_view after,
                                                        int max_messages) override;
  absl::StatusOr<std::vector<std::optional<PoisonMessage>>> FindPoison(
      const QueueId& queue, absl::Span<const PoisonName> names) override;
  absl::StatusOr<int64_t> Redrive(const QueueId& queue, absl::Span<const std::string> message_ids,
                                  int64_t max_messages) override;
  absl::StatusOr<int64_t> PurgePoison(const QueueId& queue) override;
  absl::StatusOr<int64_t> DropPoison(const QueueId& queue,
                                     absl::Span<const std::string> message_ids) override;
  // Of the queue that it comes from.
  absl::StatusOr<std::vector<absl::Status>> Move(const QueueId& from, const QueueId& to,
                                                 absl::Span<const MoveRequest> requests) override;
  absl::StatusOr<absl::Duration> TimeToVisible(const QueueId& queue) override;
  absl::StatusOr<bool> Holds(const QueueId& queue, absl::string_view message_id) override;
  absl::StatusOr<QueueStats> Stats(const QueueId& queue) override;
  absl::StatusOr<QueueExtent> Extent(const QueueId& queue) override;
  // A peek.
  absl::StatusOr<std::vector<StoredMessage>> Scan(const QueueId& queue, uint64_t from,
                                                  int max) override;
  // An update.
  absl::StatusOr<uint64_t> Reclaim(const QueueId& queue) override;
  // Not a call of one queue: it is neither counted nor throttled.
  absl::StatusOr<std::vector<Released>> ReleaseHeldBy(const std::string& holder,
                                                      absl::Duration silence) override {
    return behind_->ReleaseHeldBy(holder, silence);
  }

 protected:
  // Both do nothing unless overridden. If Before returns an error, the caller gets that error and
  // the call is not made. For ListQueues, `queue` has only an account.
  virtual absl::Status Before(Verb, const QueueId&) { return absl::OkStatus(); }
  // `useful`: the call succeeded and was not a look at an empty queue. Not called when Before
  // refused the call.
  virtual void After(Verb, const QueueId&, bool /*useful*/) {}

 private:
  // Makes the call between Before and After. `is_useful` judges the result of a successful call.
  template <typename Call, typename IsUseful>
  auto Intercept(Verb verb, const QueueId& queue, Call call, IsUseful is_useful)
      -> decltype(call());
  template <typename Call>
  auto Intercept(Verb verb, const QueueId& queue, Call call) -> decltype(call());
  // The same of each queue, with one call for all that Before admits.
  template <typename Result, typename Item, typename Call>
  std::vector<absl::StatusOr<Result>> InterceptEach(Verb verb,
                                                    absl::Span<const ForQueue<Item>> asked,
                                                    Call call);

  QueueStore* const behind_;  // not owned
};

// MeteredStore: a queue store that counts its storage transactions, the unit by which cloud queues
// are billed.

inline constexpr int kVerbs = static_cast<int>(Verb::kStats) + 1;

// Storage transactions of one verb.
struct Transactions {
  int64_t useful = 0;
  int64_t wasted = 0;  // failed, or looked at an empty queue

  int64_t total() const { return useful + wasted; }
};

using TransactionsByVerb = std::array<Transactions, kVerbs>;  // by Verb

// Thread-safe.
class MeteredStore final : public InterceptedStore {
 public:
  // `behind` is not owned.
  explicit MeteredStore(QueueStore* behind) : InterceptedStore(behind) {}

  // Totals since the store was constructed.
  TransactionsByVerb transactions() const {
    base::MutexLock lock(&mu_);
    return transactions_;
  }

 protected:
  void After(Verb verb, const QueueId&, bool useful) override {
    base::MutexLock lock(&mu_);
    Transactions& of_verb = transactions_[static_cast<size_t>(verb)];
    ++(useful ? of_verb.useful : of_verb.wasted);
  }

 private:
  mutable base::Mutex mu_;
  TransactionsByVerb transactions_ ABSL_GUARDED_BY(mu_) = {};
};

// ThrottledStore: a queue store that admits a limited number of storage transactions per second for
// each queue. It refuses the excess at once and says when to retry. Callers that obey
// lose nothing, and the store behind never sees the peak.

// Thread-safe.
class ThrottledStore final : public InterceptedStore {
 public:
  // `per_second`: the transactions per second of each queue, above 0. A queue that was quiet may
  // use one second's worth at once. Neither pointer is owned.
  ThrottledStore(QueueStore* behind, double per_second, base::Clock* clock);

 protected:
  // Returns ResourceExhausted with base::RetryAfter when the queue has used up its rate.
  absl::Status Before(Verb verb, const QueueId& queue) override;

 private:
  // Gains tokens at `per_second`, up to one second's worth; each call takes one.
  struct Bucket {
    double tokens;
    absl::Duration filled_at;
  };

  const double per_second_;
  base::Clock* const clock_;  // not owned
  base::Mutex mu_;
  absl::flat_hash_map<QueueId, Bucket> buckets_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::queue
