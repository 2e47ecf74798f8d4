// SPDX-License-Identifier: Apache-2.0

// How a loss is found whatever waits in the queues of the job for long: BatchEngine looks through
// them (QueueScan).
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/v1/item_result.pb.h"
#include "services/initiator/batch/engine.h"
#include "tests/fakes/initiator/batch_engine_fixture.h"

namespace muster::initiator::batch {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr uint64_t kForeignBatch = 999'999;
constexpr absl::Duration kForLong = absl::Hours(1);

v1::ItemResult ResultOf(uint64_t batch, uint32_t index) {
  v1::ItemResult result;
  result.set_batch(batch);
  result.set_index(index);
  result.mutable_dead_lettered()->set_cause("it is poison");
  return result;
}

class BatchEngineScanTest : public BatchEngineTest {
 protected:
  // A sealed batch of three items, all of which are put.
  void BeginWithThreeItems() {
    BeginWithRecords(30);
    ASSERT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
  }

  queue::PutResult PutInto(const queue::QueueId& id, const std::string& body) {
    std::vector<queue::NewMessage> messages(1);
    messages.front().body = body;
    return queues_->Put(id, messages)->front();
  }
  void PutResult(const v1::ItemResult& result) { PutInto(output_, result.SerializeAsString()); }

  // Leases what the queue gives next, as a worker does that takes an hour.
  queue::Message Hold(const queue::QueueId& id) {
    const auto messages = queues_->Receive(id, {1, kForLong});
    EXPECT_EQ(messages->size(), 1u);
    return messages->front();
  }

  // Another batch, of three items.
  std::unique_ptr<BatchEngine> Take(const std::string& request_id) {
    const std::string input = dir_ / absl::StrCat(request_id, ".csv");
    {
      std::ofstream file(input);
      file << "n\n";
      for (int i = 0; i < 30; ++i) file << request_id << i << "\n";
    }
    const auto source = BatchSource::Open(input, job_.input).value();
    sync::UniqueIdGenerator numbers(sync_.get(), "batch", {.range_size = 1});
    BatchOpener opener(&job_, source.get(), ledger_.get(), &numbers, &clock_);
    SubmitRequest request;
    request.request_id = request_id;
    request.handler_version = "1";
    const auto submission = opener.Open(request);
    EXPECT_TRUE(submission.ok()) << submission.status();
    return std::make_unique<BatchEngine>(submission->batch.number, Dependencies(),
                                         job_queues_.get());
  }

  absl::Status Look() { return engine_->Step({}).status(); }
  // Looks until the engine has had cause and time to look through the queues.
  void LookForLong() {
    for (int i = 0; i < 3; ++i) {
      const absl::Status looked = Look();
      ASSERT_TRUE(looked.ok()) << looked;
      clock_.Advance(absl::Seconds(11));
    }
  }
};

TEST_F(BatchEngineScanTest, FindsALossBehindAResultThatStaysAtTheHead) {
  BeginWithThreeItems();
  PutResult(ResultOf(kForeignBatch, 0));
  EXPECT_EQ(LoseMessages(), 3);
  LookForLong();
  EXPECT_EQ(LoseMessages(), 3);
  Count({0, 1});
  LookForLong();
  EXPECT_EQ(LoseMessages(), 1) << "and again, of what is not counted";
}

TEST_F(BatchEngineScanTest, FindsALossBehindOldItemsThatStayAtTheHeads) {
  ASSERT_TRUE(job_queues_->Ensure(job_).ok());
  for (const queue::QueueId& id : inputs_) {
    PutForeign(id);
    Hold(id);
  }
  BeginWithThreeItems();
  EXPECT_EQ(LoseMessages(), 3);
  LookForLong();
  EXPECT_EQ(LoseMessages(), 3);
}

TEST_F(BatchEngineScanTest, PutsNothingAgainThatIsLeasedOrDelayedOrHasAResultThatWaits) {
  BeginWithThreeItems();
  Hold(inputs_[0]);                                // item 0
  const queue::Message second = Hold(inputs_[0]);  // item 2
  queue::UpdateRequest later;
  later.receipt = second.receipt;
  later.visibility = kForLong;
  later.attempt_ended = true;
  ASSERT_TRUE(queues_->Update(inputs_[0], {later}).ok());
  PutResult(ResultOf(kForeignBatch, 1));
  PutResult(ResultOf(number_, 1));
  EXPECT_EQ(LoseMessages(), 1) << "item 1, which has a result";
  LookForLong();
  EXPECT_GT(watch_->scans, 0);
  EXPECT_EQ(LoseMessages(), 0);
  EXPECT_EQ(ledger_->Get(number_)->refills, 0u);
}

TEST_F(BatchEngineScanTest, TellsTheItemsOfAMessageOfManyResults) {
  BeginWithThreeItems();
  PutResult(ResultOf(kForeignBatch, 0));
  v1::ItemResult many;
  many.set_batch(number_);
  many.add_together(ResultOf(number_, 0).SerializeAsString());
  many.add_together(ResultOf(number_, 2).SerializeAsString());
  PutResult(many);
  EXPECT_EQ(LoseMessages(), 3);
  LookForLong();
  EXPECT_EQ(LoseMessages(), 1) << "item 1";
}

TEST_F(BatchEngineScanTest, PutsNothingAgainWhileAMessageDoesNotTellItsItems) {
  BeginWithThreeItems();
  v1::ItemResult newer;  // without an outcome that this muster knows
  newer.set_batch(number_);
  newer.GetReflection()->MutableUnknownFields(&newer)->AddVarint(900, 1);
  PutResult(newer);
  EXPECT_EQ(LoseMessages(), 3);
  LookForLong();
  EXPECT_GT(watch_->scans, 0);
  EXPECT_EQ(LoseMessages(), 0);
}

TEST_F(BatchEngineScanTest, IsNotBlindToAResultThatMovesToTheTailMeanwhile) {
  BeginWithThreeItems();
  PutResult(ResultOf(kForeignBatch, 0));
  const std::string result = ResultOf(number_, 1).SerializeAsString();
  queue::PutResult at = PutInto(output_, result);
  EXPECT_EQ(LoseMessages(), 3);
  // The controller copies the result, and deletes the original, before the scan comes there; and
  // once more when the scan has read as far as the queue reached at first.
  watch_->page = 1;
  int moves = 0;
  watch_->before_scan = [&](const queue::QueueId& id, uint64_t from) {
    if (!(id == output_) || moves == 2 || from < at.position) return;
    ++moves;
    const queue::PutResult copy = PutInto(output_, result);
    ASSERT_TRUE(queues_->Delete(output_, {at.receipt}).ok());
    at = copy;
  };
  LookForLong();
  EXPECT_EQ(moves, 2);
  EXPECT_EQ(LoseMessages(), 2) << "items 0 and 2";
}

TEST_F(BatchEngineScanTest, PutsNothingAgainThatIsCountedWhileTheScanRuns) {
  BeginWithThreeItems();
  PutResult(ResultOf(kForeignBatch, 0));
  const queue::PutResult at = PutInto(output_, ResultOf(number_, 1).SerializeAsString());
  EXPECT_EQ(LoseMessages(), 3);
  watch_->before_scan = [&](const queue::QueueId& id, uint64_t) {
    if (!(id == output_) || ledger_->Get(number_)->refills > 0) return;
    Count({1});
    queues_->Delete(output_, {at.receipt}).IgnoreError();
  };
  LookForLong();
  EXPECT_EQ(LoseMessages(), 2) << "items 0 and 2";
}

TEST_F(BatchEngineScanTest, ServesAllBatchesOfTheJobWithOneScan) {
  ASSERT_TRUE(job_queues_->Ensure(job_).ok());
  PutResult(ResultOf(kForeignBatch, 0));
  std::vector<std::unique_ptr<BatchEngine>> engines;
  for (int i = 0; i < 20; ++i) {
    engines.push_back(Take(absl::StrCat("batch-", i)));
    ASSERT_EQ(*engines.back()->Step({}), StepResult::kNeedsResults);
  }
  EXPECT_EQ(LoseMessages(), 60);
  const auto look = [&] {
    for (const auto& engine : engines) ASSERT_TRUE(engine->Step({}).ok());
  };
  look();
  EXPECT_EQ(watch_->scans, 0) << "what waits may move on soon";
  clock_.Advance(absl::Seconds(11));
  look();
  EXPECT_EQ(LoseMessages(), 60);
  EXPECT_EQ(watch_->scans, 3) << "of two input partitions and the output";
}

TEST_F(BatchEngineScanTest, LooksThroughNoBacklogWhoseHeadMoves) {
  ASSERT_TRUE(job_queues_->Ensure(job_).ok());
  for (int i = 0; i < 40; ++i) {
    for (const queue::QueueId& id : inputs_) PutForeign(id);
  }
  BeginWithThreeItems();
  for (int i = 0; i < 35; ++i) {
    ASSERT_TRUE(Look().ok());
    for (const queue::QueueId& id : inputs_) {
      const queue::Message head = Hold(id);
      ASSERT_TRUE(queues_->Delete(id, {head.receipt}).ok());
    }
    clock_.Advance(absl::Seconds(5));
  }
  EXPECT_EQ(watch_->scans, 0);
}

TEST_F(BatchEngineScanTest, LooksThroughAQueueThatStaysAsItIsNotAllTheTime) {
  BeginWithThreeItems();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(Look().ok());
    clock_.Advance(absl::Seconds(1));
  }
  EXPECT_GT(watch_->scans, 0);
  EXPECT_LE(watch_->scans, 3 * 10);
}

TEST_F(BatchEngineScanTest, GoesOnWithALongScanStepByStep) {
  BeginWithThreeItems();
  for (int i = 0; i < 200; ++i) PutResult(ResultOf(kForeignBatch, static_cast<uint32_t>(i)));
  EXPECT_EQ(LoseMessages(), 3);
  watch_->page = 1;
  LookForLong();
  EXPECT_EQ(LoseMessages(), 0) << "the scan is not over";
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Look().ok());
  EXPECT_EQ(LoseMessages(), 3);
  EXPECT_EQ(watch_->scans, 3) << "of two input partitions and the output";
}

TEST_F(BatchEngineScanTest, LetsGoOfASnapshotOnceAllHaveHadItOrLeft) {
  ASSERT_TRUE(job_queues_->Ensure(job_).ok());
  QueueScan scan({inputs_, output_}, watch_.get(), &clock_);
  const uint64_t first = scan.Join(1);
  ASSERT_EQ(scan.Join(2), first);
  EXPECT_EQ(scan.Take(1, first), nullptr) << "no scan is over";
  ASSERT_TRUE(scan.Advance().ok());
  std::weak_ptr<const QueueSnapshot> snapshot = scan.Take(1, first);
  EXPECT_FALSE(snapshot.expired());
  EXPECT_EQ(scan.Take(1, first), nullptr) << "it has had it";
  EXPECT_EQ(scan.Take(2, scan.Join(2)), nullptr) << "it has put more since the scan began";
  scan.Leave(2);
  EXPECT_TRUE(snapshot.expired());
}

TEST_F(BatchEngineScanTest, GivesUpAScanOfMoreItemsThanItMayNote) {
  ASSERT_TRUE(job_queues_->Ensure(job_).ok());
  QueueScan scan({inputs_, output_}, watch_.get(), &clock_, /*max_items=*/2);
  const uint64_t number = scan.Join(1);
  for (uint32_t i = 0; i < 3; ++i) {
    PutResult(ResultOf(1, i));
    PutResult(ResultOf(kForeignBatch, i));
  }
  ASSERT_TRUE(scan.Advance().ok());
  EXPECT_EQ(scan.Take(1, number), nullptr);
  EXPECT_THAT(log_.lines(), Contains(HasSubstr("is found once fewer items wait")));
  const int scans = watch_->scans;
  clock_.Advance(absl::Minutes(1));
  ASSERT_TRUE(scan.Advance().ok());
  EXPECT_EQ(watch_->scans, scans) << "it is not begun again soon";
  ASSERT_TRUE(queues_->Clear(output_).ok());
  PutResult(ResultOf(1, 2));
  clock_.Advance(absl::Minutes(10));
  ASSERT_TRUE(scan.Advance().ok());
  const auto found = scan.Take(1, number);
  ASSERT_NE(found, nullptr);
  EXPECT_TRUE(found->Had(1, 2));
  EXPECT_FALSE(found->Had(1, 1));
  EXPECT_FALSE(found->HadInInput(1));
}

TEST_F(BatchEngineScanTest, BeginsAnewWhenTheOutputWasMadeAnewMeanwhile) {
  ASSERT_TRUE(job_queues_->Ensure(job_).ok());
  QueueScan scan({inputs_, output_}, watch_.get(), &clock_);
  const uint64_t number = scan.Join(1);
  PutResult(ResultOf(1, 0));
  watch_->before_scan = [this](const queue::QueueId& id, uint64_t from) {
    if (!(id == output_) || from == 0) return;
    ASSERT_TRUE(queues_->DeleteQueue(output_).ok());
    ASSERT_TRUE(queues_->CreateQueue(output_, {}).ok());
  };
  ASSERT_TRUE(scan.Advance().ok());
  EXPECT_EQ(scan.Take(1, number), nullptr);
  watch_->before_scan = nullptr;
  clock_.Advance(absl::Minutes(1));
  ASSERT_TRUE(scan.Advance().ok());
  EXPECT_NE(scan.Take(1, number), nullptr);
}

class OrderedBatchEngineScanTest : public BatchEngineScanTest {
 protected:
  OrderedBatchEngineScanTest() {
    job_ = job::ParseJob(std::string(kSumJob) + "order_by: n\n", "job.yaml").value();
  }
};

TEST_F(OrderedBatchEngineScanTest, PutsNothingBehindLaterItemsOfItsBatch) {
  BeginWithThreeItems();
  PutResult(ResultOf(kForeignBatch, 0));
  const queue::Message first = Hold(inputs_[0]);
  EXPECT_GT(LoseMessages(), 0);
  LookForLong();
  EXPECT_GT(watch_->scans, 0);
  EXPECT_EQ(LoseMessages(), 0) << "one of its items waits";
  ASSERT_TRUE(queues_->Delete(inputs_[0], {first.receipt}).ok());
  LookForLong();
  EXPECT_EQ(static_cast<uint64_t>(LoseMessages()), ledger_->Get(number_)->items);
}

}  // namespace
}  // namespace muster::initiator::batch
