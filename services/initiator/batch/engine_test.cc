// SPDX-License-Identifier: Apache-2.0

// BatchEngine and RunToEnd. What becomes of lost items is in engine_loss_test.cc.
#include "services/initiator/batch/engine.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <stop_token>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/item/work_item_codec.h"
#include "muster/report/report_proto.h"
#include "services/initiator/retention/remover.h"
#include "tests/fakes/initiator/batch_engine_fixture.h"

namespace muster::initiator::batch {
namespace {

using ledger::BatchState;
using ::testing::HasSubstr;

TEST_F(BatchEngineTest, RunsABatchUntilItsResultsAreCounted) {
  BeginWithRecords(25);
  const auto ended = Run([&] {
    EXPECT_EQ(ledger_->Get(number_)->state, BatchState::kSealed);
    EXPECT_EQ(engine_->split_progress()->transactions_enqueued, 25u);
    Count({0, 1, 2});
  });
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(*ended, StepResult::kDone);
}

TEST_F(BatchEngineTest, ANewProcessKnowsHowFarASealedBatchIs) {
  BeginWithRecords(25);
  ASSERT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
  engine_ = std::make_unique<BatchEngine>(number_, Dependencies(), job_queues_.get());
  EXPECT_EQ(engine_->split_progress(), std::nullopt);
  ASSERT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
  EXPECT_EQ(engine_->split_progress()->transactions_enqueued, 25u);
}

// The process that cancelled it died between report and ledger.
TEST_F(BatchEngineTest, FollowsTheReportThatHasItsBatchAsCancelled) {
  BeginWithRecords(25);
  ASSERT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
  const report::Cancellation cancellation{clock_.Now() - absl::Seconds(3), "sent twice"};
  ASSERT_TRUE(report_->CancelBatch(number_, cancellation).ok());
  ASSERT_EQ(*engine_->Step({}), StepResult::kCancelled);
  const auto batch = ledger_->Get(number_);
  EXPECT_EQ(batch->state, BatchState::kCancelled);
  EXPECT_EQ(batch->cancel_reason, "sent twice");
  EXPECT_EQ(batch->completed, cancellation.when);
  EXPECT_EQ(*engine_->Step({}), StepResult::kDone);
}

TEST_F(BatchEngineTest, ARunEndsWithAnErrorWhenTheReportHasItsBatchAsCancelled) {
  BeginWithRecords(25);
  const auto ended = Run([&] {
    EXPECT_TRUE(report_->CancelBatch(number_, {clock_.Now(), "sent twice"}).ok());
    wakeup_.Notify();
  });
  EXPECT_TRUE(absl::IsFailedPrecondition(ended.status())) << ended.status();
  EXPECT_EQ(ledger_->Get(number_)->state, BatchState::kCancelled);
}

// The store that counts numbers has lost its last writes, and two initiators drew the same number.
TEST_F(BatchEngineTest, EndsABatchWhoseNumberIsAnotherInitiators) {
  std::ofstream(input_) << "n\n1\n";
  const auto source = BatchSource::Open(input_, job_.input).value();
  ledger::Batch batch;
  batch.number = number_ = 101;
  batch.request_id = "req";
  batch.job = "sum";
  batch.job_revision = job_.revision;
  batch.job_definition = kSumJob;
  batch.source_path = input_;
  batch.source_header = source->header_fingerprint();
  batch.source_size = source->size();
  batch.owner = "directory b";
  ASSERT_TRUE(ledger_->Create(batch).ok());
  report::BatchShape other = report::ShapeOf(number_, job_.schema());
  other.owner = "directory a";
  ASSERT_TRUE(report_->RegisterBatch(other).ok());
  engine_ = std::make_unique<BatchEngine>(number_, Dependencies(), job_queues_.get());
  EXPECT_EQ(*engine_->Step({}), StepResult::kDisowned);
  const auto ended = ledger_->Get(number_);
  EXPECT_EQ(ended->state, BatchState::kCancelled);
  EXPECT_TRUE(ended->disowned);
  EXPECT_THAT(ended->cancel_reason, HasSubstr("submit it again"));
  EXPECT_EQ(*engine_->Step({}), StepResult::kDone);
}

TEST_F(BatchEngineTest, EndsWithTheErrorOfItsController) {
  BeginWithRecords(10);
  const auto ended = Run([&] { wakeup_.Fail(absl::InternalError("the report is full")); });
  EXPECT_EQ(ended.status(), absl::InternalError("the report is full"));
}

TEST_F(BatchEngineTest, EndsWhenItIsStoppedAndGoesOnLater) {
  BeginWithRecords(10);
  EXPECT_TRUE(absl::IsCancelled(Run([&] { stop_.request_stop(); }).status()));
  stop_ = std::stop_source();
  ASSERT_TRUE(Run([&] { Count({0}); }).ok());
}

TEST_F(BatchEngineTest, ReportsContentThatTheJobCannotReadAsRefused) {
  BeginWithRecords(10);
  std::ofstream(input_) << "m\n1\n";  // no column n
  const auto ended = RunToEnd(engine_.get(), &wakeup_, &clock_, kInterval, {});
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(*ended, StepResult::kRefused);
  EXPECT_THAT(engine_->refusal().message(), HasSubstr("column"));
}

TEST_F(BatchEngineTest, RefusesContentOfAnotherKindBeforeAnItemIsMade) {
  BeginWithRecords(10);
  std::ofstream(input_) << "n\n\xE9\n\xE9\n\xE9\n";
  EXPECT_EQ(RunToEnd(engine_.get(), &wakeup_, &clock_, kInterval, {}).value(),
            StepResult::kRefused);
  EXPECT_THAT(engine_->refusal().message(), HasSubstr("iconv -f LATIN1"));
  EXPECT_EQ(ledger_->Get(number_)->items, 0u);
}

// An older muster may have begun a batch of it.
TEST_F(BatchEngineTest, GoesOnWithContentOfAnotherKindWhereItemsWereMade) {
  Begin("n\n\xE9\n\xE9\n\xE9\n");
  ledger::ItemBoundary item{2, 2, 2, 1, base::Fingerprint("\xE9\n"), false};
  ASSERT_TRUE(ledger_->Append(number_, 0, {item}).ok());
  ASSERT_TRUE(Run([&] { Count({0, 1}); }).ok());
}

// The content of one upload, which a test may change as a power cut does.
class OneUpload final : public content::ContentStore {
 public:
  bool Stores(const ledger::Batch&) const override { return true; }
  std::string PathOf(uint64_t batch) const override {
    return absl::StrCat("/data/uploads/", batch);
  }
  absl::StatusOr<std::shared_ptr<const input::ByteSource>> OpenContent(uint64_t) override {
    on_open();
    return std::make_shared<Changing>(&content, &becomes);
  }
  std::optional<uint64_t> DurableBytes(uint64_t) override { return content.size(); }
  bool IsSealed(uint64_t) const override { return is_there; }
  void Refuse(uint64_t, const absl::Status&) override {}
  absl::Status Delete(uint64_t) override { return absl::OkStatus(); }

  std::string content;
  std::string becomes;  // once all of it has been read; empty: it stays as it is
  bool is_there = true;
  std::function<void()> on_open = [] {};

 private:
  class Changing final : public input::ByteSource {
   public:
    Changing(std::string* content, const std::string* becomes)
        : content_(content), becomes_(becomes), size_(content->size()) {}
    uint64_t size() const override { return size_; }
    absl::StatusOr<size_t> Read(uint64_t offset, char* out, size_t bytes) const override {
      const auto got = input::TextSource(*content_).Read(offset, out, bytes);
      if (!becomes_->empty() && offset + *got == size_) *content_ = *becomes_;
      return got;
    }

   private:
    std::string* const content_;
    const std::string* const becomes_;
    const uint64_t size_;
  };
};

class SealedContentTest : public BatchEngineTest {
 protected:
  static constexpr char kContent[] = "n\n1\n2\n3\n";

  SealedContentTest() {
    upload_.content = kContent;
    ledger::Batch batch;
    batch.number = number_ = 7;
    batch.request_id = "req";
    batch.job = job_.name;
    batch.job_revision = job_.revision;
    batch.job_definition = job_.text;
    batch.handler_version = "1";
    batch.source_path = "/data/uploads/7";
    batch.created = clock_.Now();
    EXPECT_TRUE(ledger_->Create(batch).ok());
    Restart();
  }

  void Restart() {
    EngineDependencies dependencies = Dependencies();
    dependencies.content = &upload_;
    engine_ = std::make_unique<BatchEngine>(number_, dependencies, job_queues_.get());
  }

  void RecordSeal() {
    const std::string content = kContent;
    ASSERT_TRUE(
        ledger_->RecordSealedContent(number_, {content.size(), base::Fingerprint(content)}).ok());
  }

  void ExpectNothingIsSplit(const absl::Status& step, const std::string& why) {
    EXPECT_TRUE(absl::IsDataLoss(step)) << step;
    EXPECT_THAT(step.message(), HasSubstr("batch 7 is not what its submitter sealed: " + why));
    EXPECT_THAT(step.message(), HasSubstr("/data/uploads/7"));
    EXPECT_EQ(ledger_->Get(number_)->state, BatchState::kOpen);
    EXPECT_EQ(ledger_->Get(number_)->items, 0u);
  }

  OneUpload upload_;
};

TEST_F(SealedContentTest, IsSplitWhenItIsWhatWasSealed) {
  RecordSeal();
  ASSERT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
  EXPECT_EQ(ledger_->Get(number_)->transactions, 3u);
}

TEST_F(SealedContentTest, IsNotSplitWhenItHasBecomeShorter) {
  RecordSeal();
  // The last one has no header any more, which no seal would let a job refuse.
  for (const std::string left : {"n\n1\n2\n", "n\n", ""}) {
    upload_.content = left;
    Restart();
    ExpectNothingIsSplit(engine_->Step({}).status(),
                         absl::StrCat("it has ", left.size(), " bytes, and was sealed with 8"));
  }
}

TEST_F(SealedContentTest, IsNotSplitWhenItsBytesDiffer) {
  RecordSeal();
  upload_.content = "n\n1\n2\n4\n";
  ExpectNothingIsSplit(engine_->Step({}).status(), "its bytes are not those that were sealed");
}

TEST_F(SealedContentTest, IsLookedAtAgainOnceInAWhileAndSplitWhenItIsBack) {
  RecordSeal();
  upload_.content.clear();
  const absl::Status damaged = engine_->Step({}).status();
  upload_.content = kContent;
  EXPECT_EQ(engine_->Step({}).status(), damaged) << "reading it each time would cost too much";
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
}

TEST_F(SealedContentTest, IsNotReadForABatchThatIsSplitAndPut) {
  RecordSeal();
  ASSERT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
  upload_.content = "n\n";
  Restart();
  EXPECT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
}

// The short upload of a client was sealed while the engine made the queues, and changed on the
// disk.
TEST_F(SealedContentTest, IsNotSplitWhenItWasSealedAfterTheStepBegan) {
  upload_.on_open = [this] { RecordSeal(); };
  upload_.content = "n\n1\n2\n4\n";
  ExpectNothingIsSplit(engine_->Step({}).status(), "its bytes are not those that were sealed");
}

TEST_F(SealedContentTest, IsNotSplitWhenItChangesAfterItWasCompared) {
  RecordSeal();
  upload_.becomes = "n\n1\n2\n4\n";
  const absl::Status changed = engine_->Step({}).status();
  EXPECT_TRUE(absl::IsDataLoss(changed)) << changed;
  EXPECT_THAT(changed.message(), HasSubstr("/data/uploads/7 has changed: its bytes 0 to 8"));
  EXPECT_EQ(ledger_->Get(number_)->items, 0u);
  upload_.becomes.clear();
  upload_.content = kContent;
  EXPECT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
  EXPECT_EQ(ledger_->Get(number_)->transactions, 3u);
}

// The store had begun an empty file in its place, which stayed in use when the content was back.
TEST_F(SealedContentTest, IsAwaitedWhenItIsNotThere) {
  RecordSeal();
  upload_.is_there = false;
  const absl::Status missing = engine_->Step({}).status();
  EXPECT_TRUE(absl::IsDataLoss(missing)) << missing;
  EXPECT_THAT(missing.message(), HasSubstr("is not there. Put /data/uploads/7 back"));
  upload_.is_there = true;
  EXPECT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
}

TEST_F(SealedContentTest, OfAnOlderMusterIsTakenAsItIs) {
  ASSERT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
  EXPECT_EQ(ledger_->Get(number_)->transactions, 3u);
}

// A batch of one item by reference, whose content can be damaged and mended.
class DamagedContentTest : public BatchEngineTest {
 protected:
  DamagedContentTest() {
    Begin(absl::StrCat("n\n", good_));
    EngineDependencies dependencies = Dependencies();
    dependencies.item_content = &content_;
    dependencies.damaged = &damaged_;
    engine_ = std::make_unique<BatchEngine>(number_, dependencies, job_queues_.get());
    EXPECT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
  }

  // As a worker reads it.
  absl::Status Read() {
    const ledger::ItemBoundary item = ledger_->Items(number_, 0, 1)->front();
    std::string slice;
    return content_.Read({number_, 0, "", item.length, item.content}, &slice);
  }

  const std::string good_ = std::string(5000, '1') + "\n";
  DamagedItems damaged_;
  content::LedgerContent content_{
      {.ledger = ledger_.get(),
       .blobs = blobs_.get(),
       .open = [this](uint64_t batch) { return OpenUsersContent(*ledger_->Get(batch)); },
       .on_damage = [this](const content::ItemReference& item,
                           const absl::Status&) { damaged_.Note(item); }}};
};

TEST_F(DamagedContentTest, StopsTheBatchUntilItIsBack) {
  EXPECT_TRUE(Read().ok());
  EXPECT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
  std::ofstream(input_) << "n\n" << std::string(5000, '2') << "\n";
  EXPECT_TRUE(absl::IsDataLoss(Read()));
  const absl::Status stopped = engine_->Step({}).status();
  EXPECT_TRUE(absl::IsDataLoss(stopped)) << stopped;
  EXPECT_THAT(stopped.message(),
              HasSubstr("the content of batch 1 is damaged: item 1/0 at byte 2"));
  EXPECT_THAT(stopped.message(), HasSubstr("cancel the batch and submit it again"));
  EXPECT_TRUE(suspended_.Contains(number_)) << "workers take its items out of the queue";
  EXPECT_EQ(engine_->Step({}).status(), stopped) << "until it is mended";
  EXPECT_EQ(LoseMessages(), 1);
  std::ofstream(input_) << "n\n" << good_;
  EXPECT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
  EXPECT_FALSE(suspended_.Contains(number_));
  EXPECT_EQ(LoseMessages(), 1) << "it was put again";
}

TEST_F(DamagedContentTest, IsForgottenWithItsBatch) {
  std::ofstream(input_) << "n\n" << std::string(5000, '2') << "\n";
  EXPECT_TRUE(absl::IsDataLoss(Read()));
  ASSERT_TRUE(ledger_->Cancel(number_, clock_.Now(), "unwanted").ok());
  EXPECT_EQ(*engine_->Step({}), StepResult::kDone);
  EXPECT_FALSE(damaged_.Find(number_).has_value());
}

// Two items that are too large for a message, of a job that carries content inline.
class BlobsTest : public BatchEngineTest {
 protected:
  BlobsTest() {
    std::string job = kSumJob;
    job.replace(job.find("partitions: 2"), 13, "partitions: 2, content: inline");
    job_ = *job::ParseJob(job, "sum");
  }

  void BeginLarge() {
    std::mt19937 random(1);  // noise that does not compress, the same every time
    std::string noise(700'000, '\0');
    for (char& c : noise) c = static_cast<char>('-' + random() % 80);
    Begin(absl::StrCat("n\n", noise, "\n", noise, "\n"));
  }

  // Up to the instant at which the batch is over.
  void CompleteWithOneDeadItem() {
    BeginLarge();
    ASSERT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
    ASSERT_EQ(Blobs(), 2);
    Count({0}, report::ItemOutcome::kDeadLettered);
    Count({1});
    ASSERT_EQ(ledger_->Get(number_)->state, ledger::BatchState::kComplete);
  }

  int Blobs() const {
    int blobs = 0;
    for (const auto& entry : std::filesystem::directory_iterator(dir_ / "blobs")) {
      if (entry.path().extension() == ".blob") ++blobs;
    }
    return blobs;
  }

  retention::BatchRemover Remover() {
    return retention::BatchRemover(
        {ledger_.get(), report_client_.get(), blobs_.get(), nullptr, &clock_});
  }
};

TEST_F(BlobsTest, GoWhenEachItemIsCounted) {
  BeginLarge();
  ASSERT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
  Count({0, 1});
  EXPECT_EQ(*engine_->Step({}), StepResult::kDone);
  EXPECT_EQ(Blobs(), 0);
}

TEST_F(BlobsTest, StayForItemsThatARedriveNeedsUntilTheItemsGo) {
  CompleteWithOneDeadItem();
  EXPECT_EQ(*engine_->Step({}), StepResult::kDone);
  EXPECT_EQ(Blobs(), 1);
  EXPECT_TRUE(blobs_->Get(item::BlobName(number_, 0)).ok());
  clock_.Advance(ledger::Retention().items);
  retention::BatchRemover remover = Remover();
  EXPECT_EQ(*remover.RemoveDue(10), 1u) << "the content";
  EXPECT_EQ(*remover.RemoveDue(10), 1u) << "the items";
  EXPECT_EQ(Blobs(), 0);
}

TEST_F(BlobsTest, GoWithABatchThatIsDeleted) {
  CompleteWithOneDeadItem();
  ASSERT_TRUE(Remover().Delete(number_).ok());
  EXPECT_EQ(Blobs(), 0);
}

TEST_F(BlobsTest, GoWithoutTheEngineThatDiedWhenItsBatchWasComplete) {
  CompleteWithOneDeadItem();
  engine_.reset();
  EXPECT_EQ(*Remover().RemoveDue(10), 0u) << "an engine that lives has its time";
  EXPECT_EQ(Blobs(), 2);
  clock_.Advance(ledger::kBlobsGrace);
  EXPECT_EQ(*Remover().RemoveDue(10), 1u);
  EXPECT_EQ(Blobs(), 1);
  EXPECT_EQ(*Remover().RemoveDue(10), 0u) << "done once";
}

TEST_F(BlobsTest, GoAgainAfterARedrive) {
  CompleteWithOneDeadItem();
  ASSERT_EQ(*engine_->Step({}), StepResult::kDone);
  ASSERT_TRUE(ledger_->Reopen(number_).ok());
  ASSERT_TRUE(report_client_->ReopenDeadLettered(number_, {0}).ok());
  EXPECT_EQ(Blobs(), 1);
  Count({0});
  engine_.reset();
  clock_.Advance(ledger::kBlobsGrace);
  EXPECT_EQ(*Remover().RemoveDue(10), 1u);
  EXPECT_EQ(Blobs(), 0);
}

TEST_F(BlobsTest, GoWhenTheBatchIsCancelled) {
  BeginLarge();
  ASSERT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
  ASSERT_TRUE(ledger_->Cancel(number_, clock_.Now(), "unwanted").ok());
  EXPECT_EQ(*engine_->Step({}), StepResult::kDone);
  EXPECT_EQ(Blobs(), 0);
}

// A process died while it recorded the batch: it is not decided which initiator has the batch.
TEST_F(BatchEngineTest, PutsNoItemOfAnUndecidedBatchBeforeItIsDecided) {
  std::ofstream(input_) << "n\n1\n";
  ledger::Batch batch;
  batch.job = job_.name;
  batch.job_definition = kSumJob;
  batch.source_path = input_;
  batch.undecided = true;
  for (batch.number = 1; batch.number <= 2; ++batch.number) {
    batch.request_id = absl::StrCat("r", batch.number);
    ASSERT_TRUE(ledger_->Create(batch).ok());
  }
  absl::StatusOr<bool> answer = absl::UnavailableError("no server");
  EngineDependencies dependencies = Dependencies();
  dependencies.decide = [&](uint64_t number) {
    EXPECT_EQ(ledger_->Get(number)->enqueued_items, 0u);
    return answer;
  };
  BatchEngine one(1, dependencies, job_queues_.get()), two(2, dependencies, job_queues_.get());
  EXPECT_TRUE(absl::IsUnavailable(one.Step({}).status()));
  EXPECT_EQ(ledger_->Get(1)->items, 0u);
  answer = false;
  EXPECT_EQ(*two.Step({}), StepResult::kDone);
  EXPECT_EQ(ledger_->Get(2)->items, 0u);
  answer = true;
  EXPECT_EQ(*one.Step({}), StepResult::kNeedsResults);
  EXPECT_EQ(ledger_->Get(1)->enqueued_items, 1u);
}

}  // namespace
}  // namespace muster::initiator::batch
