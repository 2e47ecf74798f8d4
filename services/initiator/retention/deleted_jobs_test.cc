// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/retention/deleted_jobs.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/ledger/rocksdb/batch_codec.h"
#include "muster/ledger/rocksdb/rocksdb_batch_ledger.h"
#include "muster/os/temp_dir.h"
#include "muster/partition/group_registry.h"
#include "muster/partition/partition_admin.h"
#include "muster/partition/records.h"
#include "muster/rocksdb/database.h"
#include "rocksdb/db.h"
#include "services/initiator/batch/job_queues.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/job/job_text.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::initiator::retention {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Jobs "shop" and "other", with their queues in a store of this process.
class DeletedJobsTest : public ::testing::Test {
 protected:
  DeletedJobsTest() {
    for (const char* job : {"shop", "other"}) {
      const auto applied = jobs_.Apply(job::JobText(job), std::nullopt);
      EXPECT_TRUE(applied.ok()) << applied.status();
      EXPECT_TRUE(job_queues_.Ensure(applied->job).ok());
    }
    EXPECT_THAT(QueueNames(), ElementsAre("other-in-0", "other-out-0", "shop-in-0", "shop-out-0"));
  }

  std::vector<std::string> QueueNames() {
    std::vector<std::string> names;
    const std::vector<queue::QueueInfo> queues = queues_->ListQueues({"local", "", ""}).value();
    for (const queue::QueueInfo& queue : queues) names.push_back(queue.id.name);
    return names;
  }

  void Delete(const std::string& job) {
    ASSERT_TRUE(jobs_.Delete(job).ok());
    clock_.Advance(kDeletedFor);
  }

  const os::TempDir dir_;
  base::FakeClock clock_;
  sync::testing::MemorySyncStore records_;
  job::JobRegistry jobs_{&records_, &clock_};
  const std::unique_ptr<ledger::BatchLedger> ledger_ =
      backend::OpenBatchLedger(backend::DataDirUrls(dir_.path()).ledger, backend::Mode::kReadWrite)
          .value();
  const std::unique_ptr<queue::QueueStore> queues_ =
      backend::OpenQueueStore(backend::DataDirUrls(dir_.path()).queue, backend::Mode::kReadWrite,
                              backend::Holders::kInProcess, &clock_)
          .value();
  batch::JobQueues job_queues_{queues_.get(), "local", &clock_};
  const std::function<void(const std::string&)> forget_queues_ = [this](const std::string& job) {
    job_queues_.Forget(job);
  };
  DeletedJobs deleted_{{&jobs_, queues_.get(), ledger_.get(), forget_queues_, &clock_, &records_},
                       "local"};
};

// 51 jobs that were made and deleted had left 204 streams and 102 consumers on a server.
TEST_F(DeletedJobsTest, LeaveNoQueue) {
  Delete("shop");
  ASSERT_TRUE(deleted_.Sweep().ok());
  EXPECT_THAT(QueueNames(), ElementsAre("other-in-0", "other-out-0"));
  EXPECT_THAT(jobs_.Deleted().value(), SizeIs(1)) << "one may come back";
  ASSERT_TRUE(deleted_.Sweep().ok());
  EXPECT_THAT(jobs_.Deleted().value(), IsEmpty());
}

// 51 jobs had left a revision and a text each, for ever.
TEST_F(DeletedJobsTest, LeaveNoDefinition) {
  const std::string first = jobs_.Get("shop")->revision;
  ASSERT_TRUE(jobs_.Apply(job::JobText("shop", "price"), std::nullopt).ok());
  const std::string second = jobs_.Get("shop")->revision;
  Delete("shop");
  ASSERT_TRUE(deleted_.Sweep().ok());
  EXPECT_TRUE(jobs_.FindRevision(first).ok()) << "queues go first";
  ASSERT_TRUE(deleted_.Sweep().ok());
  for (const std::string& revision : {first, second}) {
    EXPECT_TRUE(absl::IsNotFound(jobs_.FindRevision(revision).status()));
  }
  EXPECT_EQ(records_.Get(job::HistoryKey("shop"))->version, sync::kAbsent);
  EXPECT_TRUE(jobs_.FindRevision(jobs_.Get("other")->revision).ok());
}

// A job that is applied anew each day left a revision and a text for each.
TEST_F(DeletedJobsTest, LeaveNoDefinitionThatWasReplacedButThoseOfOpenBatches) {
  const std::string first = jobs_.Get("shop")->revision;
  ASSERT_TRUE(jobs_.Apply(job::JobText("shop", "price"), std::nullopt).ok());
  const std::string second = jobs_.Get("shop")->revision;
  uint64_t number = 0;
  for (const std::string& revision : {first, second}) {
    ledger::Batch batch;
    batch.number = ++number;
    batch.job = "shop";
    batch.job_revision = revision;
    ASSERT_TRUE(ledger_->Create(batch).ok());
  }
  clock_.Advance(kDeletedFor);
  ASSERT_TRUE(deleted_.Sweep().ok());
  EXPECT_TRUE(jobs_.FindRevision(first).ok());
  ASSERT_TRUE(ledger_->Cancel(1, clock_.Now(), "").ok());
  const queue::QueueId input = {"local", "shop-in-0"};
  ASSERT_TRUE(queues_->Put(input, {{.body = "item", .dedup_id = ""}}).ok());
  ASSERT_TRUE(deleted_.Sweep().ok());
  EXPECT_TRUE(jobs_.FindRevision(first).ok()) << "a worker may need it for the item";
  ASSERT_TRUE(queues_->Clear(input).ok());
  ASSERT_TRUE(deleted_.Sweep().ok());
  EXPECT_TRUE(absl::IsNotFound(jobs_.FindRevision(first).status()));
  EXPECT_TRUE(jobs_.FindRevision(second).ok());
  EXPECT_THAT(jobs_.Replaced().value(), IsEmpty());
  EXPECT_THAT(QueueNames(), SizeIs(4));
}

// An initiator that was away comes back with an open batch when the queues are gone already.
TEST_F(DeletedJobsTest, KeepTheirDefinitionsWhileABatchIsOpen) {
  const std::string revision = jobs_.Get("shop")->revision;
  Delete("shop");
  ASSERT_TRUE(deleted_.Sweep().ok());
  ledger::Batch batch;
  batch.number = 1;
  batch.job = "shop";
  ASSERT_TRUE(ledger_->Create(batch).ok());
  ASSERT_TRUE(deleted_.Sweep().ok());
  EXPECT_TRUE(jobs_.FindRevision(revision).ok());
  EXPECT_THAT(jobs_.Deleted().value(), SizeIs(1));
  ASSERT_TRUE(ledger_->Cancel(1, clock_.Now(), "").ok());
  ASSERT_TRUE(deleted_.Sweep().ok());
  EXPECT_TRUE(absl::IsNotFound(jobs_.FindRevision(revision).status()));
  EXPECT_THAT(jobs_.Deleted().value(), IsEmpty());
}

// The records of a group whose processors were killed stayed for ever, and 512 such groups hid all
// further ones.
TEST_F(DeletedJobsTest, LeaveNoGroupOfProcessors) {
  constexpr char kGroup[] = "order/shop-in-0/4", kOther[] = "order/shop-in-0-in-0/4";
  for (const char* group : {kGroup, kOther}) {
    ASSERT_TRUE(partition::GroupRegistry(&records_).Note(group).ok());
    partition::RecordValue members;
    members.members = {"dead"};
    members.partitions = 4;
    using Kind = partition::RecordName::Kind;
    records_.Overwrite(partition::KeyOf(group, {.kind = Kind::kMembers}),
                       partition::EncodeRecord(Kind::kMembers, members));
  }
  partition::PartitionAdmin admin(&records_);
  Delete("shop");
  for (int sweep = 0; sweep < 2; ++sweep) {
    ASSERT_TRUE(deleted_.Sweep().ok());
    EXPECT_THAT(admin.Groups().value(), SizeIs(2)) << sweep;
  }
  ASSERT_TRUE(deleted_.Sweep().ok());
  EXPECT_THAT(admin.Groups().value(), ElementsAre(kOther));
  EXPECT_THAT(jobs_.Deleted().value(), IsEmpty());
}

TEST_F(DeletedJobsTest, LeaveNoQueueThatComesBackAfterTheFirstSweep) {
  Delete("shop");
  ASSERT_TRUE(deleted_.Sweep().ok());
  ASSERT_TRUE(queues_->CreateQueue({"local", "shop-out-0"}, {}).ok());
  ASSERT_TRUE(deleted_.Sweep().ok());
  EXPECT_THAT(QueueNames(), ElementsAre("other-in-0", "other-out-0"));
}

TEST_F(DeletedJobsTest, KeepTheirQueuesUntilAllHaveNoticed) {
  ASSERT_TRUE(jobs_.Delete("shop").ok());
  clock_.Advance(kDeletedFor - absl::Seconds(1));
  ASSERT_TRUE(deleted_.Sweep().ok());
  EXPECT_THAT(QueueNames(), SizeIs(4));
}

TEST_F(DeletedJobsTest, KeepTheirQueuesWhenTheyAreThereAgain) {
  Delete("shop");
  ASSERT_TRUE(jobs_.Apply(job::JobText("shop"), std::nullopt).ok());
  ASSERT_TRUE(deleted_.Sweep().ok());
  EXPECT_THAT(QueueNames(), SizeIs(4));
  EXPECT_THAT(jobs_.Deleted().value(), IsEmpty());
}

TEST_F(DeletedJobsTest, KeepTheirQueuesWhileABatchIsOpen) {
  ledger::Batch batch;
  batch.number = 1;
  batch.job = "shop";
  ASSERT_TRUE(ledger_->Create(batch).ok());
  Delete("shop");
  ASSERT_TRUE(deleted_.Sweep().ok());
  EXPECT_THAT(QueueNames(), SizeIs(4));
  ASSERT_TRUE(ledger_->Cancel(1, clock_.Now(), "").ok());
  ASSERT_TRUE(deleted_.Sweep().ok());
  EXPECT_THAT(QueueNames(), SizeIs(2));
}

// An initiator without a batch of the job removed the queues of another one's.
TEST_F(DeletedJobsTest, KeepTheirQueuesWhileAnotherInitiatorHasAnOpenBatchOrDoesNotAnswer) {
  absl::StatusOr<std::optional<uint64_t>> answer = 7;
  DeletedJobs deleted({&jobs_, queues_.get(), ledger_.get(), forget_queues_, &clock_, &records_,
                       [&](const std::string& job, const std::string& but_of_revision) {
                         EXPECT_EQ(job, "shop");
                         EXPECT_EQ(but_of_revision, "");
                         return answer;
                       }},
                      "local");
  Delete("shop");
  ASSERT_TRUE(deleted.Sweep().ok());
  EXPECT_THAT(QueueNames(), SizeIs(4));
  answer = absl::UnavailableError("initiator-1 does not answer");
  EXPECT_TRUE(absl::IsUnavailable(deleted.Sweep()));
  EXPECT_THAT(QueueNames(), SizeIs(4));
  answer = std::nullopt;
  ASSERT_TRUE(deleted.Sweep().ok());
  EXPECT_THAT(QueueNames(), SizeIs(2));
}

TEST_F(DeletedJobsTest, KeepDeadLettersUntilTheyAreDiscarded) {
  const queue::QueueId input = {"local", "shop-in-0"};
  ASSERT_TRUE(queues_->Put(input, {{.body = "item", .dedup_id = ""}}).ok());
  const auto message = queues_->Receive(input, {}).value();
  ASSERT_THAT(message, SizeIs(1));
  ASSERT_TRUE(queues_->DeadLetter(input, {{message[0].receipt, {}}}).ok());
  Delete("shop");
  ASSERT_TRUE(deleted_.Sweep().ok());
  EXPECT_THAT(QueueNames(), SizeIs(4));
  ASSERT_TRUE(queues_->PurgePoison(input).ok());
  ASSERT_TRUE(deleted_.Sweep().ok());
  EXPECT_THAT(QueueNames(), SizeIs(2));
}

// An initiator answered that it had no open batch of the job, and another one removed its queues.
TEST(FindOpenBatchTest, FindsABatchBehindOneThatIsNotThere) {
  const os::TempDir dir;
  const std::string folder = dir / "ledger";
  auto ledger = ledger::rocksdb::RocksDbBatchLedger::Open(folder, {}).value();
  for (const uint64_t number : {1, 2}) {
    ledger::Batch batch;
    batch.number = number;
    batch.job = "shop";
    ASSERT_TRUE(ledger->Create(batch).ok());
  }
  ledger.reset();
  {
    using ledger::rocksdb::BatchKey;
    using ledger::rocksdb::kBatches;
    const auto database =
        muster::rocksdb::Database::Open(folder, ledger::rocksdb::LedgerDatabase({})).value();
    ASSERT_TRUE(database->db()->Delete({}, database->family(kBatches), BatchKey(1)).ok());
  }
  ledger = ledger::rocksdb::RocksDbBatchLedger::Open(folder, {}).value();
  ASSERT_THAT(ledger->ListOpen().value(), ElementsAre(1, 2));
  for (const char* but_of_revision : {"", "another"}) {
    const auto found = FindOpenBatch(*ledger, "shop", but_of_revision);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, 2);
  }
}

// A job that was deleted and applied again within a minute had no queue for its first batch.
TEST_F(DeletedJobsTest, HaveNewQueuesOnceTheyAreThereAgain) {
  Delete("shop");
  ASSERT_TRUE(deleted_.Sweep().ok());
  const auto applied = jobs_.Apply(job::JobText("shop"), std::nullopt);
  ASSERT_TRUE(applied.ok());
  ASSERT_TRUE(job_queues_.Ensure(applied->job).ok());
  EXPECT_THAT(QueueNames(), SizeIs(4));
}

}  // namespace
}  // namespace muster::initiator::retention
