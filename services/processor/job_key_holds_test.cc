// SPDX-License-Identifier: Apache-2.0
#include "services/processor/job_key_holds.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/fingerprint.h"
#include "muster/blob/file/file_blob_store.h"
#include "muster/item/queue_names.h"
#include "muster/item/work_item_codec.h"
#include "muster/os/temp_dir.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"
#include "muster/queue/store_decorators.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::processor {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The two partitions of a job, with the items of some batches.
class JobKeyHoldsTest : public ::testing::Test {
 protected:
  JobKeyHoldsTest() {
    for (const queue::QueueId& queue : partitions_) {
      EXPECT_TRUE(queues_->CreateQueue(queue, {}).ok());
    }
  }

  static queue::rocksdb::Options OptionsWith(base::Clock* clock) {
    queue::rocksdb::Options options;
    options.clock = clock;
    return options;
  }

  // The message of an item, leased.
  queue::Message Receive(int partition, uint64_t batch, uint32_t index) {
    item::BatchIdentity identity;
    identity.batch = batch;
    identity.job = "payments";
    identity.job_revision = "r1";
    ledger::ItemBoundary item;
    item.transactions = 1;
    item.length = 5;
    item.content = base::Fingerprint("slice");
    std::vector<queue::NewMessage> messages(1);
    messages[0].body =
        item::WorkItemEncoder(identity, 1 << 20, blobs_.get()).Encode(index, item, "slice").value();
    const queue::QueueId& queue = partitions_[static_cast<size_t>(partition)];
    EXPECT_TRUE(queues_->Put(queue, messages).ok());
    return queues_->Receive(queue, {1, absl::Minutes(1)}).value().at(0);
  }
  void GiveUp(int partition, const queue::Message& message) {
    const std::vector<queue::DeadLetterRequest> request = {
        {message.receipt, {"poison", 1, "", {}}}};
    EXPECT_TRUE(queues_->DeadLetter(partitions_[static_cast<size_t>(partition)], request).ok());
  }
  std::vector<std::string> Read(int partition, bool with_dead) {
    std::vector<std::string> all;
    const auto read = holds_.Read(partition, with_dead);
    EXPECT_TRUE(read.ok()) << read.status();
    for (const auto& held : *read) {
      all.push_back(absl::StrCat(held.key, " ", held.item, held.is_dead ? " dead" : ""));
    }
    return all;
  }

  const os::TempDir dir_;
  base::FakeClock clock_;
  sync::testing::MemorySyncStore sync_;
  item::CancelledBatches cancelled_{&sync_};
  const std::unique_ptr<queue::QueueStore> queues_ =
      queue::rocksdb::RocksDbQueueStore::Open(dir_ / "queue", OptionsWith(&clock_)).value();
  const std::unique_ptr<blob::BlobStore> blobs_ =
      blob::file::FileBlobStore::Open(dir_ / "blobs").value();
  const std::vector<queue::QueueId> partitions_ = item::InputQueues("acme", "payments", 2);
  JobKeyHolds holds_{partitions_, {&sync_, queues_.get(), &cancelled_, &clock_}};
};

TEST_F(JobKeyHoldsTest, TellsTheNextOwnerWhichItemOfAHeldKeyMayBegin) {
  const queue::Message message = Receive(1, 7, 3);
  ASSERT_TRUE(holds_.Hold(1, "alice", message).ok());
  EXPECT_THAT(Read(1, /*with_dead=*/true), ElementsAre("alice 7/3")) << "no dead letter yet";
  GiveUp(1, message);
  EXPECT_THAT(Read(1, /*with_dead=*/true), ElementsAre("alice 7/3 dead"));
  EXPECT_THAT(Read(1, /*with_dead=*/false), ElementsAre("alice 7/3"));
  EXPECT_THAT(Read(0, /*with_dead=*/true), IsEmpty());
  EXPECT_EQ(holds_.ItemOf(message), "7/3");
}

// A store whose poison must not be read message by message.
class UnlistedPoison final : public queue::InterceptedStore {
 public:
  using InterceptedStore::InterceptedStore;
  absl::StatusOr<std::vector<queue::PoisonMessage>> ListPoison(const queue::QueueId&,
                                                               absl::string_view, int) override {
    return absl::InternalError("all of it is read");
  }
};

TEST_F(JobKeyHoldsTest, LooksUpTheDeadLettersOfHeldKeysAlone) {
  UnlistedPoison unlisted(queues_.get());
  JobKeyHolds next_owner(partitions_, {&sync_, &unlisted, &cancelled_, &clock_});
  const auto dead = [&] {
    std::vector<bool> dead;
    const auto read = next_owner.Read(0, /*with_dead=*/true);
    EXPECT_TRUE(read.ok()) << read.status();
    for (const auto& held : *read) dead.push_back(held.is_dead);
    return dead;
  };
  const queue::Message alice = Receive(0, 7, 3), bob = Receive(0, 7, 4);
  ASSERT_TRUE(holds_.Hold(0, "alice", alice).ok());
  ASSERT_TRUE(holds_.Hold(0, "bob", bob).ok());
  GiveUp(0, bob);
  EXPECT_THAT(dead(), ElementsAre(false, true));
  // A copy of the item, which was put again.
  const queue::Message copy = Receive(0, 7, 3);
  ASSERT_TRUE(holds_.Hold(0, "alice", copy).ok());
  GiveUp(0, copy);
  EXPECT_THAT(dead(), ElementsAre(true, true));
}

TEST_F(JobKeyHoldsTest, ReleasesAKeyForItsItemAlone) {
  ASSERT_TRUE(holds_.Hold(0, "alice", Receive(0, 7, 3)).ok());
  ASSERT_TRUE(holds_.Release(0, "alice", "7/2").ok());
  EXPECT_THAT(Read(0, false), ElementsAre("alice 7/3"));
  ASSERT_TRUE(holds_.Release(0, "alice", "7/3").ok());
  EXPECT_THAT(Read(0, false), IsEmpty());
  EXPECT_TRUE(absl::IsInvalidArgument(holds_.Release(0, "alice", "7")));
}

TEST_F(JobKeyHoldsTest, ReleasesKeysThatAreHeldForItemsOfACancelledBatch) {
  ASSERT_TRUE(holds_.Hold(0, "alice", Receive(0, 7, 3)).ok());
  ASSERT_TRUE(holds_.Hold(0, "bob", Receive(0, 8, 0)).ok());
  ASSERT_TRUE(cancelled_.Add(7).ok());
  EXPECT_THAT(Read(0, false), ElementsAre("bob 8/0"));
  EXPECT_EQ(item::HeldKeyStore(&sync_).Read(partitions_[0])->size(), 1u) << "durably";
}

TEST_F(JobKeyHoldsTest, HoldsNoKeyForAMessageThatIsNoItem) {
  queue::Message message;
  message.body = "no item";
  EXPECT_FALSE(holds_.Hold(0, "alice", message).ok());
  EXPECT_EQ(holds_.ItemOf(message), "");
}

}  // namespace
}  // namespace muster::processor
