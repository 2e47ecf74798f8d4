// SPDX-License-Identifier: Apache-2.0

// What CompletingStore makes up for, in front of an engine that cannot: the embedded one, cut down
// to what a NATS server offers.
#include "services/queue-gateway/operations/completing_store.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::queue_gateway::operations {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr absl::Duration kLeaseOfTheQueue = absl::Seconds(30);

// Leases for as long as its queues say, and keeps each body as it was put.
class PlainEngine final : public queue::InterceptedStore {
 public:
  explicit PlainEngine(queue::QueueStore* behind)
      : InterceptedStore(behind), traits_(behind->traits()) {
    traits_.per_receive_visibility = false;
    traits_.body_update = false;
  }

  const queue::Traits& traits() const override { return traits_; }

  absl::StatusOr<std::vector<queue::Message>> Receive(
      const queue::QueueId& queue, const queue::ReceiveOptions& options) override {
    queue::ReceiveOptions by_queue = options;
    by_queue.visibility = kLeaseOfTheQueue;
    return InterceptedStore::Receive(queue, by_queue);
  }

  absl::StatusOr<std::unique_ptr<Wait>> AwaitMessage(const queue::QueueId& queue, absl::Duration,
                                                     TakeMessage take) override {
    auto received = Receive(queue, queue::ReceiveOptions());
    if (!received.ok()) return received.status();
    take(received->front());
    return std::make_unique<Wait>();
  }

  absl::StatusOr<std::vector<absl::StatusOr<queue::UpdateResult>>> Update(
      const queue::QueueId& queue, absl::Span<const queue::UpdateRequest> requests) override {
    updates.insert(updates.end(), requests.begin(), requests.end());
    for (const queue::UpdateRequest& request : requests) {
      if (request.body.has_value()) return absl::UnimplementedError("the text stays");
    }
    auto results = InterceptedStore::Update(queue, requests);
    if (results.ok() && std::exchange(refuses_one, false)) {
      results->front() = absl::FailedPreconditionError("the lease was lost");
    }
    return results;
  }

  std::vector<queue::UpdateRequest> updates;  // that came so far
  bool refuses_one = false;                   // of the next update

 private:
  queue::Traits traits_;
};

class CompletingStoreTest : public ::testing::Test {
 protected:
  CompletingStoreTest() {
    queue::rocksdb::Options options;
    options.clock = &clock_;
    embedded_ = *queue::rocksdb::RocksDbQueueStore::Open(folder_.path(), options);
    engine_ = std::make_unique<PlainEngine>(embedded_.get());
    store_ = std::make_unique<CompletingStore>(engine_.get(), &clock_);
    EXPECT_TRUE(store_->CreateQueue(queue_, {}).ok());
  }

  queue::PutResult Put(const std::string& body) {
    queue::NewMessage message;
    message.body = body;
    return store_->Put(queue_, {message})->front();
  }

  std::vector<queue::Message> Receive(absl::Duration visibility, int max_messages = 32) {
    auto received = store_->Receive(queue_, {max_messages, visibility});
    EXPECT_TRUE(received.ok()) << received.status();
    return received.ok() ? *std::move(received) : std::vector<queue::Message>();
  }

  absl::StatusOr<queue::UpdateResult> Update(const queue::Receipt& receipt,
                                             absl::Duration visibility,
                                             std::optional<std::string> body = std::nullopt) {
    queue::UpdateRequest request;
    request.receipt = receipt;
    request.visibility = visibility;
    request.body = std::move(body);
    return store_->Update(queue_, {request})->front();
  }

  absl::Status Delete(const queue::Receipt& receipt) {
    return store_->Delete(queue_, {receipt})->front();
  }

  const queue::QueueId queue_{"acct", "queue"};
  const os::TempDir folder_;
  base::FakeClock clock_;
  std::unique_ptr<queue::rocksdb::RocksDbQueueStore> embedded_;
  std::unique_ptr<PlainEngine> engine_;
  std::unique_ptr<CompletingStore> store_;
};

TEST_F(CompletingStoreTest, LeasesForAsLongAsAReceiveAsks) {
  for (const absl::Duration asked : {absl::Seconds(5), absl::Minutes(10)}) {
    Put("a");
    const std::vector<queue::Message> held = Receive(asked);
    ASSERT_THAT(held, SizeIs(1));
    EXPECT_EQ(held[0].next_visible_time, clock_.Now() + asked);
    clock_.Advance(asked - absl::Milliseconds(1));
    EXPECT_THAT(Receive(asked), IsEmpty()) << asked;
    clock_.Advance(absl::Milliseconds(1));
    const std::vector<queue::Message> again = Receive(asked);
    ASSERT_THAT(again, SizeIs(1));
    EXPECT_EQ(again[0].dequeue_count, 2);
    EXPECT_TRUE(absl::IsFailedPrecondition(Delete(held[0].receipt))) << "it is another's now";
    EXPECT_TRUE(Delete(again[0].receipt).ok());
  }
}

TEST_F(CompletingStoreTest, CostsNothingWhereTheQueueLeasesForAsLongAsAsked) {
  Put("a");
  EXPECT_THAT(Receive(kLeaseOfTheQueue), SizeIs(1));
  EXPECT_THAT(engine_->updates, IsEmpty());
}

TEST_F(CompletingStoreTest, LeavesOutAMessageWhoseLeaseCannotBeSet) {
  Put("a");
  Put("b");
  engine_->refuses_one = true;
  const std::vector<queue::Message> held = Receive(absl::Minutes(10));
  ASSERT_THAT(held, SizeIs(1));
  EXPECT_EQ(held[0].body, "b");
  clock_.Advance(absl::Minutes(10));
  EXPECT_THAT(Receive(absl::Minutes(10)), SizeIs(2)) << "it comes again";
}

TEST_F(CompletingStoreTest, ExtendsALeaseAsAHolderThatGivesUpForSomeTime) {
  Put("a");
  const queue::Message held = Receive(kLeaseOfTheQueue).front();
  ASSERT_TRUE(Update(held.receipt, absl::Minutes(2)).ok());
  ASSERT_THAT(engine_->updates, SizeIs(1));
  EXPECT_TRUE(engine_->updates[0].attempt_ended);
  clock_.Advance(absl::Minutes(1));
  EXPECT_THAT(Receive(kLeaseOfTheQueue), IsEmpty());
}

TEST_F(CompletingStoreTest, TakesTheTextThatAMessageHasAndNoOtherOne) {
  Put("text");
  const queue::Message held = Receive(kLeaseOfTheQueue).front();
  EXPECT_TRUE(absl::IsUnimplemented(Update(held.receipt, absl::ZeroDuration(), "other").status()));
  const auto kept = Update(held.receipt, absl::Minutes(2), "text");
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_FALSE(engine_->updates.back().body.has_value()) << "the engine sees no text";
  // Also by the receipt of an update, of an update that sent none, and of a put.
  const auto bare = Update(kept->receipt, absl::Minutes(2));
  ASSERT_TRUE(bare.ok());
  EXPECT_TRUE(absl::IsUnimplemented(Update(bare->receipt, absl::ZeroDuration(), "").status()));
  EXPECT_TRUE(Update(bare->receipt, absl::ZeroDuration(), "text").ok());
  const queue::PutResult put = Put("");
  EXPECT_TRUE(absl::IsUnimplemented(Update(put.receipt, absl::ZeroDuration(), "x").status()));
  EXPECT_TRUE(Update(put.receipt, absl::ZeroDuration(), "").ok());
}

TEST_F(CompletingStoreTest, AnswersEachUpdateOfABatchInItsPlace) {
  Put("a");
  Put("b");
  Put("c");
  const std::vector<queue::Message> held = Receive(kLeaseOfTheQueue);
  std::vector<queue::UpdateRequest> requests(3);
  for (size_t i = 0; i < requests.size(); ++i) requests[i].receipt = held[i].receipt;
  requests[0].body = "other";
  requests[1].receipt = "never.given";
  requests[2].body = "c";
  const auto results = *store_->Update(queue_, requests);
  ASSERT_THAT(results, SizeIs(3));
  EXPECT_TRUE(absl::IsUnimplemented(results[0].status()));
  EXPECT_TRUE(absl::IsInvalidArgument(results[1].status())) << results[1].status();
  ASSERT_TRUE(results[2].ok()) << results[2].status();
  EXPECT_TRUE(Delete(results[2]->receipt).ok());
}

TEST_F(CompletingStoreTest, KeepsNothingSoThatAnotherOneSettlesWhatItReceived) {
  Put("a");
  Put("b");
  const std::vector<queue::Message> held = Receive(absl::Minutes(10));
  store_ = std::make_unique<CompletingStore>(engine_.get(), &clock_);
  EXPECT_TRUE(Delete(held[0].receipt).ok());
  EXPECT_TRUE(Update(held[1].receipt, absl::ZeroDuration(), "b").ok());
  EXPECT_THAT(Receive(kLeaseOfTheQueue), SizeIs(1));
}

TEST_F(CompletingStoreTest, SettlesByItsReceiptsWithEachVerb) {
  Put("a");
  const std::vector<queue::Message> held = Receive(kLeaseOfTheQueue);
  const auto begun = *store_->BeginAttempt(queue_, {held[0].receipt});
  EXPECT_THAT(begun, ElementsAre(absl::StatusOr<int>(1)));
  queue::DeadLetterRequest request;
  request.receipt = held[0].receipt;
  EXPECT_TRUE(store_->DeadLetter(queue_, {request})->front().ok());
  EXPECT_EQ(embedded_->Stats(queue_)->poison, 1);
}

TEST_F(CompletingStoreTest, GivesItsReceiptsToThoseThatWait) {
  Put("a");
  queue::Receipt receipt;
  ASSERT_TRUE(store_
                  ->AwaitMessage(queue_, absl::Minutes(1),
                                 [&receipt](absl::StatusOr<queue::Message> message) {
                                   receipt = message->receipt;
                                   return true;
                                 })
                  .ok());
  EXPECT_TRUE(Update(receipt, absl::ZeroDuration(), "a").ok());
}

TEST_F(CompletingStoreTest, ClaimsTheLeasesThatItMakesUpForAndNoMore) {
  EXPECT_TRUE(store_->traits().per_receive_visibility);
  EXPECT_FALSE(store_->traits().body_update);
  EXPECT_EQ(store_->traits().engine, engine_->traits().engine);
}

}  // namespace
}  // namespace muster::queue_gateway::operations
