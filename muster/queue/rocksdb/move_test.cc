// SPDX-License-Identifier: Apache-2.0

// Messages that move between two queues, with their cause: what is kept, what is refused, and that
// a message is in exactly one of both queues, also when the process is killed.
#include <unistd.h>

#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/killable_process.h"
#include "tests/fakes/base/test_seed.h"
#include "tests/fakes/rocksdb/faulty_env.h"

namespace muster::queue::rocksdb {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const queue::QueueId kWork{"acme", "work"};
const queue::QueueId kPoisonQueue{"acme", "work-poison"};

class MoveTest : public ::testing::Test {
 protected:
  MoveTest() {
    Open();
    for (const queue::QueueId& id : {kWork, kPoisonQueue}) {
      EXPECT_TRUE(store_->CreateQueue(id, {}).ok());
    }
  }

  void Open() {
    store_.reset();
    Options options;
    options.clock = &clock_;
    options.env = &env_;
    auto store = RocksDbQueueStore::Open(dir_.path(), options);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  queue::PutResult Put(const std::string& body, absl::Duration ttl = absl::Hours(24 * 7)) {
    queue::NewMessage message;
    message.body = body;
    message.ttl = ttl;
    return store_->Put(kWork, {message})->front();
  }

  std::vector<queue::Message> Receive(const queue::QueueId& id, const std::string& holder = "") {
    queue::ReceiveOptions options;
    options.max_messages = 32;
    options.holder = holder;
    auto messages = store_->Receive(id, options);
    EXPECT_TRUE(messages.ok()) << messages.status();
    return messages.ok() ? *messages : std::vector<queue::Message>();
  }

  static std::vector<std::string> Bodies(const std::vector<queue::Message>& messages) {
    std::vector<std::string> bodies;
    for (const queue::Message& message : messages) bodies.push_back(message.body);
    return bodies;
  }

  static queue::MoveRequest Because(const queue::Receipt& receipt, const std::string& reason) {
    queue::MoveRequest request;
    request.receipt = receipt;
    request.cause = queue::Cause{reason, 3, "sally", absl::Time()};
    return request;
  }

  absl::Status Move(const queue::MoveRequest& request) {
    const auto moved = store_->Move(kWork, kPoisonQueue, {request});
    return moved.ok() ? moved->front() : moved.status();
  }

  const os::TempDir dir_;
  base::FakeClock clock_;
  muster::rocksdb::testing::FaultyEnv env_;
  std::unique_ptr<RocksDbQueueStore> store_;
};

TEST_F(MoveTest, GivesAMessageToTheOtherQueueAsIfNew) {
  const queue::PutResult put = Put("a", absl::Hours(1));
  const queue::Message held = Receive(kWork).at(0);
  clock_.Advance(absl::Seconds(10));
  ASSERT_TRUE(Move(Because(held.receipt, "too often")).ok());
  EXPECT_EQ(store_->Stats(kWork)->stored(), 0);
  EXPECT_EQ(store_->Stats(kPoisonQueue)->ready, 1);
  const queue::Message moved = Receive(kPoisonQueue).at(0);
  EXPECT_EQ(moved.body, "a");
  EXPECT_NE(moved.message_id, put.message_id);
  EXPECT_EQ(moved.dequeue_count, 1);
  EXPECT_EQ(moved.expiration_time, clock_.Now() + absl::Hours(1));
  EXPECT_TRUE(absl::IsNotFound(store_->Delete(kWork, {held.receipt})->front()));
}

TEST_F(MoveTest, KeepsTheCauseUntilTheMessageIsDeleted) {
  const queue::PutResult put = Put("a");
  ASSERT_TRUE(Move(Because(put.receipt, "too often")).ok());
  Open();
  std::vector<queue::PoisonMessage> moved = *store_->ListPoison(kPoisonQueue, "", 10);
  ASSERT_EQ(moved.size(), 1u);
  EXPECT_EQ(moved[0].body, "a");
  EXPECT_EQ(moved[0].origin, kWork);
  EXPECT_EQ(moved[0].origin_id, put.message_id);
  EXPECT_EQ(moved[0].insertion_time, put.insertion_time);
  EXPECT_EQ(moved[0].cause.reason, "too often");
  EXPECT_EQ(moved[0].cause.attempts, 3);
  EXPECT_EQ(moved[0].cause.holder, "sally");
  EXPECT_EQ(moved[0].cause.time, clock_.Now());
  EXPECT_EQ(store_->FindPoison(kPoisonQueue, {{moved[0].message_id}})->at(0)->cause.holder,
            "sally");
  // A receive with a holder writes into the same record.
  const queue::Message held = Receive(kPoisonQueue, "bob").at(0);
  EXPECT_EQ(store_->ListPoison(kPoisonQueue, "", 10)->at(0).cause.holder, "sally");
  ASSERT_TRUE(store_->Delete(kPoisonQueue, {held.receipt})->front().ok());
  EXPECT_THAT(*store_->ListPoison(kPoisonQueue, "", 10), IsEmpty());
  EXPECT_FALSE(store_->FindPoison(kPoisonQueue, {{moved[0].message_id}})->at(0).has_value());
}

TEST_F(MoveTest, ForgetsCausesWithTheirMessages) {
  ASSERT_TRUE(Move(Because(Put("cleared").receipt, "")).ok());
  ASSERT_TRUE(store_->Clear(kPoisonQueue).ok());
  EXPECT_THAT(*store_->ListPoison(kPoisonQueue, "", 10), IsEmpty());
  ASSERT_TRUE(Move(Because(Put("expired", absl::Seconds(1)).receipt, "")).ok());
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(Receive(kPoisonQueue), IsEmpty());  // and collects what has expired
  EXPECT_THAT(*store_->ListPoison(kPoisonQueue, "", 10), IsEmpty());
  ASSERT_TRUE(Move(Because(Put("deleted").receipt, "")).ok());
  ASSERT_TRUE(store_->DeleteQueue(kPoisonQueue).ok());
  ASSERT_TRUE(store_->CreateQueue(kPoisonQueue, {}).ok());
  EXPECT_THAT(*store_->ListPoison(kPoisonQueue, "", 10), IsEmpty());
}

TEST_F(MoveTest, MovesByIdWhatNobodyHolds) {
  Put("a");
  const queue::Message held = Receive(kWork).at(0);
  queue::MoveRequest request;
  request.message_id = held.message_id;
  EXPECT_TRUE(absl::IsFailedPrecondition(Move(request)));
  clock_.Advance(absl::Seconds(30));
  EXPECT_TRUE(Move(request).ok());
  EXPECT_TRUE(absl::IsNotFound(Move(request)));
  EXPECT_THAT(*store_->ListPoison(kPoisonQueue, "", 10), IsEmpty());  // it has no cause
  EXPECT_THAT(Bodies(Receive(kPoisonQueue)), ElementsAre("a"));
}

TEST_F(MoveTest, ListsMovedMessagesAmongTheQueuesOwnPoison) {
  ASSERT_TRUE(Move(Because(Put("moved").receipt, "")).ok());
  queue::NewMessage message;
  message.body = "own";
  const auto put = *store_->Put(kPoisonQueue, {message});
  ASSERT_TRUE(store_->DeadLetter(kPoisonQueue, {{put[0].receipt, {}}})->front().ok());
  ASSERT_TRUE(Move(Because(Put("moved later").receipt, "")).ok());
  std::vector<std::string> bodies;
  std::string after;
  for (auto page = *store_->ListPoison(kPoisonQueue, after, 1); !page.empty();
       page = *store_->ListPoison(kPoisonQueue, after, 1)) {
    bodies.push_back(page[0].body);
    after = page[0].message_id;
  }
  EXPECT_THAT(bodies, ElementsAre("moved", "own", "moved later"));
}

TEST_F(MoveTest, RedrivesMessagesToWhereTheyCameFrom) {
  for (const char* body : {"a", "b", "c"}) {
    ASSERT_TRUE(Move(Because(Put(body).receipt, "")).ok());
  }
  EXPECT_EQ(*store_->Redrive(kPoisonQueue, {}, 1), 1);
  EXPECT_THAT(Bodies(Receive(kWork)), ElementsAre("a"));
  const std::string last = store_->ListPoison(kPoisonQueue, "", 10)->at(1).message_id;
  EXPECT_EQ(*store_->Redrive(kPoisonQueue, {last}, 1), 1);
  EXPECT_THAT(Bodies(Receive(kWork)), ElementsAre("c"));
  // One that is held stays.
  Receive(kPoisonQueue);
  EXPECT_EQ(*store_->Redrive(kPoisonQueue, {}, 10), 0);
  clock_.Advance(absl::Seconds(30));
  ASSERT_TRUE(store_->DeleteQueue(kWork).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(store_->Redrive(kPoisonQueue, {}, 10).status()));
  EXPECT_EQ(store_->ListPoison(kPoisonQueue, "", 10)->size(), 1u);
}

// A thousand messages of a deleted queue kept all behind them from a redrive of the oldest
// thousand.
TEST_F(MoveTest, RedrivesTheOldestThatCanGoBack) {
  const queue::QueueId gone{"acme", "gone"};
  ASSERT_TRUE(store_->CreateQueue(gone, {}).ok());
  const auto stays = *store_->Put(gone, std::vector<queue::NewMessage>(1));
  ASSERT_TRUE(store_->Move(gone, kPoisonQueue, {Because(stays[0].receipt, "")})->front().ok());
  ASSERT_TRUE(store_->DeleteQueue(gone).ok());
  for (const char* body : {"a", "b", "c"}) {
    ASSERT_TRUE(Move(Because(Put(body).receipt, "")).ok());
  }
  EXPECT_EQ(*store_->Redrive(kPoisonQueue, {}, 1), 1);
  EXPECT_THAT(Bodies(Receive(kWork)), ElementsAre("a"));
  ASSERT_EQ(store_->Receive(kPoisonQueue, {2})->size(), 2u);  // and holds "b"
  EXPECT_EQ(*store_->Redrive(kPoisonQueue, {}, 1), 1);
  EXPECT_THAT(Bodies(Receive(kWork)), ElementsAre("c"));
  clock_.Advance(absl::Seconds(30));
  EXPECT_EQ(*store_->Redrive(kPoisonQueue, {}, 10), 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(store_->Redrive(kPoisonQueue, {}, 10).status()));
}

// Their records stay on disk until they are collected. A redrive counts what is listed.
TEST_F(MoveTest, ListsNothingThatHasExpired) {
  ASSERT_TRUE(Move(Because(Put("expired", absl::Seconds(1)).receipt, "")).ok());
  const std::string expired = store_->ListPoison(kPoisonQueue, "", 10)->at(0).message_id;
  ASSERT_TRUE(Move(Because(Put("kept").receipt, "")).ok());
  clock_.Advance(absl::Seconds(1));
  const auto listed = *store_->ListPoison(kPoisonQueue, "", 1);
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].body, "kept");
  EXPECT_FALSE(store_->FindPoison(kPoisonQueue, {{expired}})->at(0).has_value());
  EXPECT_EQ(*store_->Redrive(kPoisonQueue, {}, 1), 1);
}

TEST_F(MoveTest, ListsPageByPage) {
  for (const char* body : {"a", "b", "c"}) {
    ASSERT_TRUE(Move(Because(Put(body).receipt, "")).ok());
  }
  const auto page = *store_->ListPoison(kPoisonQueue, "", 2);
  ASSERT_EQ(page.size(), 2u);
  const auto rest = *store_->ListPoison(kPoisonQueue, page.back().message_id, 2);
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].body, "c");
  EXPECT_TRUE(absl::IsInvalidArgument(store_->ListPoison(kPoisonQueue, "x", 2).status()));
}

TEST_F(MoveTest, RefusesWhatIsNotHeldAndQueuesThatAreNotThere) {
  const queue::PutResult put = Put("a");
  const queue::Message held = Receive(kWork).at(0);
  EXPECT_TRUE(absl::IsFailedPrecondition(Move(Because(put.receipt, ""))));
  EXPECT_TRUE(absl::IsInvalidArgument(Move(Because("nonsense", ""))));
  EXPECT_TRUE(absl::IsInvalidArgument(Move({})));
  EXPECT_TRUE(
      absl::IsInvalidArgument(store_->Move(kWork, kWork, {Because(held.receipt, "")}).status()));
  const queue::QueueId none{"acme", "none"};
  EXPECT_TRUE(absl::IsNotFound(store_->Move(kWork, none, {Because(held.receipt, "")}).status()));
  EXPECT_TRUE(store_->Delete(kWork, {held.receipt})->front().ok());
}

TEST_F(MoveTest, LeavesAMessageWhereItIsIfTheWriteFails) {
  const queue::PutResult put = Put("a");
  env_.fail_syncs = true;
  EXPECT_TRUE(absl::IsUnavailable(Move(Because(put.receipt, ""))));
  EXPECT_EQ(store_->Stats(kWork)->stored(), 1);
  EXPECT_EQ(store_->Stats(kPoisonQueue)->stored(), 0);
}

TEST_F(MoveTest, TellsWhoHeldAMessageBefore) {
  Put("a");
  EXPECT_EQ(Receive(kWork, "sally").at(0).last_holder, "");
  Open();
  clock_.Advance(absl::Seconds(30));
  EXPECT_EQ(Receive(kWork, "bob").at(0).last_holder, "sally");
  clock_.Advance(absl::Seconds(30));
  EXPECT_EQ(Receive(kWork).at(0).last_holder, "bob");
  clock_.Advance(absl::Seconds(30));
  EXPECT_EQ(Receive(kWork).at(0).last_holder, "");
}

TEST_F(MoveTest, TellsWhenTheNextMessageBecomesVisible) {
  EXPECT_EQ(*store_->TimeToVisible(kWork), absl::InfiniteDuration());
  Put("a");
  EXPECT_EQ(*store_->TimeToVisible(kWork), absl::ZeroDuration());
  Receive(kWork);
  clock_.Advance(absl::Seconds(10));
  EXPECT_EQ(*store_->TimeToVisible(kWork), absl::Seconds(20));
  clock_.Advance(absl::Seconds(30));
  EXPECT_EQ(*store_->TimeToVisible(kWork), absl::ZeroDuration());
}

TEST_F(MoveTest, KnowsWhichMessagesItHolds) {
  const queue::PutResult put = Put("a");
  EXPECT_TRUE(*store_->Holds(kWork, put.message_id));
  EXPECT_FALSE(*store_->Holds(kPoisonQueue, put.message_id));
  EXPECT_FALSE(*store_->Holds(kWork, "nonsense"));
  ASSERT_TRUE(store_->Delete(kWork, {put.receipt})->front().ok());
  EXPECT_FALSE(*store_->Holds(kWork, put.message_id));
  EXPECT_TRUE(absl::IsNotFound(store_->Holds({"acme", "none"}, put.message_id).status()));
}

// A window of its own ends while the first message is still there, and survives a restart.
TEST_F(MoveTest, RemembersDedupIdsForAsLongAsTheQueueSays) {
  ASSERT_TRUE(store_->SetMetadata(kWork, {{"Muster-Dedup", "60"}}).ok());
  queue::NewMessage message;
  message.body = "a";
  message.dedup_id = "id";
  const queue::PutResult first = store_->Put(kWork, {message})->front();
  Open();
  clock_.Advance(absl::Seconds(59));
  const queue::PutResult again = store_->Put(kWork, {message})->front();
  EXPECT_TRUE(again.duplicate);
  EXPECT_EQ(again.message_id, first.message_id);
  EXPECT_EQ(again.receipt, first.receipt);
  EXPECT_EQ(again.insertion_time, first.insertion_time);
  EXPECT_EQ(again.expiration_time, first.expiration_time);
  EXPECT_EQ(again.next_visible_time, first.next_visible_time);
  clock_.Advance(absl::Seconds(1));
  EXPECT_FALSE(store_->Put(kWork, {message})->front().duplicate);
  EXPECT_EQ(store_->Stats(kWork)->ready, 2);
  EXPECT_TRUE(absl::IsInvalidArgument(store_->SetMetadata(kWork, {{"muster-dedup", "1h"}})));
}

// Moves messages to and fro, and deletes none.
void MoveForEver(RocksDbQueueStore* store) {
  while (true) {
    for (const auto& [from, to] :
         {std::pair(kWork, kPoisonQueue), std::pair(kPoisonQueue, kWork)}) {
      const auto messages = store->Receive(from, {3, absl::Milliseconds(1)});
      if (!messages.ok()) _exit(1);
      std::vector<queue::MoveRequest> requests;
      for (const queue::Message& message : *messages) {
        requests.push_back({message.receipt, "", queue::Cause{"moved", 1, "me", absl::Time()}});
      }
      if (!store->Move(from, to, requests).ok()) _exit(1);
      base::testing::Send("moved");
    }
  }
}

const base::testing::RegisteredProcess mover("mover", [](const std::string& dir) {
  auto store = RocksDbQueueStore::Open(dir, Options());
  if (!store.ok()) _exit(1);
  MoveForEver(store->get());
});

TEST(MoveCrashTest, HasEachMessageInExactlyOneQueueWhenKilled) {
  const uint32_t seed = base::testing::TestSeed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const os::TempDir dir;
  std::multiset<std::string> all;
  {
    auto store = RocksDbQueueStore::Open(dir.path(), Options());
    ASSERT_TRUE(store.ok()) << store.status();
    for (const queue::QueueId& id : {kWork, kPoisonQueue}) {
      ASSERT_TRUE((*store)->CreateQueue(id, {}).ok());
    }
    std::vector<queue::NewMessage> messages(20);
    for (size_t i = 0; i < messages.size(); ++i) {
      messages[i].body = absl::StrCat(i);
      all.insert(messages[i].body);
    }
    ASSERT_TRUE((*store)->Put(kWork, messages).ok());
  }
  for (int round = 0; round < 5; ++round) {
    base::testing::KillableProcess process("mover", dir.path());
    const auto lines = static_cast<int>(random() % 100);
    for (int n = 0; process.Receive().has_value(); ++n) {
      if (n < lines) continue;
      EXPECT_TRUE(process.Kill()) << "the process ended by itself";
    }
    auto store = RocksDbQueueStore::Open(dir.path(), Options());
    ASSERT_TRUE(store.ok()) << store.status();
    // The process may have received after its last move, for a millisecond.
    absl::SleepFor(absl::Milliseconds(2));
    std::multiset<std::string> there;
    for (const queue::QueueId& id : {kWork, kPoisonQueue}) {
      const auto messages = (*store)->Receive(id, {32, absl::Milliseconds(1)});
      ASSERT_TRUE(messages.ok()) << messages.status();
      for (const queue::Message& message : *messages) there.insert(message.body);
    }
    EXPECT_EQ(there, all);
  }
}

}  // namespace
}  // namespace muster::queue::rocksdb
