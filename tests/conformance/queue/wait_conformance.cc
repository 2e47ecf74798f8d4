// SPDX-License-Identifier: Apache-2.0

// Waiting for a message, where the engine can (Traits::long_poll).
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "muster/base/mutex.h"
#include "muster/queue/queue_store.h"
#include "tests/conformance/queue/queue_conformance.h"

namespace muster::queue::conformance {
namespace {

using ::testing::IsEmpty;

// What one wait has brought. Thread-safe.
class Arrival {
 public:
  QueueStore::TakeMessage Taker(bool takes) {
    return [this, takes](absl::StatusOr<Message> message) {
      base::MutexLock lock(&mu_);
      EXPECT_FALSE(message_.has_value()) << "a wait ends once";
      message_ = std::move(message);
      changed_.NotifyAll();
      return takes;
    };
  }
  Message Await() {
    base::MutexLock lock(&mu_);
    while (!message_.has_value()) changed_.Wait(&mu_);
    EXPECT_TRUE(message_->ok()) << message_->status();
    return message_->ok() ? **message_ : Message();
  }
  bool came() {
    base::MutexLock lock(&mu_);
    return message_.has_value();
  }

 private:
  base::Mutex mu_;
  base::CondVar changed_;
  std::optional<absl::StatusOr<Message>> message_ ABSL_GUARDED_BY(mu_);
};

std::unique_ptr<QueueStore::Wait> Wait(QueueStore* store, const QueueId& queue, Arrival* arrival,
                                       bool takes = true) {
  auto wait = store->AwaitMessage(queue, absl::Minutes(1), arrival->Taker(takes));
  EXPECT_TRUE(wait.ok()) << wait.status();
  return wait.ok() ? *std::move(wait) : nullptr;
}

TEST_P(QueueConformanceTest, WaitsOnlyWhereItsTraitsSaySo) {
  Arrival arrival;
  const auto wait = store_->AwaitMessage(queue_, absl::Minutes(1), arrival.Taker(true));
  EXPECT_EQ(absl::IsUnimplemented(wait.status()), !traits().long_poll) << wait.status();
}

TEST_P(QueueConformanceTest, BringsAMessageToACallerThatWaits) {
  if (!traits().long_poll) GTEST_SKIP();
  Arrival arrival;
  const auto wait = Wait(store_, queue_, &arrival);
  Put("a");
  const Message message = arrival.Await();
  EXPECT_EQ(message.body, "a");
  EXPECT_EQ(message.dequeue_count, 1);
  EXPECT_THAT(ReceiveBodies(), IsEmpty()) << "it is leased";
  EXPECT_EQ(BeginAttempt(message.receipt).value(), 1);
  EXPECT_TRUE(Delete(message.receipt).ok());
  EXPECT_EQ(Stats().stored(), 0);
}

TEST_P(QueueConformanceTest, HasAMessageReadyAtOnceThatAWaitDoesNotTake) {
  if (!traits().long_poll) GTEST_SKIP();
  Arrival refused, taken;
  const auto wait = Wait(store_, queue_, &refused, /*takes=*/false);
  Put("a");
  EXPECT_EQ(refused.Await().body, "a");
  const auto next = Wait(store_, queue_, &taken);
  EXPECT_EQ(taken.Await().body, "a");
}

TEST_P(QueueConformanceTest, HasAMessageReadyAtOnceThatComesForAWaitThatWasEnded) {
  if (!traits().long_poll) GTEST_SKIP();
  Arrival ended, taken;
  Wait(store_, queue_, &ended).reset();
  Put("a");
  const auto next = Wait(store_, queue_, &taken);
  EXPECT_EQ(taken.Await().body, "a");
  EXPECT_FALSE(ended.came());
}

}  // namespace

bool LinkWaitTests() { return true; }

}  // namespace muster::queue::conformance
