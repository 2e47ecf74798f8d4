// InterceptedStore: a queue store behind another, which hears of each call before it is made and
// after. What slows calls down, refuses or counts them derives from it.
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

// One storage transaction is one call of one of these, whatever number of messages it carries.
enum class Verb {
  kAdministration,  // of queues: create, delete, list, metadata
  kPut,
  kReceive,
  kPeek,
  kBeginAttempt,
  kUpdate,
  kDelete,
  kClear,
  kDeadLetter,
  kPoison,  // list, redrive, purge
  kStats,
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
  absl::StatusOr<std::vector<Message>> Receive(const QueueId& queue,
                                               const ReceiveOptions& options) override;
  absl::StatusOr<std::vector<Message>> Peek(const QueueId& queue, int max_messages) override;
  absl::StatusOr<std::vector<absl::StatusOr<int>>> BeginAttempt(
      const QueueId& queue, absl::Span<const Receipt> receipts) override;
  absl::StatusOr<std::vector<absl::StatusOr<UpdateResult>>> Update(
      const QueueId& queue, absl::Span<const UpdateRequest> requests) override;
  absl::StatusOr<std::vector<absl::Status>> Delete(const QueueId& queue,
                                                   absl::Span<const Receipt> receipts) override;
  absl::Status Clear(const QueueId& queue) override;
  absl::StatusOr<std::vector<absl::Status>> DeadLetter(
      const QueueId& queue, absl::Span<const DeadLetterRequest> requests) override;
  absl::StatusOr<std::vector<PoisonMessage>> ListPoison(const QueueId& queue,
                                                        absl::string_view after,
                                                        int max_messages) override;
  absl::StatusOr<int64_t> Redrive(const QueueId& queue, absl::Span<const std::string> message_ids,
                                  int64_t max_messages) override;
  absl::StatusOr<int64_t> PurgePoison(const QueueId& queue) override;
  absl::StatusOr<QueueStats> Stats(const QueueId& queue) override;

 protected:
  // An error is what the caller gets; the call is not made then. ListQueues names an account only.
  virtual absl::Status Before(Verb verb, const QueueId& queue) = 0;
  // `useful`: it did not fail, and was no look at an empty queue. Not after a refused call.
  virtual void After(Verb verb, const QueueId& queue, bool useful) = 0;

 private:
  // Makes the call between Before and After; `is_useful` judges what came of one that did not fail.
  template <typename Call, typename IsUseful>
  auto Intercept(Verb verb, const QueueId& queue, Call call, IsUseful is_useful)
      -> decltype(call());
  template <typename Call>
  auto Intercept(Verb verb, const QueueId& queue, Call call) -> decltype(call());

  QueueStore* const behind_;  // not owned
};

// MeteredStore: a queue store that counts its storage transactions, which is what queues in a cloud
// are billed by (req. 47).

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

  // Since the store was made.
  TransactionsByVerb transactions() const {
    base::MutexLock lock(&mu_);
    return transactions_;
  }

 protected:
  absl::Status Before(Verb, const QueueId&) override { return absl::OkStatus(); }
  void After(Verb verb, const QueueId&, bool useful) override {
    base::MutexLock lock(&mu_);
    Transactions& of_verb = transactions_[static_cast<size_t>(verb)];
    ++(useful ? of_verb.useful : of_verb.wasted);
  }

 private:
  mutable base::Mutex mu_;
  TransactionsByVerb transactions_ ABSL_GUARDED_BY(mu_) = {};
};

// ThrottledStore: a queue store that takes only so many storage transactions a second for each
// queue (req. 52). What is more is refused at once with a word on when to come back: callers that
// obey it lose nothing, and the store behind never sees the storm.

// Thread-safe.
class ThrottledStore final : public InterceptedStore {
 public:
  // `per_second`: the target of each queue, above 0; a queue that was quiet may take a second's
  // worth at once. Neither pointer is owned.
  ThrottledStore(QueueStore* behind, double per_second, base::Clock* clock);

 protected:
  // ResourceExhausted with base::RetryAfter when the queue's target is reached.
  absl::Status Before(Verb verb, const QueueId& queue) override;
  void After(Verb, const QueueId&, bool) override {}

 private:
  // Fills at the target's rate, up to a second's worth; a call takes one.
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
