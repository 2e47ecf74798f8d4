// SPDX-License-Identifier: Apache-2.0

// One batch through an initiator, two processors and a controller that share only a NATS server, a
// ledger and a report: its totals equal a direct sum, also if the server fails meanwhile.
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/base/clock.h"
#include "muster/base/decimal.h"
#include "muster/base/mutex.h"
#include "muster/handler/handler.h"
#include "muster/item/queue_names.h"
#include "muster/job/job_file.h"
#include "muster/os/temp_dir.h"
#include "muster/sync/unique_id_generator.h"
#include "services/controller/controller.h"
#include "services/initiator/batch/enqueuer.h"
#include "services/initiator/batch/job_queues.h"
#include "services/initiator/batch/opener.h"
#include "services/processor/processor.h"
#include "tests/fakes/nats/nats_server.h"

namespace muster {
namespace {

constexpr int kLines = 6000;
constexpr int kKeys = 7;
constexpr int kItemLines = 20;  // as the job says
constexpr char kAccount[] = "acme";
constexpr char kJob[] = R"(
name: count
input: {format: lines}
item: {transactions: 20}
handler: {linked: count}
queue: {partitions: 2}
groups:
  - {name: by_key, keys: [key], measures: {lines: int}}
)";

// Each line counts under its first word.
class CountHandler final : public handler::Handler {
 public:
  explicit CountHandler(std::function<void()> on_item) : on_item_(std::move(on_item)) {}

  handler::Outcome Process(const handler::WorkItem& item, handler::Results& results) override {
    for (const handler::Transaction& line : item.transactions()) {
      const absl::string_view text = line.fields()[0];
      results.Count(
          line,
          {{handler::Group{0}, {text.substr(0, text.find(' '))}, {base::Decimal::FromInt(1)}}});
    }
    on_item_();
    return handler::Outcome::Ok();
  }

 private:
  const std::function<void()> on_item_;
};

// A process's stores and buses on the server.
struct Process {
  explicit Process(const std::string& url) {
    queues = backends
                 .OpenQueueStore(url, backend::Mode::kReadWrite, backend::Holders::kElsewhere,
                                 base::RealClock())
                 .value();
    bus = backends.OpenTriggerBus(url).value();
    blobs = backends.OpenBlobStore(url).value();
    sync = backends.OpenSyncStore(url).value();
  }

  backend::Backends backends{{.lease = absl::Seconds(1)}};
  std::unique_ptr<queue::QueueStore> queues;
  std::unique_ptr<bus::TriggerBus> bus;
  std::unique_ptr<blob::BlobStore> blobs;
  std::unique_ptr<sync::OptimisticSyncStore> sync;
};

class RolesOverJetStreamTest : public ::testing::TestWithParam<std::string> {
 protected:
  RolesOverJetStreamTest() {
    std::ofstream input(input_);
    for (int i = 0; i < kLines; ++i) input << "key" << i % kKeys << " line " << i << "\n";
  }

  void StartInitiator() {
    ledger_ = backend::OpenBatchLedger(urls_.ledger, backend::Mode::kReadWrite).value();
    source_ = initiator::batch::BatchSource::Open(input_, job_.input).value();
    numbers_ = std::make_unique<sync::UniqueIdGenerator>(submitting_.sync.get(), "ids/batch",
                                                         sync::UniqueIdOptions{.range_size = 1});
    initiator_ = std::make_unique<initiator::batch::BatchEnqueuer>(
        &job_, source_.get(),
        initiator::batch::Dependencies{submitting_.queues.get(), submitting_.bus.get(),
                                       ledger_.get(), submitting_.blobs.get(), base::RealClock()},
        initiator::batch::Options{.account = kAccount});
  }

  void StartController() {
    report_ = backend::OpenReportStore(urls_.report, backend::Mode::kReadWrite, base::RealClock())
                  .value();
    controller::Events events;
    events.on_progress = [this](const report::Progress&) {
      if (on_progress_) on_progress_();
    };
    events.on_complete = [this](uint64_t) { End(absl::OkStatus()); };
    events.on_error = [this](const absl::Status& status) { End(status); };
    controller::Options options;
    options.partitions = {item::OutputQueue(kAccount, job_.name, 0)};
    options.visibility = absl::Seconds(1);
    options.safety_check_interval = absl::Seconds(1);
    controller_ =
        controller::Controller::Create(options, std::move(events),
                                       {counting_.queues.get(), counting_.bus.get(), ledger_.get(),
                                        report_.get(), counting_.blobs.get(), base::RealClock()})
            .value();
    ASSERT_TRUE(controller_->Start().ok());
  }

  std::unique_ptr<processor::Processor> StartProcessor(Process& process, const char* instance) {
    processor::Options options;
    options.account = kAccount;
    options.instance = instance;
    options.threads = 2;
    options.safety_check_interval = absl::Milliseconds(500);
    auto processor =
        processor::Processor::Create(
            &job_,
            [this](const handler::JobSchema&) -> absl::StatusOr<std::unique_ptr<handler::Handler>> {
              return std::make_unique<CountHandler>([this] {
                if (on_item_) on_item_();
              });
            },
            "1", {process.queues.get(), process.bus.get(), process.blobs.get(), base::RealClock()},
            options)
            .value();
    EXPECT_TRUE(processor->Start().ok());
    return processor;
  }

  void End(absl::Status how) {
    base::MutexLock lock(&mu_);
    ended_ = std::move(how);
    changed_.NotifyAll();
  }

  absl::Status AwaitEnd() {
    base::MutexLock lock(&mu_);
    while (!ended_.has_value()) changed_.Wait(&mu_);
    return *ended_;
  }

  // Submits the input and waits until the batch is complete.
  void Run() {
    StartInitiator();
    ASSERT_TRUE(initiator::batch::CreateQueues(submitting_.queues.get(), kAccount, job_).ok());
    initiator::batch::SubmitRequest request;
    request.request_id = "once";
    request.handler_version = "1";
    const auto submitted = initiator::batch::BatchOpener(&job_, source_.get(), ledger_.get(),
                                                         numbers_.get(), base::RealClock())
                               .Open(request);
    ASSERT_TRUE(submitted.ok()) << submitted.status();
    const uint64_t batch = submitted->batch.number;
    StartController();
    ASSERT_TRUE(report_->RegisterBatch(ShapeOf(submitted->batch)).ok());
    const auto first = StartProcessor(working_, "first"),
               second = StartProcessor(working_too_, "second");
    const absl::Status enqueued = initiator_->Enqueue(batch, {});
    ASSERT_TRUE(enqueued.ok()) << enqueued;
    EXPECT_EQ(controller_->CheckCompletion(batch), absl::OkStatus());
    const absl::Status ended = AwaitEnd();
    ASSERT_TRUE(ended.ok()) << ended;
    EXPECT_TRUE(first->Stop(absl::Seconds(10)).ok());
    EXPECT_TRUE(second->Stop(absl::Seconds(10)).ok());
    controller_->Stop();
    ExpectDirectSum(batch);
  }

  report::BatchShape ShapeOf(const ledger::Batch& batch) const {
    return {batch.number,
            batch.job,
            batch.job_revision,
            {{"by_key", {"key"}, {{.name = "lines", .is_int = true, .scale = 0}}}}};
  }

  void ExpectDirectSum(uint64_t batch) {
    const auto reader = report_->Read().value();
    std::map<std::string, int> rows;
    ASSERT_TRUE(reader
                    ->ForEachRow(batch, "by_key",
                                 [&](const report::GroupRow& row) {
                                   rows[row.keys[0]] = std::stoi(row.measures[0].ToString());
                                 })
                    .ok());
    std::map<std::string, int> expected;
    for (int i = 0; i < kLines; ++i) ++expected[absl::StrCat("key", i % kKeys)];
    EXPECT_EQ(rows, expected);
    const report::Progress progress = reader->GetProgress(batch).value();
    EXPECT_EQ(progress.transactions, kLines);
    EXPECT_EQ(progress.aggregated, kLines);
    EXPECT_TRUE(reader->GetReceipt(batch).ok());
  }

  const os::TempDir dir_;
  const std::string input_ = dir_ / "input.txt";
  const backend::DataDirUrls urls_{dir_.path()};
  const job::JobDefinition job_ = job::ParseJob(kJob, "count.yaml").value();
  nats::testing::NatsServer server_{GetParam()};
  Process submitting_{server_.url()}, working_{server_.url()}, working_too_{server_.url()},
      counting_{server_.url()};
  std::function<void()> on_item_;      // a handler has finished an item; on its thread
  std::function<void()> on_progress_;  // called when results are counted, and not deleted yet

  std::unique_ptr<ledger::BatchLedger> ledger_;
  std::unique_ptr<initiator::batch::BatchSource> source_;
  std::unique_ptr<sync::UniqueIdGenerator> numbers_;
  std::unique_ptr<initiator::batch::BatchEnqueuer> initiator_;
  std::unique_ptr<report::ReportStore> report_;
  std::unique_ptr<controller::Controller> controller_;

  base::Mutex mu_;
  base::CondVar changed_;
  std::optional<absl::Status> ended_ ABSL_GUARDED_BY(mu_);
};

TEST_P(RolesOverJetStreamTest, CountEveryTransactionOnce) { Run(); }

// Kills the server twice while items are worked on, and once between the count of results and their
// deletion.
TEST_P(RolesOverJetStreamTest, CountEveryTransactionOnceThoughTheServerIsKilled) {
  constexpr int kItems = kLines / kItemLines;
  base::Mutex mu;
  int items = 0, counts = 0;
  on_item_ = [&] {
    base::MutexLock lock(&mu);
    ++items;
    if (items == kItems / 4 || items == kItems / 2) server_.Restart();
  };
  on_progress_ = [&] {
    base::MutexLock lock(&mu);
    if (++counts == 1) server_.Restart();
  };
  Run();
  EXPECT_GE(items, kItems);
  EXPECT_GE(counts, 1);
}

INSTANTIATE_TEST_SUITE_P(Servers, RolesOverJetStreamTest,
                         ::testing::ValuesIn(nats::testing::NatsServer::Programs()),
                         [](const auto& server) { return absl::StrCat("Server", server.index); });

}  // namespace
}  // namespace muster
