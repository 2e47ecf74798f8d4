// SPDX-License-Identifier: Apache-2.0

// Tests of the embedded engine alone: its files, their damage, and failing writes.
// rocksdb_conformance_test.cc has the tests that every engine must pass.
#include "muster/queue/rocksdb/rocksdb_queue_store.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/mutex.h"
#include "muster/os/temp_dir.h"
#include "muster/queue/limits.h"
#include "muster/queue/rocksdb/codec.h"
#include "muster/queue/rocksdb/storage.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/rocksdb/faulty_env.h"

namespace muster::queue::rocksdb {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The queue is "acme/work", the first of its store: number 1, and its sequences count from 0.
class RocksDbQueueStoreTest : public ::testing::Test {
 protected:
  RocksDbQueueStoreTest() {
    Open();
    EXPECT_TRUE(store_->CreateQueue(queue_, {}).ok());
  }

  Options MakeOptions(bool read_only = false) {
    Options options;
    options.clock = &clock_;
    options.env = &env_;
    options.read_only = read_only;
    return options;
  }

  void Open() {
    store_.reset();
    auto store = RocksDbQueueStore::Open(dir_.path(), MakeOptions());
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  absl::Status OpenError(bool read_only = false) {
    return RocksDbQueueStore::Open(dir_.path(), MakeOptions(read_only)).status();
  }

  // Closes the store, writes `record` over what is stored under `key`, and opens it again.
  void Overwrite(FamilyIndex family, const std::string& key, const std::string& record) {
    store_.reset();
    auto storage = Storage::Open(dir_.path(), muster::rocksdb::DatabaseOptions(), &clock_, true);
    ASSERT_TRUE(storage.ok()) << storage.status();
    ::rocksdb::WriteBatch batch;
    batch.Put((*storage)->family(family), key, record);
    ASSERT_TRUE((*storage)->Write(&batch, muster::rocksdb::Durability::kPower).ok());
  }

  absl::StatusOr<std::vector<queue::PutResult>> TryPut(const std::string& body,
                                                       const std::string& dedup_id = "") {
    std::vector<queue::NewMessage> messages(1);
    messages[0].body = body;
    messages[0].dedup_id = dedup_id;
    return store_->Put(queue_, messages);
  }

  queue::PutResult Put(const std::string& body, const std::string& dedup_id = "") {
    auto results = TryPut(body, dedup_id);
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? results->front() : queue::PutResult();
  }

  std::vector<std::string> ReceiveBodies(int max_messages = 32) {
    std::vector<std::string> bodies;
    const auto messages = store_->Receive(queue_, {max_messages, absl::Seconds(30)});
    EXPECT_TRUE(messages.ok()) << messages.status();
    for (const auto& message : *messages) bodies.push_back(message.body);
    return bodies;
  }

  std::vector<queue::PoisonMessage> Poison() { return store_->ListPoison(queue_, "", 100).value(); }

  const queue::QueueId queue_{"acme", "work"};
  const os::TempDir dir_;
  base::FakeClock clock_;
  muster::rocksdb::testing::FaultyEnv env_;
  std::unique_ptr<RocksDbQueueStore> store_;
};

TEST_F(RocksDbQueueStoreTest, PromisesThatAcknowledgementsSurviveAPowerCut) {
  const int before = env_.syncs;
  const queue::PutResult put = Put("a");
  EXPECT_GT(env_.syncs, before);
  const int after_put = env_.syncs;
  EXPECT_TRUE(store_->Delete(queue_, {put.receipt})->front().ok());
  EXPECT_GT(env_.syncs, after_put);
  EXPECT_EQ(store_->traits().ack_survives, queue::Survives::kPower);
}

TEST_F(RocksDbQueueStoreTest, ReceivesWithoutASync) {
  Put("a");
  const int before = env_.syncs;
  EXPECT_THAT(ReceiveBodies(), ElementsAre("a"));
  EXPECT_EQ(env_.syncs, before);
}

// The first sync waits until all other putters are under way, so that they gather behind it.
TEST_F(RocksDbQueueStoreTest, SharesOneSyncAmongConcurrentPuts) {
  constexpr int kPutters = 16;
  base::Mutex mu;
  base::CondVar changed;
  int started = 0;
  store_.reset();
  env_.before_sync = [&] {
    base::MutexLock lock(&mu);
    while (started > 0 && started < kPutters) changed.Wait(&mu);
  };
  Open();
  const int before = env_.syncs;
  std::vector<std::thread> putters;
  for (int i = 0; i < kPutters; ++i) {
    putters.emplace_back([&] {
      {
        base::MutexLock lock(&mu);
        ++started;
        changed.NotifyAll();
      }
      Put("m");
    });
  }
  for (std::thread& putter : putters) putter.join();
  EXPECT_LT(env_.syncs - before, kPutters);
  EXPECT_EQ(ReceiveBodies().size(), static_cast<size_t>(kPutters));
  store_.reset();  // the last sync still passes the door
}

TEST_F(RocksDbQueueStoreTest, RefusesASecondOwnerWithAClearError) {
  const absl::Status status = OpenError();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr(dir_.path()));
}

TEST_F(RocksDbQueueStoreTest, ShowsAQueueReadOnlyBesideItsOwner) {
  Put("a");
  auto reader = RocksDbQueueStore::Open(dir_.path(), MakeOptions(/*read_only=*/true));
  ASSERT_TRUE(reader.ok()) << reader.status();
  Put("b");  // not visible: the reader shows the state of its open
  EXPECT_EQ((*reader)->Stats(queue_)->ready, 1);
  EXPECT_EQ((*reader)->Peek(queue_, 32)->front().body, "a");
  EXPECT_TRUE(absl::IsFailedPrecondition((*reader)->Receive(queue_, {}).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition((*reader)->CreateQueue(queue_, {})));
  EXPECT_TRUE(absl::IsFailedPrecondition((*reader)->Clear(queue_)));
  EXPECT_THAT(ReceiveBodies(), ElementsAre("a", "b"));
}

TEST_F(RocksDbQueueStoreTest, FindsNothingToShowInAnEmptyPlace) {
  EXPECT_TRUE(
      absl::IsNotFound(RocksDbQueueStore::Open(dir_.path() + "/none", MakeOptions(true)).status()));
}

TEST_F(RocksDbQueueStoreTest, SetsADamagedBodyAsideAndGivesTheRest) {
  const queue::PutResult bad = Put("bad");
  Put("good");
  const std::string key = MessageKey(1, 0);
  Overwrite(kBody, key, EncodeBodyHeader("bad", key) + "bax");
  Open();
  EXPECT_THAT(ReceiveBodies(), ElementsAre("good"));
  ASSERT_EQ(Poison().size(), 1u);
  EXPECT_EQ(Poison()[0].message_id, bad.message_id);
  EXPECT_EQ(Poison()[0].body, "bax");  // a person may look at it
  EXPECT_THAT(Poison()[0].cause.reason, HasSubstr("DATA_LOSS"));
  EXPECT_THAT(Poison()[0].cause.reason, HasSubstr("queue 'acme/work' message " + bad.message_id));
}

TEST_F(RocksDbQueueStoreTest, OpensWithADamagedStateRecord) {
  const queue::PutResult bad = Put("bad");
  Put("good");
  Overwrite(kState, MessageKey(1, 0), "garbage");
  Open();
  EXPECT_EQ(store_->Stats(queue_)->ready, 2);
  EXPECT_THAT(ReceiveBodies(), ElementsAre("good"));
  ASSERT_EQ(Poison().size(), 1u);
  EXPECT_EQ(Poison()[0].message_id, bad.message_id);
  EXPECT_EQ(Poison()[0].body, "bad");
  Open();
  EXPECT_THAT(ReceiveBodies(), IsEmpty());
  EXPECT_EQ(store_->Redrive(queue_, {}, 10).value(), 1);
  EXPECT_THAT(ReceiveBodies(), ElementsAre("bad"));
}

// A receive of one must not answer "empty" because the first message is damaged.
TEST_F(RocksDbQueueStoreTest, LooksBehindDamagedMessages) {
  for (int i = 0; i < 5; ++i) Put("bad");
  Put("good");
  for (uint64_t seq = 0; seq < 5; ++seq) Overwrite(kBody, MessageKey(1, seq), "garbage");
  Open();
  EXPECT_THAT(ReceiveBodies(1), ElementsAre("good"));
  EXPECT_EQ(Poison().size(), 5u);
}

TEST_F(RocksDbQueueStoreTest, ListsDamagedPoisonAndLeavesItThere) {
  const queue::PutResult put = Put("bad");
  queue::DeadLetterRequest request;
  request.receipt = put.receipt;
  ASSERT_TRUE(store_->DeadLetter(queue_, {request})->front().ok());
  Overwrite(kPoison, MessageKey(1, 0), "garbage");
  Open();
  ASSERT_EQ(Poison().size(), 1u);
  EXPECT_EQ(Poison()[0].body, "bad");
  EXPECT_THAT(Poison()[0].cause.reason, HasSubstr("poison record is damaged"));
  EXPECT_EQ(store_->Redrive(queue_, {}, 10).value(), 0);
}

// A page of one must not be empty because the first message is damaged.
TEST_F(RocksDbQueueStoreTest, ListsMovedPoisonBehindDamagedBodies) {
  const queue::QueueId from{"acme", "from"};
  ASSERT_TRUE(store_->CreateQueue(from, {}).ok());
  for (const char* body : {"bad", "bad", "good"}) {
    queue::NewMessage message;
    message.body = body;
    queue::MoveRequest request;
    request.receipt = store_->Put(from, {message})->front().receipt;
    request.cause = queue::Cause{"too often", 3, "sally", absl::Time()};
    ASSERT_TRUE(store_->Move(from, queue_, {request})->front().ok());
  }
  for (uint64_t seq = 0; seq < 2; ++seq) Overwrite(kBody, MessageKey(1, seq), "garbage");
  Open();
  const auto page = *store_->ListPoison(queue_, "", 1);
  ASSERT_EQ(page.size(), 1u);
  EXPECT_EQ(page[0].body, "good");
  EXPECT_THAT(*store_->ListPoison(queue_, page[0].message_id, 1), IsEmpty());
}

TEST_F(RocksDbQueueStoreTest, CountsOnWithDamagedCounters) {
  Put("a");
  Overwrite(kMeta, CountersKey(1), "garbage");
  Open();
  Put("b");
  EXPECT_EQ(store_->Stats(queue_)->total_in, 1);
  EXPECT_THAT(ReceiveBodies(), ElementsAre("a", "b"));
}

// Sequences start anew, as far as the files show: a sequence that a dedup id still names must not
// come again.
TEST_F(RocksDbQueueStoreTest, GivesNoSequenceTwiceThatADedupIdStandsFor) {
  const queue::PutResult first = Put("first", "id");
  ASSERT_TRUE(store_->Delete(queue_, {first.receipt})->front().ok());
  Overwrite(kMeta, CountersKey(1), "garbage");
  Open();
  const queue::PutResult second = Put("second");
  EXPECT_NE(second.message_id, first.message_id);
  clock_.Advance(queue::kDedupWindow);
  EXPECT_FALSE(Put("third", "id").duplicate);
  EXPECT_THAT(ReceiveBodies(), ElementsAre("second", "third"));
}

TEST_F(RocksDbQueueStoreTest, TakesNoOtherMessageForTheOneOfADedupId) {
  Put("a");
  const std::string key = DedupKey(1, "id");
  Overwrite(kDedup, key, EncodeDedup({0, 12345}, key));
  Open();
  EXPECT_FALSE(Put("b", "id").duplicate);
  EXPECT_THAT(ReceiveBodies(), ElementsAre("a", "b"));
}

// A repair that loses the newest tables of a family may bring back what was deleted there.
TEST_F(RocksDbQueueStoreTest, RedrivesAMessageThatIsBackBesideItsPoisonRecord) {
  queue::DeadLetterRequest request;
  request.receipt = Put("a").receipt;
  ASSERT_TRUE(store_->DeadLetter(queue_, {request})->front().ok());
  const std::string key = MessageKey(1, 0);
  Overwrite(kBody, key, EncodeBodyHeader("a", key) + "a");
  Overwrite(kState, key, EncodeState({}, key));
  Open();
  EXPECT_EQ(store_->Stats(queue_)->ready, 1);
  EXPECT_EQ(store_->Redrive(queue_, {}, 10).value(), 1);
  EXPECT_EQ(store_->Stats(queue_)->ready, 1);
  EXPECT_EQ(store_->Stats(queue_)->poison, 0);
  EXPECT_THAT(ReceiveBodies(), ElementsAre("a"));
}

// A damaged key may claim any sequence. The next one must not begin anew at 0.
TEST_F(RocksDbQueueStoreTest, PutsNothingBehindTheLastSequence) {
  const std::string key = MessageKey(1, UINT64_MAX - 1);
  Overwrite(kState, key, EncodeState({}, key));
  Open();
  EXPECT_TRUE(absl::IsResourceExhausted(TryPut("a").status()));
}

TEST_F(RocksDbQueueStoreTest, RefusesToOpenWithADamagedQueueRecord) {
  Overwrite(kMeta, QueueKey(1), "garbage");
  const absl::Status status = OpenError();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("queue 1"));
}

TEST_F(RocksDbQueueStoreTest, RefusesFilesOfANewerMuster) {
  Overwrite(kMeta, StoreKey(), std::string(1, kFormatVersion + 1) + "whatever comes");
  const absl::Status status = OpenError();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("newer muster"));
}

// A failed write leaves memory unchanged, and a restart finds each message whole or not at all.
TEST_F(RocksDbQueueStoreTest, AnswersUnavailableWhenTheDiskFails) {
  Put("a");
  const auto messages = store_->Receive(queue_, {1, absl::Seconds(30)});
  const queue::Receipt receipt = messages->front().receipt;
  env_.fail_appends = true;
  EXPECT_TRUE(absl::IsUnavailable(TryPut("b").status()));
  EXPECT_TRUE(absl::IsUnavailable(store_->Delete(queue_, {receipt})->front()));
  EXPECT_TRUE(absl::IsUnavailable(store_->BeginAttempt(queue_, {receipt})->front().status()));
  EXPECT_EQ(store_->Stats(queue_)->in_flight, 1);
  EXPECT_EQ(store_->Stats(queue_)->total_in, 1);
  EXPECT_EQ(store_->Stats(queue_)->total_out, 0);
  clock_.Advance(absl::Seconds(30));
  EXPECT_TRUE(absl::IsUnavailable(store_->Receive(queue_, {}).status()));
  EXPECT_EQ(store_->Stats(queue_)->ready, 1);  // its lease was not given
  env_.fail_appends = false;
  Open();
  EXPECT_THAT(ReceiveBodies(), ElementsAre("a"));
}

// A put failed on a full disk, and its repetition finds its own dedup record, which is only in
// memory.
TEST_F(RocksDbQueueStoreTest, AcknowledgesNoDuplicateOfAPutThatFailed) {
  env_.fail_appends = true;
  EXPECT_TRUE(absl::IsUnavailable(TryPut("a", "id").status()));
  EXPECT_TRUE(absl::IsUnavailable(TryPut("a", "id").status()));
  env_.fail_appends = false;
  EXPECT_TRUE(absl::IsUnavailable(TryPut("a", "id").status()));
  Open();
  EXPECT_FALSE(Put("a", "id").duplicate);
  EXPECT_THAT(ReceiveBodies(), ElementsAre("a"));
}

TEST_F(RocksDbQueueStoreTest, SaysWhyItRefusesWhatCameAfterAFailure) {
  env_.fail_appends = true;
  EXPECT_THAT(TryPut("a").status().message(), HasSubstr("fails on command"));
  EXPECT_THAT(TryPut("b").status().message(), HasSubstr("fails on command"));
  env_.fail_appends = false;
  Open();
}

TEST_F(RocksDbQueueStoreTest, WhatWasAcknowledgedSurvivesAPowerCut) {
  const queue::PutResult done = Put("done");
  const queue::PutResult bad = Put("bad");
  Put("kept");
  ASSERT_TRUE(store_->Delete(queue_, {done.receipt})->front().ok());
  queue::DeadLetterRequest request;
  request.receipt = bad.receipt;
  ASSERT_TRUE(store_->DeadLetter(queue_, {request})->front().ok());
  ASSERT_THAT(ReceiveBodies(), ElementsAre("kept"));  // its lease is not synced and may be lost
  env_.CopyAsAfterPowerCut(dir_.path(), dir_ / "after");
  auto after = RocksDbQueueStore::Open(dir_ / "after", MakeOptions());
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ((*after)->Peek(queue_, 32)->size(), 1u);
  EXPECT_EQ((*after)->Peek(queue_, 32)->front().body, "kept");
  EXPECT_EQ((*after)->ListPoison(queue_, "", 10)->front().body, "bad");
}

TEST_F(RocksDbQueueStoreTest, AcknowledgesNothingThatWasNotSynced) {
  env_.fail_syncs = true;
  EXPECT_TRUE(absl::IsUnavailable(TryPut("a").status()));
  EXPECT_EQ(store_->Stats(queue_)->stored(), 0);
  EXPECT_THAT(store_->Peek(queue_, 1).value(), IsEmpty());
  env_.fail_syncs = false;
  Open();
  EXPECT_LE(store_->Stats(queue_)->stored(), 1);  // whether it was written is unknown
}

// The delete is visible before its sync fails: the store must not take the missing body for damage.
TEST_F(RocksDbQueueStoreTest, TakesNoMessageForDamagedWhenASyncFailed) {
  const queue::PutResult put = Put("a");
  env_.fail_syncs = true;
  EXPECT_TRUE(absl::IsUnavailable(store_->Delete(queue_, {put.receipt})->front()));
  EXPECT_TRUE(absl::IsUnavailable(store_->Receive(queue_, {}).status()));
  EXPECT_THAT(Poison(), IsEmpty());
  env_.fail_syncs = false;
  Open();
  EXPECT_THAT(Poison(), IsEmpty());
  EXPECT_LE(store_->Stats(queue_)->stored(), 1);
}

}  // namespace
}  // namespace muster::queue::rocksdb
