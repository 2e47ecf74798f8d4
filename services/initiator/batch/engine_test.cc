// BatchEngine and RunToEnd, over a data directory; the test counts the items instead of a
// controller.
#include "services/initiator/batch/engine.h"

#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/item/queue_names.h"
#include "muster/item/work_item_codec.h"
#include "muster/job/job_file.h"
#include "muster/os/temp_dir.h"
#include "muster/queue/queue_store.h"
#include "muster/report/report_client.h"
#include "muster/report/report_store.h"
#include "muster/sync/unique_id_generator.h"
#include "services/initiator/batch/job_queues.h"
#include "services/initiator/batch/opener.h"
#include "services/initiator/batch/run_to_end.h"
#include "services/initiator/batch/source.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/log_capture.h"

namespace muster::initiator::batch {
namespace {

using ledger::BatchState;
using ::testing::HasSubstr;

constexpr absl::Duration kInterval = absl::Seconds(1);

constexpr char kJob[] = R"(
name: sum
input: {format: csv, columns: {n: n}}
item: {transactions: 10}
handler: {linked: sum}
queue: {partitions: 2}
groups:
  - {name: by_key, keys: [key], measures: {lines: int}}
)";

class BatchEngineTest : public ::testing::Test {
 protected:
  BatchEngineTest() {
    const backend::DataDirUrls urls(dir_.path());
    queues_ = *backend::OpenQueueStore(urls.queue, backend::Mode::kReadWrite,
                                       backend::Holders::kInProcess, base::RealClock());
    ledger_ = *backend::OpenBatchLedger(urls.ledger, backend::Mode::kReadWrite);
    sync_ = *backend::OpenSyncStore(urls.sync);
    blobs_ = *backend::OpenBlobStore(urls.blobs);
    bus_ = *backend::OpenTriggerBus("local:");
    report_ = *backend::OpenReportStore(urls.report, backend::Mode::kReadWrite, base::RealClock());
    report_client_ = std::make_unique<report::LocalReportClient>(
        report_.get(), [this](uint64_t batch) { CompleteIfCounted(batch); });
    job_queues_ = std::make_unique<JobQueues>(queues_.get(), "acme", &clock_);
  }

  // Begins a batch of this input.
  void Begin(const std::string& content) {
    std::ofstream(input_) << content;
    const auto source = BatchSource::Open(input_, job_.input).value();
    sync::UniqueIdGenerator numbers(sync_.get(), "batch", {.range_size = 1});
    BatchOpener opener(&job_, source.get(), ledger_.get(), &numbers, &clock_);
    SubmitRequest request;
    request.request_id = "req";
    request.handler_version = "1";
    const auto submission = opener.Open(request);
    ASSERT_TRUE(submission.ok()) << submission.status();
    number_ = submission->batch.number;
    engine_ = std::make_unique<BatchEngine>(number_, Dependencies(), job_queues_.get());
  }

  void BeginWithRecords(int records) {
    std::string content = "n\n";
    for (int i = 0; i < records; ++i) absl::StrAppend(&content, i, "\n");
    Begin(content);
  }

  EngineDependencies Dependencies() {
    EngineDependencies dependencies;
    dependencies.stores = {queues_.get(), bus_.get(), ledger_.get(), blobs_.get(), &clock_};
    dependencies.options.account = "acme";
    dependencies.report_client = report_client_.get();
    dependencies.dead_items = dead_items_;
    return dependencies;
  }

  report::CountedItem ItemOf(uint64_t index, report::ItemOutcome outcome) const {
    report::CountedItem item;
    item.batch = number_;
    item.index = index;
    item.outcome = outcome;
    item.transactions =
        static_cast<int64_t>(ledger_->Items(number_, index, 1)->front().transactions);
    if (outcome == report::ItemOutcome::kAggregated) item.aggregated = item.transactions;
    if (outcome == report::ItemOutcome::kDeadLettered) item.cause = "it is poison";
    item.attempts = 1;
    item.handler_version = "1";
    item.worker = "test";
    return item;
  }

  // Counts the items, and completes the batch once all are counted, as a controller does.
  void Count(const std::vector<uint64_t>& indexes,
             report::ItemOutcome outcome = report::ItemOutcome::kAggregated) {
    report::CommitRequest commit;
    commit.partition = "acme/out";
    for (const uint64_t index : indexes) commit.items.push_back(ItemOf(index, outcome));
    const auto committed = report_->Commit(commit);
    ASSERT_TRUE(committed.ok()) << committed.status();
    CompleteIfCounted(number_);
  }

  void CompleteIfCounted(uint64_t batch) {
    const auto counted = (*report_->Read())->GetProgress(batch);
    const auto recorded = ledger_->Get(batch);
    if (!counted.ok() || recorded->state != BatchState::kSealed) return;
    if (static_cast<uint64_t>(counted->items()) < recorded->items) return;
    ASSERT_TRUE(ledger_->MarkComplete(batch, clock_.Now()).ok());
    wakeup_.Notify();
  }

  // Takes all messages out of the input queues; returns their number.
  int LoseMessages() {
    int lost = 0;
    for (const queue::QueueId& id : item::InputQueues("acme", "sum", 2)) {
      for (;;) {
        const auto messages = *queues_->Receive(id, {32});
        if (messages.empty()) break;
        std::vector<queue::Receipt> receipts;
        for (const queue::Message& message : messages) receipts.push_back(message.receipt);
        EXPECT_TRUE(queues_->Delete(id, receipts).ok());
        lost += static_cast<int>(messages.size());
      }
    }
    return lost;
  }

  // Runs the batch to its end on a thread; calls `meanwhile` once the run waits for results.
  absl::StatusOr<StepResult> Run(const std::function<void()>& meanwhile) {
    absl::StatusOr<StepResult> ended = absl::UnknownError("not run");
    std::thread run(
        [&] { ended = RunToEnd(engine_.get(), &wakeup_, &clock_, kInterval, stop_.get_token()); });
    clock_.AwaitSleepers(1);
    meanwhile();
    run.join();
    return ended;
  }

  // Lets the run check for lost items, and waits for the end of the check.
  void PassInterval() {
    clock_.Advance(kInterval);
    clock_.AwaitSleepers(1);
  }

  const os::TempDir dir_;
  const std::string input_ = dir_ / "in.csv";
  base::FakeClock clock_;
  base::LogCapture log_;
  const job::JobDefinition job_ = job::ParseJob(kJob, "job.yaml").value();
  std::unique_ptr<queue::QueueStore> queues_;
  std::unique_ptr<ledger::BatchLedger> ledger_;
  std::unique_ptr<sync::OptimisticSyncStore> sync_;
  std::unique_ptr<blob::BlobStore> blobs_;
  std::unique_ptr<bus::TriggerBus> bus_;
  std::unique_ptr<report::ReportStore> report_;
  std::unique_ptr<report::LocalReportClient> report_client_;
  std::function<absl::StatusOr<absl::flat_hash_set<uint64_t>>(uint64_t)> dead_items_;
  std::unique_ptr<JobQueues> job_queues_;
  Wakeup wakeup_;
  std::stop_source stop_;
  uint64_t number_ = 0;
  std::unique_ptr<BatchEngine> engine_;
};

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

TEST_F(BatchEngineTest, GivesUpWhenItemsVanishAgainAndAgain) {
  BeginWithRecords(10);
  const auto ended = Run([&] {
    for (int refill = 0; refill < 5; ++refill) {
      EXPECT_EQ(LoseMessages(), 1);
      PassInterval();
    }
    EXPECT_EQ(LoseMessages(), 1);
    clock_.Advance(kInterval);
  });
  EXPECT_TRUE(absl::IsDataLoss(ended.status())) << ended.status();
  EXPECT_THAT(ended.status().message(), HasSubstr("vanish from the queue"));
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

// Two items that are too large for a message; the first is dead-lettered.
class BlobsTest : public BatchEngineTest {
 protected:
  void RunWithOneDeadItem() {
    std::mt19937 random(1);  // noise that does not compress, the same every time
    std::string noise(700'000, '\0');
    for (char& c : noise) c = static_cast<char>('-' + random() % 80);
    Begin(absl::StrCat("n\n", noise, "\n", noise, "\n"));
    const auto ended = Run([&] {
      Count({0}, report::ItemOutcome::kDeadLettered);
      Count({1});
    });
    ASSERT_TRUE(ended.ok()) << ended.status();
  }

  bool HasBlob(uint32_t index) const { return blobs_->Get(item::BlobName(number_, index)).ok(); }
};

TEST_F(BlobsTest, StayForItemsThatARedriveNeeds) {
  dead_items_ = [](uint64_t) { return absl::flat_hash_set<uint64_t>{0}; };
  RunWithOneDeadItem();
  EXPECT_TRUE(HasBlob(0));
  EXPECT_FALSE(HasBlob(1));
}

TEST_F(BlobsTest, AllStayWhenItIsNotKnownWhichItemsAreDead) {
  RunWithOneDeadItem();
  EXPECT_TRUE(HasBlob(0));
  EXPECT_TRUE(HasBlob(1));
}

}  // namespace
}  // namespace muster::initiator::batch
