// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/retention/blob_sweep.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/os/temp_dir.h"
#include "muster/report/report_store.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::initiator::retention {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class BlobSweepTest : public ::testing::Test {
 protected:
  // Files have the time of the machine.
  BlobSweepTest() { clock_.StepWallClock(absl::Now() - clock_.Now()); }

  // A batch of two items.
  void Create(uint64_t number) {
    ledger::Batch batch;
    batch.number = number;
    batch.request_id = absl::StrCat("request ", number);
    batch.job = "shop";
    batch.created = clock_.Now();
    const uint64_t large = item::kInlinePayloadBytes + 1;
    ASSERT_TRUE(ledger_
                    ->Create(batch, {{0, large, 1, 1, base::Fingerprint("a")},
                                     {large, large, 2, 1, base::Fingerprint("b")}})
                    .ok());
    report::BatchShape shape;
    shape.batch = number;
    shape.job = "shop";
    shape.job_revision = "1";
    ASSERT_TRUE(report_->RegisterBatch(shape).ok());
  }

  // Complete; the first of its items is dead-lettered.
  void CreateComplete(uint64_t number) {
    Create(number);
    report::CommitRequest commit;
    commit.partition = "acme/out";
    for (const uint32_t index : {0u, 1u}) {
      report::CountedItem item;
      item.batch = number;
      item.index = index;
      item.transactions = 1;
      item.content = base::Fingerprint(index == 0 ? "a" : "b");
      item.outcome =
          index == 0 ? report::ItemOutcome::kDeadLettered : report::ItemOutcome::kAggregated;
      item.aggregated = index;
      commit.items.push_back(item);
    }
    ASSERT_TRUE(report_->Commit(commit).ok());
    ASSERT_TRUE(ledger_->Seal(number, 10).ok());
    ASSERT_TRUE(ledger_->MarkComplete(number, clock_.Now()).ok());
  }

  void Put(const std::vector<std::string>& names) {
    for (const std::string& name : names) ASSERT_TRUE(blobs_->Put(name, "a body").ok());
  }

  // A whole pass.
  void Sweep(BlobSweep& sweep) {
    for (bool done = false; !done;) {
      const absl::StatusOr<bool> step = sweep.Step(2);
      ASSERT_TRUE(step.ok()) << step.status();
      done = *step;
    }
  }
  void Sweep() {
    BlobSweep sweep(Dependencies());
    Sweep(sweep);
  }

  BlobSweep::Dependencies Dependencies() {
    return {ledger_.get(), &report_client_, blobs_.get(), &clock_};
  }

  std::vector<std::string> Left() {
    std::vector<std::string> names;
    const std::unique_ptr<blob::BlobScan> scan = blobs_->Scan().value();
    const absl::StatusOr<std::vector<blob::BlobEntry>> page = scan->Next(1000);
    EXPECT_TRUE(page.ok()) << page.status();
    for (const blob::BlobEntry& blob : *page) names.push_back(blob.name);
    return names;
  }

  const os::TempDir dir_;
  const backend::DataDirUrls urls_{dir_.path()};
  base::FakeClock clock_;
  const std::unique_ptr<ledger::BatchLedger> ledger_ =
      backend::OpenBatchLedger(urls_.ledger, backend::Mode::kReadWrite).value();
  const std::unique_ptr<blob::BlobStore> blobs_ = backend::OpenBlobStore(urls_.blobs).value();
  const std::unique_ptr<report::ReportStore> report_ =
      backend::OpenReportStore(urls_.report, backend::Mode::kReadWrite, &clock_).value();
  report::LocalReportClient report_client_{report_.get()};
};

TEST_F(BlobSweepTest, LeavesTheBlobsOfABatchThatIsNotOver) {
  Create(1);
  Put({"batch-1-item-0", "batch-1-item-7", "batch-1-item-0-result-1-ff"});
  clock_.Advance(absl::Hours(1000));
  Sweep();
  EXPECT_EQ(Left().size(), 3u);
}

TEST_F(BlobSweepTest, LeavesABlobThatMayBelongToAMessageUnderWay) {
  CreateComplete(1);
  Put({"batch-1-item-1"});
  clock_.Advance(kOrphanAge - absl::Minutes(1));
  Sweep();
  EXPECT_THAT(Left(), UnorderedElementsAre("batch-1-item-1"));
  clock_.Advance(absl::Minutes(2));
  Sweep();
  EXPECT_THAT(Left(), IsEmpty());
}

TEST_F(BlobSweepTest, LeavesOfACompleteBatchWhatARedriveNeeds) {
  CreateComplete(1);
  Put({"batch-1-item-0", "batch-1-item-1", "batch-1-item-2", "batch-1-item-0-result-1-ff"});
  clock_.Advance(absl::Hours(25));
  Sweep();
  EXPECT_THAT(Left(), UnorderedElementsAre("batch-1-item-0"));
  ASSERT_TRUE(ledger_->BeginToDropItems(1).ok());
  Sweep();
  EXPECT_THAT(Left(), IsEmpty());
}

TEST_F(BlobSweepTest, DeletesAllOfACancelledBatch) {
  Create(1);
  ASSERT_TRUE(ledger_->Cancel(1, clock_.Now(), "unwanted").ok());
  Put({"batch-1-item-0", "batch-1-item-9", "batch-1-item-0-result-1-ff"});
  clock_.Advance(absl::Hours(25));
  BlobSweep sweep(Dependencies());
  Sweep(sweep);
  EXPECT_THAT(Left(), IsEmpty());
  EXPECT_EQ(sweep.found(), 3u);
}

TEST_F(BlobSweepTest, LeavesTheBlobsOfAnotherBatchWithTheSameNumber) {
  Create(1);
  ASSERT_TRUE(ledger_->Cancel(1, clock_.Now(), "unwanted").ok());
  Put({"batch-1-item-0", "batch-1-of-another-item-0"});
  clock_.Advance(absl::Hours(25));
  BlobSweep::Dependencies dependencies = Dependencies();
  dependencies.find_elsewhere = [](uint64_t) { return absl::OkStatus(); };
  BlobSweep sweep(dependencies);
  Sweep(sweep);
  EXPECT_THAT(Left(), UnorderedElementsAre("batch-1-of-another-item-0"));
}

TEST_F(BlobSweepTest, LeavesWhatIsNotABlobOfABatch) {
  Put({"batch-1-part-0", "backup", "batch-7", "batch-7-item-1-copy"});
  clock_.Advance(absl::Hours(10'000));
  Sweep();
  EXPECT_EQ(Left().size(), 4u);
}

TEST_F(BlobSweepTest, DeletesTheBlobsOfALedgerThatIsLostWhenNobodyElseUsesTheStore) {
  Put({"batch-5-item-0"});
  clock_.Advance(absl::Hours(25));
  Sweep();
  EXPECT_THAT(Left(), IsEmpty());
}

TEST_F(BlobSweepTest, LeavesTheBlobsOfAnotherInitiator) {
  Put({"batch-5-item-0", "batch-5-item-1", "batch-6-item-0"});
  clock_.Advance(absl::Hours(25));
  absl::Status answer;
  std::vector<uint64_t> asked;
  BlobSweep::Dependencies dependencies = Dependencies();
  dependencies.find_elsewhere = [&](uint64_t batch) {
    asked.push_back(batch);
    return batch == 5 ? absl::OkStatus() : answer;
  };
  BlobSweep sweep(dependencies);
  answer = absl::UnavailableError("an initiator does not answer");
  EXPECT_TRUE(absl::IsUnavailable(sweep.Step(10).status()));
  EXPECT_EQ(Left().size(), 3u);
  EXPECT_TRUE(*sweep.Step(10)) << "a blob of which nothing is known holds up no other";
  answer = ledger::UnknownToAll(6, 2);
  Sweep(sweep);
  EXPECT_EQ(Left().size(), 3u) << "the initiator that has it may be away";
  clock_.Advance(kLostLedgerAge);
  Sweep(sweep);
  EXPECT_THAT(Left(), UnorderedElementsAre("batch-5-item-0", "batch-5-item-1"));
}

}  // namespace
}  // namespace muster::initiator::retention
