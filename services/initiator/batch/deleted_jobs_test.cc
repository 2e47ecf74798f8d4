#include "services/initiator/batch/deleted_jobs.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/os/temp_dir.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/job/job_text.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::initiator::batch {
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
    const std::vector<queue::QueueInfo> queues = queues_->ListQueues({.account = "local"}).value();
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
  JobQueues job_queues_{queues_.get(), "local", &clock_};
  DeletedJobs deleted_{{&jobs_, queues_.get(), ledger_.get(), &job_queues_, &clock_}, "local"};
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
  DeletedJobs deleted({&jobs_, queues_.get(), ledger_.get(), &job_queues_, &clock_,
                       [&](const std::string& job) {
                         EXPECT_EQ(job, "shop");
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
  ASSERT_TRUE(queues_->Put(input, {{.body = "item"}}).ok());
  const auto message = queues_->Receive(input, {}).value();
  ASSERT_THAT(message, SizeIs(1));
  ASSERT_TRUE(queues_->DeadLetter(input, {{.receipt = message[0].receipt}}).ok());
  Delete("shop");
  ASSERT_TRUE(deleted_.Sweep().ok());
  EXPECT_THAT(QueueNames(), SizeIs(4));
  ASSERT_TRUE(queues_->PurgePoison(input).ok());
  ASSERT_TRUE(deleted_.Sweep().ok());
  EXPECT_THAT(QueueNames(), SizeIs(2));
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
}  // namespace muster::initiator::batch
