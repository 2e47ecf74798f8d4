// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/rocksdb/collector.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/queue/rocksdb/codec.h"
#include "muster/queue/rocksdb/durable_queue.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"
#include "muster/queue/rocksdb/storage.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/let_others_run.h"

namespace muster::queue::rocksdb {
namespace {

constexpr int kCollected = 2000;
constexpr size_t kCollectedBytes = size_t{8} << 10;

class CollectorTest : public ::testing::Test {
 protected:
  CollectorTest() { Open(); }

  void Open() {
    store_.reset();
    Options options;
    options.clock = &clock_;
    store_ = *RocksDbQueueStore::Open(folder_ / "queue", options);
  }

  // Bodies that no compression makes smaller.
  void Put(const queue::QueueId& queue, int count, absl::Duration ttl) {
    std::minstd_rand random(static_cast<unsigned>(count));
    for (int i = 0; i < count; i += 100) {
      std::vector<queue::NewMessage> messages(100);
      for (queue::NewMessage& message : messages) {
        message.body.resize(kCollectedBytes);
        for (char& c : message.body) c = static_cast<char>(random());
        message.ttl = ttl;
      }
      ASSERT_TRUE(store_->Put(queue, messages).ok());
    }
  }

  int64_t BytesOnDisk() const {
    int64_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "queue")) {
      if (entry.is_regular_file()) bytes += static_cast<int64_t>(entry.file_size());
    }
    return bytes;
  }

  void Collect() {
    std::atomic<bool> cancelled = false;
    const absl::Status collected = store_->CollectExpired(&cancelled);
    EXPECT_TRUE(collected.ok()) << collected;
  }

  os::TempDir folder_;
  base::FakeClock clock_;
  std::unique_ptr<RocksDbQueueStore> store_;
  const queue::QueueId idle_ = {"acme", "idle"};
};

TEST_F(CollectorTest, GivesTheSpaceOfExpiredMessagesOfAnIdleQueueBack) {
  ASSERT_TRUE(store_->CreateQueue(idle_, {}).ok());
  ASSERT_TRUE(store_->CreateQueue({"acme", "kept"}, {}).ok());
  Put(idle_, kCollected, absl::Seconds(60));
  Put({"acme", "kept"}, 100, queue::kNeverExpires);
  EXPECT_GT(BytesOnDisk(), int64_t{kCollected} * kCollectedBytes);
  Collect();  // nothing has expired
  EXPECT_EQ(store_->Stats(idle_)->stored(), kCollected);

  clock_.Advance(absl::Seconds(61));
  Collect();
  EXPECT_LT(BytesOnDisk(), int64_t{kCollected} * kCollectedBytes / 4);
  EXPECT_EQ(store_->Stats(idle_)->total_expired, kCollected);
  Open();
  EXPECT_EQ(store_->Stats(idle_)->stored(), 0);
  EXPECT_EQ(store_->Stats(idle_)->total_expired, kCollected);
  EXPECT_EQ(store_->Stats({"acme", "kept"})->stored(), 100);
}

TEST_F(CollectorTest, GivesTheSpaceOfDeletedQueuesBack) {
  ASSERT_TRUE(store_->CreateQueue(idle_, {}).ok());
  Put(idle_, kCollected, queue::kNeverExpires);
  Open();  // it begins to count at the open
  ASSERT_TRUE(store_->DeleteQueue(idle_).ok());
  Collect();
  EXPECT_LT(BytesOnDisk(), int64_t{kCollected} * kCollectedBytes / 4);
}

// The collector goes through a list of queues that it has made before. Counters of a queue without
// a record are to a check what is left of a lost queue, which a repair brings back.
TEST_F(CollectorTest, WritesNothingOfAQueueThatIsDeletedMeanwhile) {
  const std::unique_ptr<Storage> storage =
      *Storage::Open(folder_ / "storage", {}, &clock_, /*keeps_leases=*/true);
  constexpr uint64_t kNumber = 1;
  DurableQueue queue(storage.get(), kNumber, QueueRecord{idle_, {}, 0});
  queue::NewMessage message;
  message.ttl = absl::Seconds(60);
  ASSERT_TRUE(queue.Put({message}).ok());
  clock_.Advance(absl::Seconds(61));
  ASSERT_TRUE(queue.Destroy().ok());
  queue.Collect(/*cancelled=*/false);
  EXPECT_TRUE(absl::IsNotFound(storage->Read(kMeta, CountersKey(kNumber)).status));
}

TEST_F(CollectorTest, StopsWhenItIsCancelled) {
  ASSERT_TRUE(store_->CreateQueue(idle_, {}).ok());
  Put(idle_, kCollected, absl::Seconds(60));
  clock_.Advance(absl::Seconds(61));
  std::atomic<bool> cancelled = true;
  EXPECT_TRUE(absl::IsCancelled(store_->CollectExpired(&cancelled)));
  EXPECT_GT(BytesOnDisk(), int64_t{kCollected} * kCollectedBytes);
}

TEST(CompactionCareTest, WaitsUntilAQuarterIsGone) {
  CompactionCare care(1000, 10'000);
  EXPECT_FALSE(care.IsDue(1000 + kMinGone, 10'000));
  EXPECT_TRUE(care.IsDue(1000 + 2500, 10'000));
  care.Done(3500, 0);
  EXPECT_FALSE(care.IsDue(3500 + kMinGone - 1, 0));
  EXPECT_TRUE(care.IsDue(3500 + kMinGone, 0));
}

TEST(CompactionCareTest, NoticesThatAQueueWasDeleted) {
  CompactionCare care(1000, 0);
  EXPECT_TRUE(care.IsDue(0, 0)) << "one whose messages were gone";
  EXPECT_FALSE(care.IsDue(1000, 5000));
  EXPECT_TRUE(care.IsDue(1000, 3000)) << "one that held two thousand";
}

TEST(CollectorThreadTest, CollectsOnceEachIntervalAndEndsAtOnce) {
  base::FakeClock clock;
  absl::Notification collected;
  {
    const Collector collector(&clock, absl::Minutes(1), [&](std::atomic<bool>* cancelled) {
      if (!collected.HasBeenNotified()) collected.Notify();
      while (!*cancelled) base::LetOthersRun();  // as one that takes long
    });
    clock.AwaitSleepers(1);
    EXPECT_FALSE(collected.HasBeenNotified());
    clock.Advance(absl::Minutes(1));
    collected.WaitForNotification();
  }
}

}  // namespace
}  // namespace muster::queue::rocksdb
