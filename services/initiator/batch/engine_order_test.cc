// SPDX-License-Identifier: Apache-2.0

// Batches of a job with order_by: each is put after those that were taken in before it.
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/initiator/batch_engine_fixture.h"

namespace muster::initiator::batch {
namespace {

class BatchEngineOrderTest : public BatchEngineTest {
 protected:
  BatchEngineOrderTest() {
    job_ = job::ParseJob(absl::StrCat(kSumJob, "order_by: n\n"), "job.yaml").value();
  }

  // A batch of one line, as one engine sees it through.
  std::unique_ptr<BatchEngine> Take(const std::string& request_id) {
    const std::string input = dir_ / absl::StrCat(request_id, ".csv");
    std::ofstream(input) << "n\n1\n";
    const auto source = BatchSource::Open(input, job_.input).value();
    sync::UniqueIdGenerator numbers(sync_.get(), "batch", {.range_size = 1});
    BatchOpener opener(&job_, source.get(), ledger_.get(), &numbers, &clock_);
    SubmitRequest request;
    request.request_id = request_id;
    request.handler_version = "1";
    const auto submission = opener.Open(request);
    EXPECT_TRUE(submission.ok()) << submission.status();
    numbers_.push_back(submission->batch.number);
    EngineDependencies dependencies = Dependencies();
    dependencies.on_turn = [this](uint64_t batch) { turns_.push_back(batch); };
    return std::make_unique<BatchEngine>(numbers_.back(), dependencies, job_queues_.get());
  }
  static absl::Status Step(BatchEngine& engine) { return engine.Step({}).status(); }
  uint64_t put(size_t batch) const { return ledger_->Get(numbers_[batch])->enqueued_items; }

  std::vector<uint64_t> numbers_;
  std::vector<uint64_t> turns_;
};

TEST_F(BatchEngineOrderTest, PutsABatchOnlyAfterThoseThatWereTakenInBefore) {
  const auto first = Take("first"), second = Take("second");
  const absl::Status waits = Step(*second);
  EXPECT_TRUE(absl::IsUnavailable(waits));
  EXPECT_TRUE(AwaitsTurn(waits));
  EXPECT_THAT(waits.message(), ::testing::HasSubstr(absl::StrCat("batch ", numbers_[0])));
  EXPECT_EQ(put(1), 0u);
  EXPECT_TRUE(Step(*first).ok());
  EXPECT_THAT(turns_, ::testing::ElementsAre(numbers_[1]));
  EXPECT_TRUE(Step(*second).ok());
  EXPECT_EQ(put(0), 1u);
  EXPECT_EQ(put(1), 1u);
}

TEST_F(BatchEngineOrderTest, WaitsForEachOfThoseBeforeItInTurn) {
  const auto first = Take("first"), second = Take("second"), third = Take("third");
  EXPECT_THAT(Step(*third).message(), ::testing::HasSubstr(absl::StrCat("batch ", numbers_[0])));
  EXPECT_TRUE(Step(*first).ok());
  EXPECT_THAT(Step(*third).message(), ::testing::HasSubstr(absl::StrCat("batch ", numbers_[1])));
  EXPECT_TRUE(Step(*second).ok());
  EXPECT_TRUE(Step(*third).ok());
  EXPECT_THAT(turns_, ::testing::ElementsAre(numbers_[1], numbers_[2]));
  EXPECT_EQ(put(2), 1u);
}

TEST_F(BatchEngineOrderTest, WaitsForNoBatchThatIsCancelled) {
  const auto first = Take("first"), second = Take("second");
  EXPECT_TRUE(absl::IsUnavailable(Step(*second)));
  ASSERT_TRUE(ledger_->CancelIfOpen(numbers_[0], clock_.Now(), "not needed").ok());
  EXPECT_TRUE(Step(*second).ok());
  EXPECT_EQ(put(1), 1u);
}

TEST_F(BatchEngineOrderTest, WaitsForNoBatchOfAnotherJob) {
  const auto first = Take("first");
  job_ = job::ParseJob(
             absl::StrCat("name: other\n", std::string(kSumJob).substr(11), "order_by: n\n"), "")
             .value();
  const auto second = Take("second");
  EXPECT_TRUE(Step(*second).ok());
  EXPECT_EQ(put(1), 1u);
}

// A batch of a job without order waits for nothing.
TEST_F(BatchEngineOrderTest, AJobWithoutOrderPutsItsBatchesAsTheyCome) {
  job_ = job::ParseJob(kSumJob, "job.yaml").value();
  const auto first = Take("first"), second = Take("second");
  EXPECT_TRUE(Step(*second).ok());
  EXPECT_EQ(put(1), 1u);
}

}  // namespace
}  // namespace muster::initiator::batch
