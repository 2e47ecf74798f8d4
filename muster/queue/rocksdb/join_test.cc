// SPDX-License-Identifier: Apache-2.0

// Calls that serve several queues of the embedded engine: one sync for all, one outcome when the
// disk fails, and callers that never wait for each other. join_conformance.cc has what every engine
// must do.
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/rocksdb/faulty_env.h"

namespace muster::queue::rocksdb {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::ResultOf;

constexpr int kQueues = 10;

// Ten queues, and a message for each.
class JoinTest : public ::testing::Test {
 protected:
  JoinTest() {
    Open();
    for (int i = 0; i < kQueues; ++i) {
      const queue::QueueId id{"acme", absl::StrCat("queue-", i)};
      EXPECT_TRUE(store_->CreateQueue(id, {}).ok());
      puts_.push_back({id, messages_});
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

  int64_t Stored(const queue::QueueId& id) { return store_->Stats(id).value().stored(); }
  int64_t StoredInAll() {
    int64_t stored = 0;
    for (const auto& put : puts_) stored += Stored(put.queue);
    return stored;
  }

  static absl::StatusCode CodeOf(const absl::StatusOr<std::vector<queue::PutResult>>& result) {
    return result.status().code();
  }

  const std::vector<queue::NewMessage> messages_{{.body = "body", .dedup_id = "once"}};
  std::vector<queue::ForQueue<queue::NewMessage>> puts_;
  os::TempDir dir_;
  muster::rocksdb::testing::FaultyEnv env_;
  base::FakeClock clock_;
  std::unique_ptr<RocksDbQueueStore> store_;
};

TEST_F(JoinTest, SyncsOnceForAllQueues) {
  const int before = env_.syncs;
  EXPECT_THAT(store_->PutEach(puts_), Each(ResultOf(CodeOf, absl::StatusCode::kOk)));
  EXPECT_EQ(env_.syncs, before + 1);
  EXPECT_EQ(StoredInAll(), kQueues);

  std::vector<std::vector<queue::Receipt>> receipts;
  for (const auto& put : puts_) {
    receipts.push_back({store_->Receive(put.queue, {}).value().front().receipt});
  }
  std::vector<queue::ForQueue<queue::Receipt>> deletes;
  for (int i = 0; i < kQueues; ++i) deletes.push_back({puts_[i].queue, receipts[i]});
  const int before_delete = env_.syncs;
  for (const auto& deleted : store_->DeleteEach(deletes)) {
    EXPECT_THAT(deleted.value(), ElementsAre(absl::OkStatus()));
  }
  EXPECT_EQ(env_.syncs, before_delete + 1);
  Open();
  EXPECT_EQ(StoredInAll(), 0);
}

TEST_F(JoinTest, KnowsADuplicateAmongWhatItPuts) {
  const std::vector<queue::ForQueue<queue::NewMessage>> first(puts_.begin(), puts_.begin() + 1);
  ASSERT_TRUE(store_->PutEach(first).front().ok());
  const auto all = store_->PutEach(puts_);
  for (int i = 0; i < kQueues; ++i) EXPECT_EQ(all[i].value().front().duplicate, i == 0) << i;
  const int before = env_.syncs;
  EXPECT_TRUE(store_->PutEach(first).front().value().front().duplicate);
  EXPECT_EQ(env_.syncs, before) << "there is nothing to write";
  EXPECT_EQ(StoredInAll(), kQueues);
}

TEST_F(JoinTest, RefusesAQueueThatIsNamedTwiceAndPutsItsFirst) {
  puts_.push_back(puts_[3]);
  const auto all = store_->PutEach(puts_);
  for (int i = 0; i < kQueues; ++i) EXPECT_TRUE(all[i].ok()) << all[i].status();
  EXPECT_TRUE(absl::IsInvalidArgument(all.back().status())) << all.back().status();
  EXPECT_EQ(Stored(puts_[3].queue), 1);
}

TEST_F(JoinTest, FailsAllWhenTheDiskFailsAndShowsNothingOfIt) {
  env_.fail_syncs = true;
  EXPECT_THAT(store_->PutEach(puts_), Each(ResultOf(CodeOf, absl::StatusCode::kUnavailable)));
  EXPECT_EQ(StoredInAll(), 0);
  EXPECT_THAT(store_->PutEach(puts_), Each(ResultOf(CodeOf, absl::StatusCode::kUnavailable)));
  env_.fail_syncs = false;
  Open();
  EXPECT_THAT(store_->PutEach(puts_), Each(ResultOf(CodeOf, absl::StatusCode::kOk)));
  EXPECT_EQ(StoredInAll(), kQueues) << "the first may be there, and then has the id of the second";
}

TEST_F(JoinTest, TakesNothingOfADeleteWhenTheDiskFails) {
  store_->PutEach(puts_);
  std::vector<std::vector<queue::Receipt>> receipts;
  std::vector<queue::ForQueue<queue::Receipt>> deletes;
  for (const auto& put : puts_) {
    receipts.push_back({store_->Receive(put.queue, {}).value().front().receipt});
  }
  for (int i = 0; i < kQueues; ++i) deletes.push_back({puts_[i].queue, receipts[i]});
  env_.fail_syncs = true;
  for (const auto& deleted : store_->DeleteEach(deletes)) {
    EXPECT_TRUE(absl::IsUnavailable(deleted.value().front())) << deleted.value().front();
  }
  EXPECT_EQ(StoredInAll(), kQueues);
}

// Each call holds all its queues while it writes. Two that took them in the order in which they are
// named would each hold what the other waits for, once a change of a whole queue waits between
// them.
TEST_F(JoinTest, CallersInAnyOrderNeverWaitForEachOther) {
  const std::vector<queue::ForQueue<queue::NewMessage>> backwards(puts_.rbegin(), puts_.rend());
  std::vector<std::jthread> threads;
  for (const auto* const puts : {&std::as_const(puts_), &backwards}) {
    threads.emplace_back([this, puts] {
      for (int i = 0; i < 200; ++i) {
        for (const auto& put : store_->PutEach(*puts)) EXPECT_TRUE(put.ok()) << put.status();
      }
    });
  }
  for (const int queue : {1, kQueues - 2}) {
    threads.emplace_back([this, queue] {
      for (int i = 0; i < 200; ++i) EXPECT_TRUE(store_->Clear(puts_[queue].queue).ok());
    });
  }
  threads.clear();
  for (const auto& put : puts_) EXPECT_LE(Stored(put.queue), 1) << "one id, one message";
}

TEST_F(JoinTest, LeavesOutAQueueThatIsGone) {
  ASSERT_TRUE(store_->DeleteQueue(puts_[4].queue).ok());
  const auto all = store_->PutEach(puts_);
  for (int i = 0; i < kQueues; ++i) EXPECT_EQ(absl::IsNotFound(all[i].status()), i == 4) << i;
  EXPECT_THAT(store_->PutEach({}), IsEmpty());
}

}  // namespace
}  // namespace muster::queue::rocksdb
