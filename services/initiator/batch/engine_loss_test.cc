// SPDX-License-Identifier: Apache-2.0

// What BatchEngine does about items that a queue has lost, and about items that no worker fits.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/initiator/batch/engine.h"
#include "tests/fakes/initiator/batch_engine_fixture.h"

namespace muster::initiator::batch {
namespace {

using ::testing::HasSubstr;

TEST_F(BatchEngineTest, PutsAgainWhatTheQueuesLostAndOnlyThat) {
  BeginWithRecords(30);
  const auto ended = Run([&] {
    EXPECT_EQ(LoseMessages(), 3);
    Count({1});
    PassInterval();
    EXPECT_EQ(LoseMessages(), 2) << "items 0 and 2";
    Count({0, 2});
  });
  ASSERT_TRUE(ended.ok()) << ended.status();
}

TEST_F(BatchEngineTest, PutsAgainWhatWasLostWhileAnotherBatchTricklesOn) {
  BeginWithRecords(30);
  const auto ended = Run([&] {
    EXPECT_EQ(LoseMessages(), 3);
    TrickleOn();
    // The other batch's result in front of the end of that moment is counted meanwhile.
    PassInterval();
    const auto counted = queues_->Receive(output_, {1});
    ASSERT_TRUE(queues_->Delete(output_, {counted->front().receipt}).ok());
    TrickleOn();
    PassInterval();
    EXPECT_EQ(LoseMessages(), 3);
    Count({0, 1, 2});
  });
  ASSERT_TRUE(ended.ok()) << ended.status();
}

TEST_F(BatchEngineTest, PutsAgainWhatWasInAQueueThatWasMadeAnew) {
  BeginWithRecords(30);
  const auto ended = Run([&] {
    for (const queue::QueueId& id : inputs_) {
      ASSERT_TRUE(queues_->DeleteQueue(id).ok());
      ASSERT_TRUE(queues_->CreateQueue(id, {}).ok());
      // As many messages of another batch as this one had there.
      PutForeign(id);
      PutForeign(id);
    }
    PassInterval();
    EXPECT_EQ(LoseMessages(), 3);
    Count({0, 1, 2});
  });
  ASSERT_TRUE(ended.ok()) << ended.status();
}

// A batch that begins in that minute has its items put twice, and none is lost.
TEST_F(BatchEngineTest, LooksOnceAMinuteWhetherAQueueWasMadeAnew) {
  ASSERT_TRUE(job_queues_->Ensure(job_).ok());
  const queue::QueueId& id = inputs_.front();
  const std::string before = job_queues_->LateIncarnation(id).value();
  ASSERT_TRUE(queues_->DeleteQueue(id).ok());
  ASSERT_TRUE(queues_->CreateQueue(id, {}).ok());
  EXPECT_EQ(job_queues_->LateIncarnation(id).value(), before);
  clock_.Advance(absl::Minutes(1));
  const std::string after = job_queues_->LateIncarnation(id).value();
  EXPECT_EQ(after, queues_->Extent(id)->incarnation);
  EXPECT_NE(after, before);
}

TEST_F(BatchEngineTest, CountsOnceWhatBeginsRightAfterItsQueueWasMadeAnew) {
  ASSERT_TRUE(job_queues_->Ensure(job_).ok());
  for (const queue::QueueId& id : inputs_) {
    ASSERT_TRUE(job_queues_->LateIncarnation(id).ok());
    ASSERT_TRUE(queues_->DeleteQueue(id).ok());
    ASSERT_TRUE(queues_->CreateQueue(id, {}).ok());
  }
  BeginWithRecords(30);
  const auto ended = Run([&] {
    PassInterval();
    PassInterval();
    EXPECT_GE(LoseMessages(), 3);
    Count({0, 1, 2});
  });
  ASSERT_TRUE(ended.ok()) << ended.status();
}

TEST_F(BatchEngineTest, PutsNothingAgainThatHasAResultOnItsWay) {
  BeginWithRecords(30);
  const auto ended = Run([&] {
    PutForeign(output_);  // stands for the results, which are put before the items are deleted
    EXPECT_EQ(LoseMessages(), 3);
    PassInterval();
    PassInterval();
    EXPECT_EQ(LoseMessages(), 0);
    Count({0, 1, 2});
  });
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(ledger_->Get(number_)->refills, 0u);
}

TEST_F(BatchEngineTest, PutsAgainTheItemsWhoseResultsWereLost) {
  BeginWithRecords(30);
  const auto ended = Run([&] {
    PutForeign(output_);  // stands for the results
    EXPECT_EQ(LoseMessages(), 3);
    PassInterval();
    ASSERT_TRUE(queues_->Clear(output_).ok());
    PutForeign(output_);
    PassInterval();
    EXPECT_EQ(LoseMessages(), 3);
    Count({0, 1, 2});
  });
  ASSERT_TRUE(ended.ok()) << ended.status();
}

TEST_F(BatchEngineTest, FindsALossFromBeforeItsStart) {
  BeginWithRecords(30);
  ASSERT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
  EXPECT_EQ(LoseMessages(), 3);
  for (const queue::QueueId& id : inputs_) PutForeign(id);
  engine_ = std::make_unique<BatchEngine>(number_, Dependencies(), job_queues_.get());
  ASSERT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
  EXPECT_EQ(LoseMessages(), 3);
}

// A redrive may put items behind the mark, and an older muster has left none.
TEST_F(BatchEngineTest, MarksABatchWithoutMarksWhereItsQueuesEndNow) {
  BeginWithRecords(30);
  ASSERT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
  ASSERT_TRUE(ledger_->MarkComplete(number_, clock_.Now()).ok());
  ASSERT_TRUE(ledger_->Reopen(number_).ok());
  for (const queue::QueueId& id : inputs_) PutForeign(id);
  ASSERT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
  const std::vector<ledger::PutMark> marks = ledger_->Get(number_)->put_marks;
  ASSERT_EQ(marks.size(), inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    EXPECT_EQ(marks[i].end, queues_->Extent(inputs_[i])->next);
    EXPECT_EQ(marks[i].incarnation, queues_->Extent(inputs_[i])->incarnation);
  }
  EXPECT_EQ(LoseMessages(), 3);
  ASSERT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
  EXPECT_EQ(LoseMessages(), 0) << "messages of before the mark are left";
}

TEST_F(BatchEngineTest, GivesUpARunWhoseItemsVanishAgainAndAgain) {
  BeginWithRecords(10);
  const auto ended = Run([&] {
    // Pauses of 1, 2, 4, 8 and 16 intervals follow the refills.
    for (const int pause : {1, 1, 2, 4, 8}) {
      EXPECT_EQ(LoseMessages(), 1);
      for (int i = 0; i < pause; ++i) {
        EXPECT_EQ(LoseMessages(), 0) << "the pause is not over";
        PassInterval();
      }
    }
    EXPECT_EQ(LoseMessages(), 1);
    clock_.Advance(kInterval);
  });
  EXPECT_TRUE(absl::IsDataLoss(ended.status())) << ended.status();
  EXPECT_THAT(ended.status().message(), HasSubstr("1 are missing after 5 times"));
}

TEST_F(BatchEngineTest, PutsItemsAgainWhileTheirBatchMakesProgress) {
  BeginWithRecords(100);
  const auto ended = Run([&] {
    for (uint64_t item = 0; item < 10; ++item) {
      EXPECT_EQ(LoseMessages(), static_cast<int>(10 - item));
      Count({item});
      if (item < 9) PassInterval();
    }
  });
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(ledger_->Get(number_)->refills, 9u);
}

TEST_F(BatchEngineTest, GoesOnToPutItemsAgainThatVanishedAgainAndAgain) {
  BeginWithRecords(10);
  for (int refill = 0; refill < 6; ++refill) {
    ASSERT_TRUE(engine_->Step({}).ok());
    EXPECT_EQ(LoseMessages(), 1);
    clock_.Advance(absl::Hours(1));
  }
  EXPECT_TRUE(absl::IsDataLoss(engine_->Step({}).status()));
  EXPECT_EQ(LoseMessages(), 1) << "it is put again all the same";
  EXPECT_TRUE(absl::IsDataLoss(engine_->Step({}).status()));
  EXPECT_EQ(LoseMessages(), 0) << "but not at once";
  Count({0});
  ASSERT_EQ(*engine_->Step({}), StepResult::kDone);
}

TEST_F(BatchEngineTest, SuspendsABatchThatNoWorkerFitsUntilOneDoes) {
  BeginWithRecords(30);
  ASSERT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
  no_worker_fits_ = true;
  ASSERT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
  EXPECT_FALSE(suspended_.Contains(number_)) << "the worker may come back soon";
  clock_.Advance(absl::Minutes(1));
  const absl::Status waits = engine_->Step({}).status();
  EXPECT_TRUE(absl::IsUnavailable(waits)) << waits;
  EXPECT_THAT(waits.message(), HasSubstr("no processor has handler version '1' of job 'sum'"));
  EXPECT_TRUE(suspended_.Contains(number_));
  // Workers take its items out of the queue.
  EXPECT_EQ(LoseMessages(), 3);
  EXPECT_TRUE(absl::IsUnavailable(engine_->Step({}).status()));
  EXPECT_EQ(LoseMessages(), 0) << "they would only be taken out again";
  no_worker_fits_ = false;
  ASSERT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
  EXPECT_FALSE(suspended_.Contains(number_));
  EXPECT_EQ(LoseMessages(), 3);
}

TEST_F(BatchEngineTest, SuspendsNoBatchWhoseWorkersComeBackSoon) {
  BeginWithRecords(30);
  ASSERT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
  for (int i = 0; i < 3; ++i) {
    no_worker_fits_ = true;
    ASSERT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
    clock_.Advance(absl::Seconds(50));
    ASSERT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
    no_worker_fits_ = false;
    ASSERT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
  }
  EXPECT_FALSE(suspended_.Contains(number_));
}

TEST_F(BatchEngineTest, LeavesNoSuspensionOfACancelledBatchBehind) {
  BeginWithRecords(30);
  ASSERT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
  ASSERT_TRUE(suspended_.Add(number_).ok());
  ASSERT_TRUE(ledger_->Cancel(number_, clock_.Now(), "done with").ok());
  ASSERT_EQ(*engine_->Step({}), StepResult::kDone);
  EXPECT_FALSE(suspended_.Contains(number_));
}

}  // namespace
}  // namespace muster::initiator::batch
