// SPDX-License-Identifier: Apache-2.0
#include "muster/item/redrive.h"

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/item/work_item_codec.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/os/temp_dir.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"
#include "muster/queue/store_decorators.h"
#include "muster/v1/work_item.pb.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::item {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// Records the items that get another chance, or refuses them.
class NotedChances final : public BatchReopener {
 public:
  absl::Status answer;
  std::set<uint64_t> closed;   // cancelled batches
  std::set<uint64_t> deleted;  // batches that none of two initiators has
  RefusedItems retried;
  std::map<uint64_t, std::vector<uint64_t>> granted;

  absl::StatusOr<RefusedItems> Grant(uint64_t batch, absl::Span<const uint64_t> items) override {
    if (!answer.ok()) return answer;
    if (closed.contains(batch)) {
      return absl::FailedPreconditionError(absl::StrCat("batch ", batch, " is cancelled"));
    }
    if (deleted.contains(batch)) return ledger::UnknownToAll(batch, 2);
    for (const uint64_t item : items) {
      if (!retried.contains(item)) granted[batch].push_back(item);
    }
    return retried;
  }
};

class RedriveTest : public ::testing::Test {
 protected:
  RedriveTest() {
    request_.queue = {"acme", "work"};
    queue::rocksdb::Options options;
    options.clock = &clock_;
    auto opened = queue::rocksdb::RocksDbQueueStore::Open(dir_.path(), options);
    EXPECT_TRUE(opened.ok()) << opened.status();
    queues_ = *std::move(opened);
    EXPECT_TRUE(queues_->CreateQueue(request_.queue, {}).ok());
  }

  // Puts messages and gives them up; returns their ids.
  std::vector<std::string> GiveUp(const std::vector<std::string>& bodies) {
    std::vector<queue::NewMessage> messages(bodies.size());
    for (size_t i = 0; i < bodies.size(); ++i) messages[i].body = bodies[i];
    const auto put = queues_->Put(request_.queue, messages);
    EXPECT_TRUE(put.ok()) << put.status();
    std::vector<std::string> ids;
    std::vector<queue::DeadLetterRequest> requests;
    for (const queue::PutResult& result : *put) {
      ids.push_back(result.message_id);
      requests.push_back({result.receipt, {"it hung", 3, "worker-1", {}}});
    }
    EXPECT_TRUE(queues_->DeadLetter(request_.queue, requests).ok());
    return ids;
  }
  // Items 0 to count - 1 of batch 7.
  void GiveUpItems(uint32_t count) {
    std::vector<std::string> bodies;
    for (uint32_t i = 0; i < count; ++i) bodies.push_back(Item(7, i));
    GiveUp(bodies);
  }
  static std::string Item(uint64_t batch, uint32_t index) {
    v1::WorkItem item;
    item.set_batch(batch);
    item.set_index(index);
    item.set_transactions(10);
    item.set_content_hash(base::Fingerprint("slice").ToBytes());
    return item.SerializeAsString();
  }

  RedriveSummary Redrive() {
    const auto summary = TryRedrive();
    EXPECT_TRUE(summary.ok()) << summary.status();
    return *summary;
  }
  absl::StatusOr<RedriveSummary> TryRedrive() { return RedriveItems(request_, *queues_, chances_); }

  queue::QueueStats Stats() { return *queues_->Stats(request_.queue); }

  RedriveRequest request_;
  NotedChances chances_;
  base::FakeClock clock_;
  const os::TempDir dir_;
  std::unique_ptr<queue::QueueStore> queues_;
};

TEST_F(RedriveTest, GrantsEachItemItsChanceAndMakesItReady) {
  GiveUp({Item(7, 3), Item(8, 0), Item(7, 1)});
  const RedriveSummary summary = Redrive();
  EXPECT_EQ(summary.messages, 3);
  EXPECT_THAT(summary.batches, ElementsAre(7, 8));
  EXPECT_THAT(chances_.granted,
              UnorderedElementsAre(Pair(7, ElementsAre(3, 1)), Pair(8, ElementsAre(0))));
  EXPECT_EQ(Stats().ready, 3);
}

TEST_F(RedriveTest, RedrivesWhatIsNoWorkItemAsItIs) {
  GiveUp({"hello"});
  EXPECT_EQ(Redrive().messages, 1);
  EXPECT_THAT(chances_.granted, IsEmpty());
}

TEST_F(RedriveTest, TakesTheOldestFirst) {
  GiveUpItems(5);
  request_.max = 3;
  EXPECT_EQ(Redrive().messages, 3);
  EXPECT_THAT(chances_.granted, ElementsAre(Pair(7, ElementsAre(0, 1, 2))));
}

TEST_F(RedriveTest, GoesThroughMoreThanAPage) {
  GiveUpItems(1001);
  EXPECT_EQ(Redrive().messages, 1001);
  EXPECT_EQ(chances_.granted[7].size(), 1001);
}

TEST_F(RedriveTest, LeavesTheMessagePoisonThatGetsNoChance) {
  GiveUpItems(1);
  chances_.answer = absl::UnavailableError("nobody counts now");
  EXPECT_EQ(TryRedrive().status(), chances_.answer);
  EXPECT_EQ(Stats().poison, 1);
}

TEST_F(RedriveTest, LeavesTheMessagesOfABatchThatTakesNoItems) {
  GiveUp({Item(6, 0), Item(7, 0), Item(6, 1), Item(7, 1)});
  chances_.closed = {6};
  request_.max = 2;
  const RedriveSummary summary = Redrive();
  EXPECT_EQ(summary.messages, 2);
  EXPECT_EQ(summary.kept_messages, 2);
  EXPECT_THAT(summary.kept, ElementsAre(Pair(6, "batch 6 is cancelled")));
  EXPECT_THAT(chances_.granted, ElementsAre(Pair(7, ElementsAre(0, 1))));
  EXPECT_EQ(Stats().poison, 2);
  EXPECT_EQ(TryRedrive().status(),
            absl::FailedPreconditionError("the poison messages stay (2): batch 6 is cancelled"));
}

TEST_F(RedriveTest, LetsADeletedBatchKeepBackNoOther) {
  GiveUp({Item(6, 0), Item(7, 0)});
  chances_.deleted = {6};
  const RedriveSummary summary = Redrive();
  EXPECT_EQ(summary.messages, 1);
  EXPECT_THAT(summary.kept,
              ElementsAre(Pair(6, "none of the 2 initiators that are known has batch 6")));
  EXPECT_THAT(chances_.granted, ElementsAre(Pair(7, ElementsAre(0))));
  EXPECT_EQ(TryRedrive().status(),
            absl::FailedPreconditionError("the poison messages stay (1): none of the 2 initiators "
                                          "that are known has batch 6"));
}

TEST_F(RedriveTest, LeavesTheMessagesOfItemsThatAreRetried) {
  GiveUp({Item(7, 0), Item(7, 3), Item(7, 4)});
  chances_.retried = {{3, "item 7/3 is retried in batch 9"}, {4, "item 7/4 is retried in batch 9"}};
  const RedriveSummary summary = Redrive();
  EXPECT_EQ(summary.messages, 1);
  EXPECT_THAT(summary.batches, ElementsAre(7));
  EXPECT_EQ(summary.kept_messages, 2);
  EXPECT_THAT(summary.kept, ElementsAre(Pair(7,
                                             "item 7/3 is retried in batch 9, and 1 more of its "
                                             "items are retried")));
  EXPECT_EQ(Stats().poison, 2);
  chances_.retried.erase(4);
  EXPECT_EQ(Redrive().messages, 1);
  EXPECT_EQ(TryRedrive().status(),
            absl::FailedPreconditionError(
                "the poison messages stay (1): item 7/3 is retried in batch 9"));
}

TEST_F(RedriveTest, DropsTheMessagesOfItemsThatAreRetried) {
  GiveUp({"hello", Item(6, 1), Item(7, 0), Item(7, 1), Item(7, 2)});
  std::set<uint64_t> items = {1, 2, 99};
  EXPECT_EQ(*DropPoisonOf(request_.queue, 7, &items, *queues_), 2);
  EXPECT_EQ(Stats().poison, 3);
  EXPECT_THAT(items, ElementsAre(99));
  EXPECT_EQ(*DropPoisonOf(request_.queue, 7, &items, *queues_), 0);
  Redrive();
  EXPECT_THAT(chances_.granted,
              UnorderedElementsAre(Pair(6, ElementsAre(1)), Pair(7, ElementsAre(0))));
}

// Each partition of a job was read to its end, though the first had all of them.
TEST_F(RedriveTest, LooksIntoNoFurtherQueueOnceAllRetriedItemsAreFound) {
  GiveUp({Item(7, 1)});
  std::set<uint64_t> items = {1};
  EXPECT_EQ(*DropPoisonOf(request_.queue, 7, &items, *queues_), 1);
  const queue::QueueId unreadable = {request_.queue.account, "is-not-there"};
  EXPECT_EQ(*DropPoisonOf(unreadable, 7, &items, *queues_), 0);
}

// Behind what was put when the batch was over there may be any number of dead letters of later
// ones.
TEST_F(RedriveTest, LooksForDroppedItemsNoFurtherThanWhatWasPutWithThem) {
  GiveUp(std::vector<std::string>(32, Item(6, 0)));
  const absl::Time over = clock_.Now();
  clock_.Advance(absl::Hours(1));
  GiveUp({Item(7, 1)});
  std::set<uint64_t> items = {1};
  EXPECT_EQ(*DropPoisonOf(request_.queue, 7, &items, *queues_, over - absl::Seconds(1)), 0);
  EXPECT_EQ(*DropPoisonOf(request_.queue, 7, &items, *queues_, over), 1) << "the next page";
}

TEST_F(RedriveTest, TakesTheMessagesThatAreNamed) {
  const std::string named = GiveUp({Item(7, 0), Item(7, 1)})[1];
  request_.messages = {named};
  EXPECT_EQ(Redrive().messages, 1);
  EXPECT_THAT(chances_.granted, ElementsAre(Pair(7, ElementsAre(1))));
}

// A store whose poison must not be read message by message.
class NoList final : public queue::InterceptedStore {
 public:
  using InterceptedStore::InterceptedStore;
  absl::StatusOr<std::vector<queue::PoisonMessage>> ListPoison(const queue::QueueId&,
                                                               absl::string_view, int) override {
    return absl::InternalError("all of it is read");
  }
};

TEST_F(RedriveTest, ReadsNoOtherMessagesThanThoseThatAreNamed) {
  std::vector<std::string> bodies(1, "hello");
  for (uint32_t i = 0; i < 40; ++i) bodies.push_back(Item(7, i));
  request_.messages = GiveUp(bodies);
  GiveUpItems(1);
  NoList looked_up(queues_.get());
  const auto summary = RedriveItems(request_, looked_up, chances_);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->messages, 41);
  EXPECT_EQ(chances_.granted[7].size(), 40);
  EXPECT_EQ(Stats().poison, 1);
}

TEST_F(RedriveTest, PassesOverANameThatIsMissingOrRefusesAllOfThem) {
  const std::string named = GiveUp({Item(7, 0)})[0];
  request_.messages = {named, "nonsense"};
  request_.missing = Missing::kRefused;
  EXPECT_EQ(TryRedrive().status(), absl::NotFoundError("acme/work has no poison message nonsense"));
  EXPECT_EQ(Stats().poison, 1);
  request_.missing = Missing::kPassedOver;
  EXPECT_EQ(Redrive().messages, 1);
}

// Messages of one queue that were moved to another one, as the queue gateway moves them.
TEST_F(RedriveTest, TakesBackWhatWasMovedHereAsPoison) {
  const queue::QueueId from = {"acme", "orders"};
  std::vector<queue::NewMessage> one(1);
  one[0].body = "a";
  ASSERT_TRUE(queues_->CreateQueue(from, {}).ok());
  for (int i = 0; i < 3; ++i) {
    queue::MoveRequest move;
    move.receipt = queues_->Put(from, one)->front().receipt;
    move.cause = queue::Cause{"it hung", 3, "worker-1", {}};
    ASSERT_TRUE(queues_->Move(from, request_.queue, {move}).ok());
  }
  GiveUp({"b"});
  ASSERT_TRUE(queues_->Put(request_.queue, one).ok());  // no poison
  request_.max = 2;
  EXPECT_EQ(Redrive().messages, 2);
  request_.max = 100;
  EXPECT_EQ(Redrive().messages, 2);
  EXPECT_EQ(queues_->Stats(from)->ready, 3);
  EXPECT_EQ(Stats().ready, 2);
}

TEST_F(RedriveTest, GoesOnBehindMessagesWhoseQueueIsGone) {
  const queue::QueueId gone = {"acme", "gone"};
  ASSERT_TRUE(queues_->CreateQueue(gone, {}).ok());
  queue::MoveRequest move;
  move.receipt = queues_->Put(gone, std::vector<queue::NewMessage>(1))->front().receipt;
  move.cause = queue::Cause{"it hung", 3, "worker-1", {}};
  ASSERT_TRUE(queues_->Move(gone, request_.queue, {move}).ok());
  ASSERT_TRUE(queues_->DeleteQueue(gone).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(TryRedrive().status()));
  GiveUp({"b"});
  request_.per_second = 1000;  // a page of each
  EXPECT_EQ(Redrive().messages, 1);
  EXPECT_EQ(Stats().ready, 2);
}

TEST_F(RedriveTest, RedrivesNoMoreInASecondThanItsRateSays) {
  GiveUpItems(7);
  request_.per_second = 3;
  request_.clock = &clock_;
  std::thread redrive([this] { EXPECT_EQ(Redrive().messages, 7); });
  for (const int ready : {3, 6}) {
    clock_.AwaitSleepers(1);
    EXPECT_EQ(Stats().ready, ready);
    // It looks up now and then whether it is cancelled.
    for (int i = 0; i < 5; ++i) {
      clock_.AwaitSleepers(1);
      EXPECT_EQ(Stats().ready, ready);
      clock_.Advance(absl::Milliseconds(200));
    }
  }
  redrive.join();
  EXPECT_EQ(Stats().ready, 7);
}

TEST_F(RedriveTest, EndsWhileItWaitsForItsRateWhenItIsCancelled) {
  GiveUpItems(7);
  std::atomic<bool> cancelled = false;
  request_.per_second = 3;
  request_.clock = &clock_;
  request_.is_cancelled = [&cancelled] { return cancelled.load(); };
  std::thread redrive([this] { EXPECT_TRUE(absl::IsCancelled(TryRedrive().status())); });
  clock_.AwaitSleepers(1);
  cancelled = true;
  clock_.Advance(absl::Milliseconds(200));
  redrive.join();
  EXPECT_EQ(Stats().ready, 3);
  EXPECT_EQ(Stats().poison, 4);
}

TEST_F(RedriveTest, TellsOfEachPage) {
  GiveUpItems(1001);
  std::vector<int64_t> told;
  request_.on_redriven = [&told](int64_t messages) { told.push_back(messages); };
  EXPECT_EQ(Redrive().messages, 1001);
  EXPECT_THAT(told, ElementsAre(1000, 1));
}

TEST_F(RedriveTest, StopsBetweenPagesWhenItIsCancelled) {
  GiveUpItems(1001);
  int asked = 0;
  request_.is_cancelled = [&asked] { return ++asked > 1; };
  EXPECT_TRUE(absl::IsCancelled(TryRedrive().status()));
  EXPECT_EQ(Stats().ready, 1000);
  EXPECT_EQ(Stats().poison, 1);
}

}  // namespace
}  // namespace muster::item
