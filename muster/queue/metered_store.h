// MeteredStore: a queue store that counts its storage transactions, which is what queues in a cloud
// are billed by (req. 47).
#pragma once

#include <array>
#include <cstdint>

#include "muster/base/mutex.h"
#include "muster/queue/intercepted_store.h"

namespace muster::queue {

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

}  // namespace muster::queue
