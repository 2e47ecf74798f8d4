// SPDX-License-Identifier: Apache-2.0

// A BatchService on loopback, with all roles behind it in this process.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/base/clock.h"
#include "muster/base/decimal.h"
#include "muster/base/fingerprint.h"
#include "muster/base/mutex.h"
#include "muster/base/status.h"
#include "muster/client/batch.h"
#include "muster/client/scaling_client.h"
#include "muster/handler/handler.h"
#include "muster/input/byte_source.h"
#include "muster/item/queue_names.h"
#include "muster/job/job_file.h"
#include "muster/job/job_registry.h"
#include "muster/os/temp_dir.h"
#include "muster/queue/store_decorators.h"
#include "muster/report/report_client.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"
#include "muster/sync/unique_id_generator.h"
#include "muster/v1/batch.pb.h"
#include "services/controller/controller.h"
#include "services/initiator/api/batch_service.h"
#include "services/initiator/batch/scheduler.h"
#include "services/initiator/submit/admission.h"
#include "services/initiator/submit/submissions.h"
#include "services/initiator/submit/uploads.h"
#include "services/processor/processor.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/initiator/fake_processors.h"

namespace muster {

inline constexpr char kAccount[] = "acme";
inline constexpr char kTraceparent[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
inline constexpr char kJob[] = R"(
name: count
input: {format: csv, columns: {key: key}}
item: {transactions: 20}
handler: {linked: count}
queue: {partitions: 2}
groups:
  - {name: by_key, keys: [key], measures: {lines: int}}
)";

// Each line counts under its key.
class CountHandler final : public handler::Handler {
 public:
  handler::Outcome Process(const handler::WorkItem& item, handler::Results& results) override {
    for (const handler::Transaction& line : item.transactions()) {
      results.Count(line, {{handler::Group{0}, {line.fields()[0]}, {base::Decimal::FromInt(1)}}});
    }
    return handler::Outcome::Ok();
  }
};

// Counts the administrative calls, keeps the bodies that are put, and can be made unavailable.
class CountedStore final : public queue::InterceptedStore {
 public:
  using InterceptedStore::InterceptedStore;

  int administered() const { return administered_; }
  std::vector<std::string> bodies() const {
    base::MutexLock lock(&mu_);
    return bodies_;
  }

  void SetDown(bool down) { down_ = down; }

  absl::StatusOr<std::vector<queue::PutResult>> Put(
      const queue::QueueId& queue, absl::Span<const queue::NewMessage> messages) override {
    {
      base::MutexLock lock(&mu_);
      for (const queue::NewMessage& message : messages) bodies_.push_back(message.body);
    }
    return InterceptedStore::Put(queue, messages);
  }

 private:
  absl::Status Before(queue::Verb verb, const queue::QueueId&) override {
    if (verb == queue::Verb::kAdministration) ++administered_;
    return down_ ? absl::UnavailableError("no queue answers") : absl::OkStatus();
  }

  std::atomic<int> administered_{0};
  mutable base::Mutex mu_;
  std::vector<std::string> bodies_ ABSL_GUARDED_BY(mu_);
  std::atomic<bool> down_{false};
};

// Counts its calls, and can hold registrations back.
class CountedDesk final : public report::ReportClient {
 public:
  CountedDesk(report::ReportStore* report,
              std::function<absl::Status(uint64_t batch)> check_completion)
      : behind_(report, std::move(check_completion)) {}

  int registered() const { return registered_; }
  int progress_asked() const { return progress_asked_; }  // of one batch, or of a list
  int lists_asked() const { return lists_asked_; }

  // From now on questions for a list are answered with this, unless it is OK.
  void AnswerLists(absl::Status status) {
    base::MutexLock lock(&mu_);
    list_answer_ = std::move(status);
  }

  // From now on cancellations are answered with this, unless it is OK.
  void AnswerCancels(absl::Status status) {
    base::MutexLock lock(&mu_);
    cancel_answer_ = std::move(status);
  }

  // The next question for what a retry has claimed is answered with this. Not while calls retry.
  void AnswerClaimed(absl::Status status) { claimed_answer_ = std::move(status); }
  // Nobody hears which batch retries next: it is answered with this. Not while calls retry.
  void AnswerTold(absl::Status status) { told_answer_ = std::move(status); }

  void HoldRegistrations(bool hold) {
    base::MutexLock lock(&mu_);
    hold_ = hold;
    released_.NotifyAll();
  }

  absl::StatusOr<report::Progress> RegisterBatch(const report::BatchShape& shape) override {
    base::MutexLock lock(&mu_);
    while (hold_) released_.Wait(&mu_);
    auto progress = behind_.RegisterBatch(shape);
    ++registered_;
    return progress;
  }
  absl::StatusOr<report::Progress> GetProgress(uint64_t batch) override {
    ++progress_asked_;
    return behind_.GetProgress(batch);
  }
  absl::StatusOr<std::map<uint64_t, report::Progress>> ListProgress(
      absl::Span<const uint64_t> batches) override {
    ++progress_asked_;
    ++lists_asked_;
    {
      base::MutexLock lock(&mu_);
      MUSTER_RETURN_IF_ERROR(list_answer_);
    }
    return behind_.ListProgress(batches);
  }
  absl::StatusOr<uint64_t> HighestBatch() override { return behind_.HighestBatch(); }
  absl::StatusOr<std::vector<uint64_t>> UncountedItems(uint64_t batch, uint64_t item_count,
                                                       uint64_t from, size_t max) override {
    return behind_.UncountedItems(batch, item_count, from, max);
  }
  absl::Status CheckCompletion(uint64_t batch) override { return behind_.CheckCompletion(batch); }
  absl::StatusOr<report::StoredReceipt> GetReceipt(uint64_t batch) override {
    return behind_.GetReceipt(batch);
  }
  absl::StatusOr<report::Tally> GetTally(uint64_t batch) override {
    return behind_.GetTally(batch);
  }
  absl::Status ReopenDeadLettered(uint64_t batch, absl::Span<const uint64_t> items) override {
    return behind_.ReopenDeadLettered(batch, items);
  }
  absl::Status CancelBatch(uint64_t batch, const report::Cancellation& cancellation) override {
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(cancel_answer_);
    return behind_.CancelBatch(batch, cancellation);
  }
  absl::StatusOr<std::map<uint64_t, uint64_t>> RetriedItems(
      uint64_t batch, absl::Span<const uint64_t> items) override {
    return behind_.RetriedItems(batch, items);
  }
  absl::StatusOr<std::vector<uint64_t>> DeadLetteredItems(uint64_t batch, uint64_t from,
                                                          size_t max) override {
    return behind_.DeadLetteredItems(batch, from, max);
  }
  absl::StatusOr<report::RetryClaims> ClaimRejections(uint64_t batch,
                                                      const report::RetrySelection& which,
                                                      int64_t max) override {
    return behind_.ClaimRejections(batch, which, max);
  }
  absl::StatusOr<std::vector<report::RejectionPosition>> ClaimedRejections(
      uint64_t batch, int64_t retry, const report::RejectionPosition& after, size_t max) override {
    MUSTER_RETURN_IF_ERROR(std::exchange(claimed_answer_, absl::OkStatus()));
    return behind_.ClaimedRejections(batch, retry, after, max);
  }
  absl::StatusOr<int64_t> RecordRetry(uint64_t batch, int64_t retry,
                                      absl::Span<const report::RetriedTransaction> transactions,
                                      uint64_t retried_in) override {
    if (retried_in != 0) MUSTER_RETURN_IF_ERROR(std::exchange(told_answer_, absl::OkStatus()));
    return behind_.RecordRetry(batch, retry, transactions, retried_in);
  }
  absl::StatusOr<bool> ForgetBatch(uint64_t batch) override { return behind_.ForgetBatch(batch); }

 private:
  report::LocalReportClient behind_;
  std::atomic<int> registered_{0};
  std::atomic<int> progress_asked_{0};
  std::atomic<int> lists_asked_{0};
  base::Mutex mu_;
  base::CondVar released_;
  bool hold_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status cancel_answer_ ABSL_GUARDED_BY(mu_);
  absl::Status list_answer_ ABSL_GUARDED_BY(mu_);
  absl::Status claimed_answer_;
  absl::Status told_answer_;
};

class BatchServiceTest : public ::testing::Test {
 protected:
  BatchServiceTest() {
    EXPECT_TRUE(jobs_.Apply(kJob, std::nullopt).ok());
    controller::Options counting;
    counting.partitions = {item::OutputQueue(kAccount, "count", 0)};
    counting.linger = absl::ZeroDuration();
    controller::Events events;
    events.on_progress = [this](const report::Progress& progress) {
      EXPECT_TRUE(bus_->Publish({"controller", bus::BatchCountedEvent{progress.batch}}).ok());
    };
    events.on_complete = [this](uint64_t batch) {
      base::MutexLock lock(&scheduler_mu_);
      scheduler_->Advance(batch);
    };
    controller_ = controller::Controller::Create(counting, std::move(events),
                                                 {queues_.get(), bus_.get(), ledger_.get(),
                                                  report_.get(), blobs_.get(), base::RealClock()})
                      .value();
    report_client_ = std::make_unique<CountedDesk>(
        report_.get(), [this](uint64_t batch) { return controller_->CheckCompletion(batch); });
    StartInitiator();
    EXPECT_TRUE(controller_->Start().ok());
  }

  ~BatchServiceTest() override {
    StopInitiator();
    if (processor_ != nullptr) processor_->Stop(absl::Seconds(10)).IgnoreError();
    controller_->Stop();
  }

  // Starts the initiator on the stored data, as a new process would.
  void StartInitiator() {
    initiator::batch::EngineDependencies tools;
    tools.stores = {&counted_queues_, bus_.get(), ledger_.get(), blobs_.get(), base::RealClock()};
    tools.options.account = kAccount;
    tools.content = uploads_.get();
    tools.report_client = report_client_.get();
    initiator::batch::SchedulerOptions keeping;
    keeping.loss_check_interval = absl::Milliseconds(200);
    keeping.sender_grace = sender_grace_;
    auto scheduler = std::make_unique<initiator::batch::BatchScheduler>(tools, keeping);
    ASSERT_TRUE(scheduler->Start().ok());
    {
      base::MutexLock lock(&scheduler_mu_);
      scheduler_.swap(scheduler);
    }
    submissions_ = std::make_unique<initiator::submit::Submissions>(
        initiator::submit::Submissions::Dependencies{&jobs_, ledger_.get(), &numbers_,
                                                     uploads_.get(),
                                                     [this](const job::JobDefinition&) {
                                                       if (on_version_)
                                                         std::exchange(on_version_, nullptr)();
                                                       return current_version_;
                                                     },
                                                     [this](const job::JobDefinition& job) {
                                                       if (on_admit_) on_admit_();
                                                       return admission_.Admit(job);
                                                     },
                                                     base::RealClock(), trace_sample_});
    service_ =
        std::make_unique<initiator::api::BatchService>(initiator::api::BatchService::Dependencies{
            .submissions = submissions_.get(),
            .scheduler = scheduler_.get(),
            .uploads = uploads_.get(),
            .ledger = ledger_.get(),
            .report_client = report_client_.get(),
            .clock = base::RealClock(),
            .open_content =
                [this](const ledger::Batch& batch) { return uploads_->OpenRecorded(batch); },
            .jobs = &jobs_,
            .queues = queues_.get(),
            .account = kAccount});
    rpc::ServerOptions options;
    options.addresses = {"localhost:0"};
    server_ =
        rpc::Server::Start(
            options, {{v1::BatchService::service_full_name(), service_.get(), service_->watches()}})
            .value();
    channel_ = rpc::OpenChannel(server_->addresses().front()).value();
    stub_ = v1::BatchService::NewStub(channel_);
  }

  void StopInitiator() {
    service_->StopWatches();
    scheduler_->Stop();
    server_->Drain(absl::ZeroDuration());
  }

  void StartProcessor() {
    StartProcessor(queues_.get(), [] { return std::make_unique<CountHandler>(); });
  }

  void StartProcessor(queue::QueueStore* queues,
                      std::function<std::unique_ptr<handler::Handler>()> make_handler) {
    processor::Options options;
    options.account = kAccount;
    options.threads = 2;
    processor_ =
        processor::Processor::Create(
            &job_,
            [make_handler](const handler::JobSchema&)
                -> absl::StatusOr<std::unique_ptr<handler::Handler>> { return make_handler(); },
            "1", {queues, bus_.get(), blobs_.get(), base::RealClock()}, options)
            .value();
    EXPECT_TRUE(processor_->Start().ok());
  }

  static std::string Input(int lines) {
    std::string text = "key,other\n";
    for (int i = 0; i < lines; ++i) absl::StrAppend(&text, "k", i % 3, ",", i, "\n");
    return text;
  }

  static v1::SubmitHeader Header(const std::string& request_id) {
    v1::SubmitHeader header;
    header.set_job("count");
    header.set_request_id(request_id);
    return header;
  }

  absl::StatusOr<v1::BatchStatus> Submit(const std::string& request_id, const std::string& text) {
    return client::Submit(channel_, Header(request_id), input::TextSource(text), {},
                          base::RealClock(), {});
  }

  void AwaitQueued(uint64_t batch, uint64_t items) {
    uint64_t seen = 0;
    while (ledger_->Get(batch)->enqueued_items != items) {
      scheduler_->AwaitNews(&seen, base::RealClock()->Monotonic() + absl::Seconds(1));
    }
  }

  absl::StatusOr<v1::BatchStatus> Watch(uint64_t batch) {
    return client::Watch(channel_, batch, {}, base::RealClock(), {});
  }

  // Returns the receipt of a batch that is over.
  std::string Receipt(uint64_t batch) {
    rpc::CallContext context;
    v1::GetReceiptRequest request;
    request.set_batch(batch);
    v1::GetReceiptResponse receipt;
    const absl::Status got = rpc::FromGrpc(stub_->GetReceipt(&context, request, &receipt));
    EXPECT_TRUE(got.ok()) << got;
    return receipt.text();
  }

  // One stream of Submit, driven step by step.
  struct Upload {
    explicit Upload(v1::BatchService::Stub* stub,
                    const std::multimap<std::string, std::string>& metadata = {}) {
      for (const auto& [name, value] : metadata) context.AddMetadata(name, value);
      stream = stub->Submit(&context);
    }

    void SendHeader(const v1::SubmitHeader& header) {
      v1::SubmitRequest request;
      *request.mutable_header() = header;
      stream->Write(request);
    }
    void SendChunk(uint64_t offset, const std::string& data) {
      v1::SubmitRequest request;
      request.mutable_chunk()->set_offset(offset);
      request.mutable_chunk()->set_data(data);
      stream->Write(request);
    }
    void SendSeal(uint64_t size, const base::Fingerprint128& hash) {
      v1::SubmitRequest request;
      request.mutable_seal()->set_size(size);
      request.mutable_seal()->set_content_hash(hash.ToBytes());
      stream->Write(request);
    }
    v1::SubmitResponse Hear() {
      v1::SubmitResponse response;
      stream->Read(&response);
      return response;
    }
    absl::Status End() {
      stream->WritesDone();
      v1::SubmitResponse response;
      while (stream->Read(&response)) continue;
      return rpc::FromGrpc(stream->Finish());
    }

    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<v1::SubmitRequest, v1::SubmitResponse>> stream;
  };

  const os::TempDir dir_;
  const backend::DataDirUrls urls_{dir_.path()};
  const std::unique_ptr<queue::QueueStore> queues_ =
      backend::OpenQueueStore(urls_.queue, backend::Mode::kReadWrite, backend::Holders::kInProcess,
                              base::RealClock())
          .value();
  CountedStore counted_queues_{queues_.get()};  // the initiator's view of the queues
  const std::unique_ptr<ledger::BatchLedger> ledger_ =
      backend::OpenBatchLedger(urls_.ledger, backend::Mode::kReadWrite).value();
  const std::unique_ptr<sync::OptimisticSyncStore> sync_ =
      backend::OpenSyncStore(urls_.sync).value();
  const std::unique_ptr<blob::BlobStore> blobs_ = backend::OpenBlobStore(urls_.blobs).value();
  const std::unique_ptr<report::ReportStore> report_ =
      backend::OpenReportStore(urls_.report, backend::Mode::kReadWrite, base::RealClock()).value();
  const std::unique_ptr<bus::TriggerBus> bus_ = backend::OpenTriggerBus("local:").value();
  const std::unique_ptr<initiator::submit::Uploads> uploads_ =
      initiator::submit::Uploads::Open(dir_ / "uploads").value();
  job::JobRegistry jobs_{sync_.get(), base::RealClock()};
  absl::StatusOr<std::string> current_version_ = "1";
  std::function<void()> on_version_;  // called before a batch is bound to a version
  std::function<void()> on_admit_;    // called before a batch is admitted
  double trace_sample_ = 0;
  absl::Duration sender_grace_ = initiator::batch::SchedulerOptions().sender_grace;
  const job::JobDefinition job_ = job::ParseJob(kJob, "count.yaml").value();
  sync::UniqueIdGenerator numbers_{sync_.get(), "numbers", {.range_size = 1}};
  // Keeps information about processors valid for longer than a test takes.
  base::FakeClock heartbeat_clock_;
  initiator::FakeProcessors processors_{&heartbeat_clock_};
  const std::unique_ptr<initiator::submit::JobThroughput> throughput_ = processors_.Throughput();
  client::ScalingLeaderClient no_agent_{[] { return std::vector<std::string>(); }, {}};
  initiator::submit::Admission admission_{
      {queues_.get(), throughput_.get(), &no_agent_, base::RealClock(), kAccount}};

  std::unique_ptr<controller::Controller> controller_;
  std::unique_ptr<CountedDesk> report_client_;
  std::unique_ptr<processor::Processor> processor_;
  // Held while the initiator is started anew, and while the controller's thread tells it of a
  // batch.
  base::Mutex scheduler_mu_;
  std::unique_ptr<initiator::batch::BatchScheduler> scheduler_;
  std::unique_ptr<initiator::submit::Submissions> submissions_;
  std::unique_ptr<initiator::api::BatchService> service_;
  std::unique_ptr<rpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::BatchService::Stub> stub_;
};

}  // namespace muster
