// SPDX-License-Identifier: Apache-2.0

// The fixture for tests of BatchEngine and RunToEnd: a data directory; the test counts the items
// instead of a controller, and takes messages away as a broken store would.
#pragma once

#include <fstream>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/item/queue_names.h"
#include "muster/item/suspended_batches.h"
#include "muster/job/job_file.h"
#include "muster/os/temp_dir.h"
#include "muster/queue/queue_store.h"
#include "muster/queue/store_decorators.h"
#include "muster/report/report_client.h"
#include "muster/report/report_store.h"
#include "muster/sync/unique_id_generator.h"
#include "services/initiator/batch/engine.h"
#include "services/initiator/batch/job_queues.h"
#include "services/initiator/batch/opener.h"
#include "services/initiator/batch/run_to_end.h"
#include "services/initiator/batch/source.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::initiator::batch {

inline constexpr absl::Duration kInterval = absl::Seconds(1);

inline constexpr char kSumJob[] = R"(
name: sum
input: {format: csv, columns: {n: n}}
item: {transactions: 10}
handler: {linked: sum}
queue: {partitions: 2}
groups:
  - {name: by_key, keys: [key], measures: {lines: int}}
)";

// Counts the scans of queues, and calls `before_scan` before each.
class ScanWatch final : public queue::InterceptedStore {
 public:
  using InterceptedStore::InterceptedStore;

  absl::StatusOr<std::vector<queue::StoredMessage>> Scan(const queue::QueueId& queue, uint64_t from,
                                                         int max) override {
    // From the beginning: a new scan.
    if (from == 0) ++scans;
    if (before_scan) before_scan(queue, from);
    return InterceptedStore::Scan(queue, from, page > 0 ? page : max);
  }

  int scans = 0;  // of queues, each from its beginning
  int page = 0;   // messages of an answer at most; 0: as many as are asked for
  std::function<void(const queue::QueueId& queue, uint64_t from)> before_scan;
};

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
    report_client_ =
        std::make_unique<report::LocalReportClient>(report_.get(), [this](uint64_t batch) {
          CompleteIfCounted(batch);
          return absl::OkStatus();
        });
    watch_ = std::make_unique<ScanWatch>(queues_.get());
    job_queues_ = std::make_unique<JobQueues>(watch_.get(), "acme", &clock_);
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
    dependencies.stores = {watch_.get(), bus_.get(), ledger_.get(), blobs_.get(), &clock_};
    dependencies.options.account = "acme";
    dependencies.report_client = report_client_.get();
    dependencies.suspended = &suspended_;
    dependencies.no_worker_fits = [this](const ledger::Batch&) { return no_worker_fits_; };
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
    if (!counted.ok() || recorded->state != ledger::BatchState::kSealed) return;
    if (static_cast<uint64_t>(counted->items()) < recorded->items) return;
    ASSERT_TRUE(ledger_->MarkComplete(batch, clock_.Now()).ok());
    wakeup_.Notify();
  }

  // Takes the messages of the batch out of the input queues; returns their number.
  int LoseMessages() {
    int lost = 0;
    for (const queue::QueueId& id : inputs_) {
      for (;;) {
        const auto messages = *queues_->Receive(id, {32});
        if (messages.empty()) break;
        std::vector<queue::Receipt> receipts;
        for (const queue::Message& message : messages) {
          if (message.body != kForeign) receipts.push_back(message.receipt);
        }
        EXPECT_TRUE(queues_->Delete(id, receipts).ok());
        lost += static_cast<int>(receipts.size());
      }
    }
    return lost;
  }

  // Puts a message of another batch.
  void PutForeign(const queue::QueueId& id) {
    std::vector<queue::NewMessage> foreign(1);
    foreign.front().body = kForeign;
    const auto put = queues_->Put(id, foreign);
    ASSERT_TRUE(put.ok()) << put.status();
  }

  // Another batch of the job trickles on: it always has a message in each queue.
  void TrickleOn() {
    for (const queue::QueueId& id : inputs_) PutForeign(id);
    PutForeign(output_);
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
  static constexpr char kForeign[] = "foreign";
  const std::vector<queue::QueueId> inputs_ = item::InputQueues("acme", "sum", 2);
  const queue::QueueId output_ = item::OutputQueue("acme", "sum", 0);
  const std::string input_ = dir_ / "in.csv";
  base::FakeClock clock_;
  base::LogCapture log_;
  job::JobDefinition job_ = job::ParseJob(kSumJob, "job.yaml").value();
  std::unique_ptr<queue::QueueStore> queues_;
  std::unique_ptr<ScanWatch> watch_;  // before queues_, for the engine
  std::unique_ptr<ledger::BatchLedger> ledger_;
  std::unique_ptr<sync::OptimisticSyncStore> sync_;
  std::unique_ptr<blob::BlobStore> blobs_;
  std::unique_ptr<bus::TriggerBus> bus_;
  std::unique_ptr<report::ReportStore> report_;
  std::unique_ptr<report::LocalReportClient> report_client_;
  sync::testing::MemorySyncStore suspensions_;
  item::SuspendedBatches suspended_{&suspensions_};
  bool no_worker_fits_ = false;
  std::unique_ptr<JobQueues> job_queues_;
  Wakeup wakeup_;
  std::stop_source stop_;
  uint64_t number_ = 0;
  std::unique_ptr<BatchEngine> engine_;
};

}  // namespace muster::initiator::batch
