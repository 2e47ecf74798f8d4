// BatchEngine and RunToEnd. What becomes of lost items is in engine_loss_test.cc.
#include "services/initiator/batch/engine.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <stop_token>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/item/work_item_codec.h"
#include "muster/report/report_proto.h"
#include "services/initiator/batch/remover.h"
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

// The content of one upload, which a test may change as a power cut does.
class OneUpload final : public ContentStore {
 public:
  bool Stores(const ledger::Batch&) const override { return true; }
  std::string PathOf(uint64_t batch) const override {
    return absl::StrCat("/data/uploads/", batch);
  }
  absl::StatusOr<std::shared_ptr<const input::ByteSource>> OpenContent(uint64_t) override {
    return SourceOf(content);
  }
  std::optional<uint64_t> DurableBytes(uint64_t) override { return content.size(); }
  bool IsSealed(uint64_t) const override { return true; }
  void Refuse(uint64_t, const absl::Status&) override {}
  absl::Status Delete(uint64_t) override { return absl::OkStatus(); }

  std::string content;
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
  clock_.Advance(absl::Minutes(1));
  EXPECT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
}

TEST_F(SealedContentTest, IsNotReadForABatchThatIsSplitAndPut) {
  RecordSeal();
  ASSERT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
  upload_.content = "n\n";
  Restart();
  EXPECT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
}

TEST_F(SealedContentTest, OfAnOlderMusterIsTakenAsItIs) {
  ASSERT_EQ(*engine_->Step({}), StepResult::kNeedsResults);
  EXPECT_EQ(ledger_->Get(number_)->transactions, 3u);
}

// Two items that are too large for a message.
class BlobsTest : public BatchEngineTest {
 protected:
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

  BatchRemover Remover() {
    return BatchRemover({ledger_.get(), report_client_.get(), blobs_.get(), nullptr, &clock_});
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
  BatchRemover remover = Remover();
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

}  // namespace
}  // namespace muster::initiator::batch
