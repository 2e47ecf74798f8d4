// BatchService over loopback, with all roles in this process behind it: what a client sees of its
// batches, from header to receipt.
#include "services/initiator/batch_service.h"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/base/clock.h"
#include "muster/base/decimal.h"
#include "muster/base/fake_clock.h"
#include "muster/base/fingerprint.h"
#include "muster/base/mutex.h"
#include "muster/base/temp_dir.h"
#include "muster/base/trace_context.h"
#include "muster/batch_remote/submit.h"
#include "muster/batch_remote/watch.h"
#include "muster/handler/handler.h"
#include "muster/input/byte_source.h"
#include "muster/job/job_file.h"
#include "muster/job_registry/job_registry.h"
#include "muster/queue/intercepted_store.h"
#include "muster/redrive/batch_reopener.h"
#include "muster/redrive/redrive.h"
#include "muster/report/store_desk.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"
#include "muster/scaling_remote/leading_agent.h"
#include "muster/sync/unique_id_generator.h"
#include "muster/v1/batch.pb.h"
#include "muster/wire/queue_names.h"
#include "muster/wire/work_item_codec.h"
#include "services/controller/controller.h"
#include "services/controller/result_decoder.h"
#include "services/initiator/admission.h"
#include "services/initiator/batch_keeper.h"
#include "services/initiator/made_up_processors.h"
#include "services/initiator/submissions.h"
#include "services/initiator/uploads.h"
#include "services/processor/processor.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kAccount[] = "acme";
constexpr char kTraceparent[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
constexpr char kJob[] = R"(
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

// Counts the calls that look after queues, keeps what is put, and may be out of reach.
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
  void After(queue::Verb, const queue::QueueId&, bool) override {}

  std::atomic<int> administered_{0};
  mutable base::Mutex mu_;
  std::vector<std::string> bodies_ ABSL_GUARDED_BY(mu_);
  std::atomic<bool> down_{false};
};

// Counts what it is asked, and may leave the caller waiting.
class CountedDesk final : public report::CountingDesk {
 public:
  CountedDesk(report::ReportStore* report, std::function<void(uint64_t batch)> check_completion)
      : behind_(report, std::move(check_completion)) {}

  int registered() const { return registered_; }
  int progress_asked() const { return progress_asked_; }

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

 private:
  report::StoreDesk behind_;
  std::atomic<int> registered_{0};
  std::atomic<int> progress_asked_{0};
  base::Mutex mu_;
  base::CondVar released_;
  bool hold_ ABSL_GUARDED_BY(mu_) = false;
};

class BatchServiceTest : public ::testing::Test {
 protected:
  BatchServiceTest() {
    EXPECT_TRUE(jobs_.Apply(kJob, std::nullopt).ok());
    controller::Options counting;
    counting.partitions = {wire::OutputQueue(kAccount, "count", 0)};
    counting.linger = absl::ZeroDuration();
    controller::Events events;
    events.on_progress = [this](const report::Progress& progress) {
      EXPECT_TRUE(bus_->Publish({"controller", trigger::BatchCountedEvent{progress.batch}}).ok());
    };
    events.on_complete = [this](uint64_t batch) { keeper_->Advance(batch); };
    controller_ = controller::Controller::Create(counting, std::move(events),
                                                 {queues_.get(), bus_.get(), ledger_.get(),
                                                  report_.get(), blobs_.get(), base::RealClock()})
                      .value();
    desk_ = std::make_unique<CountedDesk>(
        report_.get(), [this](uint64_t batch) { controller_->CheckCompletion(batch); });
    StartInitiator();
    EXPECT_TRUE(controller_->Start().ok());
  }

  ~BatchServiceTest() override {
    StopInitiator();
    if (processor_ != nullptr) processor_->Stop(absl::Seconds(10)).IgnoreError();
    controller_->Stop();
  }

  // As a new process would, over what is stored.
  void StartInitiator() {
    initiator::BatchTools tools;
    tools.stores = {&counted_queues_, bus_.get(),   ledger_.get(),
                    &numbers_,        blobs_.get(), base::RealClock()};
    tools.options.account = kAccount;
    tools.uploads = uploads_.get();
    tools.desk = desk_.get();
    initiator::KeeperOptions keeping;
    keeping.loss_check_interval = absl::Milliseconds(200);
    keeper_ = std::make_unique<initiator::BatchKeeper>(tools, keeping);
    ASSERT_TRUE(keeper_->Start().ok());
    submissions_ = std::make_unique<initiator::Submissions>(
        initiator::Submissions::Dependencies{&jobs_, ledger_.get(), &numbers_, uploads_.get(),
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
    service_ = std::make_unique<initiator::BatchService>(
        initiator::BatchService::Dependencies{submissions_.get(), keeper_.get(), uploads_.get(),
                                              ledger_.get(), desk_.get(), base::RealClock()});
    rpc::ServerOptions options;
    options.addresses = {"localhost:0"};
    server_ = rpc::Server::Start(options, {{v1::BatchService::service_full_name(), service_.get()}})
                  .value();
    channel_ = rpc::OpenChannel(server_->addresses().front()).value();
    stub_ = v1::BatchService::NewStub(channel_);
  }

  void StopInitiator() {
    service_->StopWatches();
    keeper_->Stop();
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
    return batch_remote::Submit(channel_, Header(request_id), input::TextSource(text), {},
                                base::RealClock(), {});
  }

  void AwaitQueued(uint64_t batch, uint64_t items) {
    uint64_t seen = 0;
    while (ledger_->Get(batch)->enqueued_items != items) {
      keeper_->AwaitNews(&seen, base::RealClock()->Monotonic() + absl::Seconds(1));
    }
  }

  absl::StatusOr<v1::BatchStatus> Watch(uint64_t batch) {
    return batch_remote::Watch(channel_, batch, {}, base::RealClock(), {});
  }

  // Of a batch that is over.
  std::string Receipt(uint64_t batch) {
    rpc::CallContext context;
    v1::GetReceiptRequest request;
    request.set_batch(batch);
    v1::GetReceiptResponse receipt;
    const absl::Status got = rpc::FromGrpc(stub_->GetReceipt(&context, request, &receipt));
    EXPECT_TRUE(got.ok()) << got;
    return receipt.text();
  }

  // One stream of Submit, step by step.
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

  const base::TempDir dir_;
  const backend::DataDirUrls urls_{dir_.path()};
  const std::unique_ptr<queue::QueueStore> queues_ =
      backend::OpenQueueStore(urls_.queue, backend::Mode::kReadWrite, backend::Holders::kInProcess,
                              base::RealClock())
          .value();
  CountedStore counted_queues_{queues_.get()};  // the initiator's way to them
  const std::unique_ptr<ledger::BatchLedger> ledger_ =
      backend::OpenBatchLedger(urls_.ledger, backend::Mode::kReadWrite).value();
  const std::unique_ptr<sync::OptimisticSyncStore> sync_ =
      backend::OpenSyncStore(urls_.sync).value();
  const std::unique_ptr<blob::BlobStore> blobs_ = backend::OpenBlobStore(urls_.blobs).value();
  const std::unique_ptr<report::ReportStore> report_ =
      backend::OpenReportStore(urls_.report, backend::Mode::kReadWrite, base::RealClock()).value();
  const std::unique_ptr<trigger::TriggerBus> bus_ = backend::OpenTriggerBus("local:").value();
  const std::unique_ptr<initiator::Uploads> uploads_ =
      initiator::Uploads::Open(dir_ / "uploads").value();
  job_registry::JobRegistry jobs_{sync_.get(), base::RealClock()};
  absl::StatusOr<std::string> current_version_ = "1";
  std::function<void()> on_version_;  // called before a batch is bound to a version
  std::function<void()> on_admit_;    // called before the mesh is asked about a new batch
  double trace_sample_ = 0;
  const job::JobDefinition job_ = job::ParseJob(kJob, "count.yaml").value();
  sync::UniqueIdGenerator numbers_{sync_.get(), "numbers", {.range_size = 1}};
  // What is said of processors stays true as long as a test takes.
  base::FakeClock heartbeat_clock_;
  initiator::MadeUpProcessors processors_{&heartbeat_clock_};
  const std::unique_ptr<initiator::JobSpeeds> speeds_ = processors_.Speeds();
  scaling_remote::LeadingAgent no_agent_{[] { return std::vector<std::string>(); }, {}};
  initiator::Admission admission_{
      {queues_.get(), speeds_.get(), &no_agent_, base::RealClock(), kAccount}};

  std::unique_ptr<controller::Controller> controller_;
  std::unique_ptr<CountedDesk> desk_;
  std::unique_ptr<processor::Processor> processor_;
  std::unique_ptr<initiator::BatchKeeper> keeper_;
  std::unique_ptr<initiator::Submissions> submissions_;
  std::unique_ptr<initiator::BatchService> service_;
  std::unique_ptr<rpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::BatchService::Stub> stub_;
};

TEST_F(BatchServiceTest, SeesABatchThroughFromItsHeaderToItsReceipt) {
  StartProcessor();
  const auto submitted = Submit("once", Input(1000));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  const auto last = Watch(submitted->batch());
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_TRUE(last->complete());
  EXPECT_EQ(last->transactions(), 1000);
  EXPECT_EQ(last->aggregated(), 1000);
  EXPECT_EQ(last->items(), 50);
  EXPECT_EQ(last->progress().committed(), 1000);
  EXPECT_EQ(last->progress().split(), 1);
  EXPECT_EQ(last->handler_version(), "1");
  EXPECT_THAT(Receipt(last->batch()),
              AllOf(HasSubstr("\naggregated 1000\n"), HasSubstr("\nhandler_version 1\n")));
}

// Somebody waits for the first item to begin, and a controller's answer takes its time.
TEST_F(BatchServiceTest, AsksHowFarABatchIsCountedOnlyOnceSomethingIsPut) {
  Upload upload(stub_.get());
  upload.SendHeader(Header("slow"));
  const uint64_t batch = upload.Hear().accepted().batch();
  for (uint64_t seen = 0; desk_->registered() == 0;) {
    keeper_->AwaitNews(&seen, base::RealClock()->Monotonic() + absl::Seconds(1));
  }
  keeper_->Stop();  // the step that registered it is over
  EXPECT_EQ(desk_->progress_asked(), 0);
  EXPECT_EQ(keeper_->Get(batch)->counted.items(), 0);
  EXPECT_EQ(desk_->progress_asked(), 0);
  upload.context.TryCancel();
}

// The first items need not wait for a controller; the others are not put for one that is away.
TEST_F(BatchServiceTest, PutsOneRunOfItemsWhileTheReportIsTold) {
  desk_->HoldRegistrations(true);
  const auto submitted = Submit("told", Input(1000));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  AwaitQueued(submitted->batch(), 16);
  EXPECT_EQ(desk_->registered(), 0);
  desk_->HoldRegistrations(false);
  AwaitQueued(submitted->batch(), 50);
  EXPECT_EQ(desk_->registered(), 1);
}

TEST_F(BatchServiceTest, AsksForTheQueuesOfAJobOnceForManyBatches) {
  for (const char* request_id : {"first", "second", "third"}) {
    const auto submitted = Submit(request_id, Input(100));
    ASSERT_TRUE(submitted.ok()) << submitted.status();
    AwaitQueued(submitted->batch(), 5);
    EXPECT_EQ(counted_queues_.administered(), 3) << "two for items, one for results";
  }
}

TEST_F(BatchServiceTest, MakesQueuesAgainThatWereDeletedUnderIt) {
  const auto before = Submit("before", Input(100));
  ASSERT_TRUE(before.ok()) << before.status();
  AwaitQueued(before->batch(), 5);
  for (const queue::QueueId& input : wire::InputQueues(kAccount, "count", 2)) {
    ASSERT_TRUE(queues_->DeleteQueue(input).ok());
  }
  const auto after = Submit("after", Input(100));
  ASSERT_TRUE(after.ok()) << after.status();
  AwaitQueued(after->batch(), 5);
  StartProcessor();
  for (const uint64_t batch : {after->batch(), before->batch()}) {
    const auto last = Watch(batch);
    ASSERT_TRUE(last.ok()) << last.status();
    EXPECT_EQ(last->aggregated(), 100);
  }
}

// Nothing is put any more that could tell.
TEST_F(BatchServiceTest, PutsAgainWhatWasInQueuesThatWereDeleted) {
  const auto submitted = Submit("all put", Input(100));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  AwaitQueued(submitted->batch(), 5);
  for (const queue::QueueId& input : wire::InputQueues(kAccount, "count", 2)) {
    ASSERT_TRUE(queues_->DeleteQueue(input).ok());
  }
  for (uint64_t seen = 0; ledger_->Get(submitted->batch())->refills == 0;) {
    keeper_->AwaitNews(&seen, base::RealClock()->Monotonic() + absl::Seconds(1));
  }
  StartProcessor();
  const auto last = Watch(submitted->batch());
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->aggregated(), 100);
}

TEST_F(BatchServiceTest, BindsABatchToNoVersionThatIsSubmittedWhileNoProcessorIsThere) {
  current_version_ = "";
  const auto submitted = Submit("early", Input(1000));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_EQ(submitted->handler_version(), "");
  StartProcessor();
  const auto last = Watch(submitted->batch());
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->aggregated(), 1000);
  EXPECT_EQ(last->handler_version(), "");
  EXPECT_THAT(Receipt(last->batch()),
              AllOf(HasSubstr("\nhandler_version \n"), HasSubstr("\nitems_by_version 50 1\n")));
}

TEST_F(BatchServiceTest, KeepsABatchUnboundWhoeverComesBeforeItIsSubmittedAgain) {
  current_version_ = "";
  const auto submitted = Submit("early", Input(100));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  current_version_ = "1";
  const auto again = Submit("early", Input(100));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->batch(), submitted->batch());
  EXPECT_EQ(again->handler_version(), "");
  v1::SubmitHeader bound = Header("early");
  bound.set_handler_version("1");
  Upload upload(stub_.get());
  upload.SendHeader(bound);
  const absl::Status reused = upload.End();
  ASSERT_TRUE(rpc::Reason(reused).has_value()) << reused;
  EXPECT_EQ(rpc::Reason(reused)->reason, "REQUEST_ID_REUSED");
  EXPECT_THAT(std::string(reused.message()), HasSubstr("of no handler version"));
}

TEST_F(BatchServiceTest, MakesNoBatchWhileItCannotBeToldWhatItIsBoundTo) {
  current_version_ = absl::UnavailableError("not heard yet");
  Upload upload(stub_.get());
  upload.SendHeader(Header("soon"));
  EXPECT_TRUE(absl::IsUnavailable(upload.End()));
  EXPECT_TRUE(ledger_->List()->empty());
}

// An item takes ten seconds, and a minute's work may wait.
class DrainLimitTest : public BatchServiceTest {
 protected:
  DrainLimitTest() {
    std::string text = kJob;
    text.replace(text.find("{partitions: 2}"), 15, "{partitions: 2, max_drain: 1m}");
    EXPECT_TRUE(jobs_.Apply(text, std::nullopt).ok());
    processors_.Say(
        "slow",
        {.account = kAccount, .job = "count", .threads_max = 1, .service_time = absl::Seconds(10)});
  }

  // All 50 items of a batch wait when it returns.
  uint64_t FillQueue() {
    const auto submitted = Submit("first", Input(1000));
    EXPECT_TRUE(submitted.ok()) << submitted.status();
    AwaitQueued(submitted->batch(), 50);
    return submitted->batch();
  }
};

TEST_F(DrainLimitTest, RefusesANewBatchWhileWhatWaitsTakesTooLong) {
  FillQueue();
  const absl::Status refused = Submit("second", Input(100)).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("would take 8m20s, and its queue.max_drain is 1m: submit again in 5m"));
  EXPECT_EQ(rpc::RetryAfter(refused), absl::Minutes(5));
  const rpc::ErrorReason reason{
      "DRAIN_TOO_LONG", {{"job", "count"}, {"estimate_seconds", "500"}, {"limit_seconds", "60"}}};
  EXPECT_EQ(rpc::Reason(refused), reason);
  EXPECT_EQ(ledger_->List()->size(), 1);
}

TEST_F(DrainLimitTest, NeverRefusesABatchThatItHasTakenIn) {
  const std::string text = Input(100);
  {
    Upload cut_off(stub_.get());
    cut_off.SendHeader(Header("half"));
    EXPECT_EQ(cut_off.Hear().accepted().durable_offset(), 0);
  }
  const uint64_t first = FillQueue();
  const auto again = Submit("first", Input(1000));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->batch(), first);
  const auto resumed = Submit("half", text);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(ledger_->List()->size(), 2);
}

TEST_F(DrainLimitTest, TakesABatchInOnceTheQueueIsDrained) {
  const uint64_t first = FillQueue();
  ASSERT_TRUE(absl::IsResourceExhausted(Submit("second", Input(100)).status()));
  StartProcessor();
  ASSERT_TRUE(Watch(first).ok());
  // Results are counted before the last items leave the queue.
  absl::StatusOr<v1::BatchStatus> second;
  do {
    second = Submit("second", Input(100));
  } while (absl::IsResourceExhausted(second.status()));
  ASSERT_TRUE(second.ok()) << second.status();
  const auto last = Watch(second->batch());
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->aggregated(), 100);
}

TEST_F(DrainLimitTest, LetsOthersSubmitWhileItEstimates) {
  EXPECT_TRUE(
      jobs_.Apply(absl::StrReplaceAll(kJob, {{"name: count", "name: other"}}), std::nullopt).ok());
  // The first answer of the mesh about "count" comes when a batch of "other" is taken in.
  on_admit_ = [this] {
    v1::SubmitHeader other = Header("meanwhile");
    other.set_job("other");
    Upload upload(stub_.get());
    upload.SendHeader(other);
    EXPECT_EQ(upload.Hear().accepted().batch(), 1);
  };
  const auto submitted = Submit("first", Input(10));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_EQ(submitted->batch(), 2);
}

TEST_F(DrainLimitTest, MakesOneBatchOfTwoRequestsThatAreEstimatedTogether) {
  on_admit_ = [this] {
    on_admit_ = nullptr;
    EXPECT_TRUE(Submit("same", Input(10)).ok());
  };
  const auto submitted = Submit("same", Input(10));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_EQ(submitted->batch(), 1);
  EXPECT_EQ(ledger_->List()->size(), 1);
}

TEST_F(BatchServiceTest, RecordsSeveralBatchesAtATime) {
  on_version_ = [this] { EXPECT_EQ(Submit("meanwhile", Input(10))->batch(), 1); };
  const auto submitted = Submit("first", Input(10));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_EQ(submitted->batch(), 2);
}

TEST_F(BatchServiceTest, NeverMakesASecondBatchOfARequest) {
  StartProcessor();
  const auto first = Submit("same", Input(100));
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(Watch(first->batch()).ok());
  const auto again = Submit("same", Input(100));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->batch(), first->batch());
  EXPECT_TRUE(again->complete());
  const absl::Status other = Submit("same", Input(101)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(other) || absl::IsOutOfRange(other)) << other;
  const auto new_one = Submit("another", Input(100));
  ASSERT_TRUE(new_one.ok()) << new_one.status();
  EXPECT_NE(new_one->batch(), first->batch());
}

TEST_F(BatchServiceTest, RefusesARequestIdOfAnotherJobOrRevision) {
  ASSERT_TRUE(Submit("mine", Input(10)).ok());
  ASSERT_TRUE(jobs_
                  .Apply(absl::StrCat(kJob, "  - {name: all, keys: [key], measures: {n: int}}\n"),
                         std::nullopt)
                  .ok());
  const absl::Status reused = Submit("mine", Input(10)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(reused)) << reused;
  ASSERT_TRUE(rpc::Reason(reused).has_value());
  EXPECT_EQ(rpc::Reason(reused)->reason, "REQUEST_ID_REUSED");
  EXPECT_EQ(rpc::Reason(reused)->metadata.at("batch"), "1");
}

TEST_F(BatchServiceTest, GoesOnWithAnUploadWhereItsDurableContentEnds) {
  const std::string text = Input(1000);
  {
    Upload cut_off(stub_.get());
    cut_off.SendHeader(Header("resumed"));
    EXPECT_EQ(cut_off.Hear().accepted().durable_offset(), 0);
    cut_off.SendChunk(0, text.substr(0, 700));
    EXPECT_EQ(cut_off.Hear().durable().durable_offset(), 700);
    cut_off.context.TryCancel();
    cut_off.stream->Finish();
  }
  StopInitiator();
  StartInitiator();
  Upload resumed(stub_.get());
  resumed.SendHeader(Header("resumed"));
  const v1::SubmitResponse accepted = resumed.Hear();
  EXPECT_EQ(accepted.accepted().batch(), 1);
  EXPECT_EQ(accepted.accepted().durable_offset(), 700);
  resumed.SendChunk(700, text.substr(700));
  EXPECT_EQ(resumed.Hear().durable().durable_offset(), text.size());
  resumed.SendSeal(text.size(), base::Fingerprint(text));
  EXPECT_EQ(resumed.Hear().sealed().status().batch(), 1);
  EXPECT_EQ(resumed.End(), absl::OkStatus());
  StartProcessor();
  const auto last = Watch(1);
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->aggregated(), 1000);
}

TEST_F(BatchServiceTest, TakesContentThatDoesNotWaitUntilItsHeaderIsAccepted) {
  const std::string text = Input(100);
  Upload upload(stub_.get());
  upload.SendHeader(Header("at once"));
  upload.SendChunk(0, text);
  upload.SendSeal(text.size(), base::Fingerprint(text));
  const uint64_t batch = upload.Hear().accepted().batch();
  EXPECT_TRUE(upload.End().ok());
  AwaitQueued(batch, 5);
}

TEST_F(BatchServiceTest, LetsANewerStreamTakeAnUploadOver) {
  Upload old_stream(stub_.get());
  old_stream.SendHeader(Header("shared"));
  old_stream.Hear();
  Upload new_stream(stub_.get());
  new_stream.SendHeader(Header("shared"));
  new_stream.Hear();
  old_stream.SendChunk(0, "key\n");
  EXPECT_TRUE(absl::IsAborted(old_stream.End()));
  new_stream.SendChunk(0, "key\n");
  EXPECT_EQ(new_stream.Hear().durable().durable_offset(), 4);
}

TEST_F(BatchServiceTest, SaysWhereAChunkShouldHaveBegun) {
  Upload upload(stub_.get());
  upload.SendHeader(Header("gap"));
  upload.Hear();
  upload.SendChunk(0, "key\n");
  upload.Hear();
  upload.SendChunk(7, "k\n");
  const absl::Status wrong = upload.End();
  EXPECT_TRUE(absl::IsOutOfRange(wrong)) << wrong;
  ASSERT_TRUE(rpc::Reason(wrong).has_value());
  EXPECT_EQ(rpc::Reason(wrong)->reason, "WRONG_OFFSET");
  EXPECT_EQ(rpc::Reason(wrong)->metadata.at("expected_offset"), "4");
}

TEST_F(BatchServiceTest, DropsAnUploadThatDoesNotHaveItsHash) {
  Upload upload(stub_.get());
  upload.SendHeader(Header("damaged"));
  upload.Hear();
  upload.SendChunk(0, "key\nk1\n");
  upload.SendSeal(7, base::Fingerprint("key\nk2\n"));
  EXPECT_TRUE(absl::IsDataLoss(upload.End()));
  EXPECT_EQ(ledger_->Get(1)->state, ledger::BatchState::kCancelled);
  const auto anew = Submit("damaged", "key\nk2\n");
  ASSERT_TRUE(anew.ok()) << anew.status();
  EXPECT_EQ(anew->batch(), 2);
}

TEST_F(BatchServiceTest, NamesTheFieldOfARequestThatIsWrong) {
  const auto refuse = [this](const auto& send) {
    Upload upload(stub_.get());
    send(upload);
    const absl::Status refused = upload.End();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    const auto violations = rpc::Violations(refused);
    if (violations.empty()) return std::string();
    EXPECT_EQ(refused.message(),
              absl::StrCat(violations[0].field, ": ", violations[0].description));
    return violations[0].field;
  };
  EXPECT_EQ(refuse([](Upload& upload) { upload.SendChunk(0, "x"); }), "header");
  EXPECT_EQ(refuse([](Upload& upload) { upload.SendHeader(Header("")); }), "header.request_id");
  EXPECT_EQ(refuse([](Upload& upload) { upload.SendHeader(Header(std::string(513, 'x'))); }),
            "header.request_id");
  EXPECT_EQ(refuse([](Upload& upload) {
              upload.SendHeader(Header("a"));
              upload.SendHeader(Header("a"));
            }),
            "header");
  EXPECT_EQ(refuse([](Upload& upload) {
              upload.SendHeader(Header("b"));
              upload.SendChunk(0, std::string((1 << 20) + 1, 'x'));
            }),
            "chunk.data");
  EXPECT_EQ(refuse([](Upload& upload) {
              upload.SendHeader(Header("empty"));
              upload.SendChunk(0, "");
            }),
            "chunk.data");
  for (const size_t bytes : {0, 15, 17}) {
    EXPECT_EQ(refuse([bytes](Upload& upload) {
                upload.SendHeader(Header("sealed"));
                v1::SubmitRequest request;
                request.mutable_seal()->set_content_hash(std::string(bytes, 'x'));
                upload.stream->Write(request);
              }),
              "seal.content_hash");
  }
  EXPECT_EQ(refuse([](Upload& upload) {
              upload.SendHeader(Header("c"));
              upload.stream->Write(v1::SubmitRequest());
            }),
            "step");
  const auto refuse_trace = [&](const std::string& parent, const std::string& state) {
    return refuse([&](Upload& upload) {
      v1::SubmitHeader header = Header("d");
      header.set_traceparent(parent);
      header.set_tracestate(state);
      upload.SendHeader(header);
    });
  };
  EXPECT_EQ(refuse_trace("on", ""), "header.traceparent");
  EXPECT_EQ(refuse_trace("", "a=b"), "header.tracestate");
  EXPECT_EQ(refuse_trace(kTraceparent, std::string(513, 'x')), "header.tracestate");
  EXPECT_EQ(refuse_trace(kTraceparent, "a=\n"), "header.tracestate");
}

TEST_F(BatchServiceTest, KnowsNoJobThatWasNotApplied) {
  v1::SubmitHeader header = Header("x");
  header.set_job("unheard-of");
  Upload upload(stub_.get());
  upload.SendHeader(header);
  const absl::Status unknown = upload.End();
  EXPECT_TRUE(absl::IsNotFound(unknown)) << unknown;
  EXPECT_EQ(rpc::Reason(unknown), (rpc::ErrorReason{"NO_SUCH_JOB", {{"job", "unheard-of"}}}));
}

TEST_F(BatchServiceTest, CancelsABatchWhoseContentTheJobCannotRead) {
  const auto submitted = Submit("bad", "no such column\n1\n");
  uint64_t batch = 1;
  if (submitted.ok()) batch = submitted->batch();
  const auto last = Watch(batch);
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->state(), v1::BATCH_STATE_CANCELLED);
  EXPECT_THAT(last->cancel_reason(), HasSubstr("has no column"));
}

TEST_F(BatchServiceTest, GivesABatchUpOnRequest) {
  const auto submitted = Submit("unwanted", Input(100));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  for (int times = 0; times < 2; ++times) {
    rpc::CallContext context;
    v1::CancelBatchRequest request;
    request.set_batch(submitted->batch());
    request.set_reason(times == 0 ? "sent twice" : "");
    v1::CancelBatchResponse response;
    const absl::Status cancelled = rpc::FromGrpc(stub_->CancelBatch(&context, request, &response));
    ASSERT_TRUE(cancelled.ok()) << cancelled;
    EXPECT_EQ(response.status().state(), v1::BATCH_STATE_CANCELLED);
    EXPECT_EQ(response.status().cancel_reason(), "sent twice");
  }
  const auto last = Watch(submitted->batch());
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_FALSE(last->complete());
}

TEST_F(BatchServiceTest, SaysWhyABatchWaitsAsLongAsItDoes) {
  const auto await_problem = [this](bool there) {
    v1::GetBatchRequest request;
    request.set_batch(1);
    v1::GetBatchResponse response;
    for (uint64_t seen = 0;;
         keeper_->AwaitNews(&seen, base::RealClock()->Monotonic() + absl::Milliseconds(100))) {
      rpc::CallContext context;
      EXPECT_TRUE(stub_->GetBatch(&context, request, &response).ok());
      if (response.status().problem().empty() != there) return response.status().problem();
    }
  };
  counted_queues_.SetDown(true);
  const auto submitted = Submit("waits", Input(100));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_THAT(await_problem(true), HasSubstr("no queue answers"));
  counted_queues_.SetDown(false);
  await_problem(false);
  StartProcessor();
  const auto last = Watch(submitted->batch());
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->aggregated(), 100);
}

TEST_F(BatchServiceTest, SaysInTheReceiptThatABatchWasCancelledAndWhatIsCountedSoFar) {
  const auto submitted = Submit("unwanted", Input(100));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  AwaitQueued(submitted->batch(), 5);
  ASSERT_TRUE(keeper_->Cancel(submitted->batch(), "sent twice").ok());
  EXPECT_THAT(Receipt(submitted->batch()),
              AllOf(HasSubstr("\nstate cancelled\n"), HasSubstr("\ncancel_reason sent twice\n"),
                    HasSubstr("\ncounts so_far\nas_of 2"), HasSubstr("\naggregated 0\n"),
                    HasSubstr("\nuncounted 100\n")));
  // Nobody has told this processor: it does what was put all the same.
  StartProcessor();
  for (uint64_t seen = 0; keeper_->Get(submitted->batch())->counted.items() < 5;) {
    keeper_->AwaitNews(&seen, base::RealClock()->Monotonic() + absl::Milliseconds(100));
  }
  EXPECT_THAT(Receipt(submitted->batch()),
              AllOf(HasSubstr("\ncounts final\n"), HasSubstr("\naggregated 100\n"),
                    HasSubstr("\nuncounted 0\nitems_by_version 5 1\n")));
}

TEST_F(BatchServiceTest, HasTheReceiptOfABatchThatWasCancelledBeforeAnythingArrived) {
  Upload upload(stub_.get());
  upload.SendHeader(Header("unwanted"));
  const uint64_t batch = upload.Hear().accepted().batch();
  ASSERT_TRUE(keeper_->Cancel(batch, "").ok());
  EXPECT_THAT(Receipt(batch), AllOf(HasSubstr("\ncancel_reason \ncounts final\n"),
                                    HasSubstr("\ntransactions 0\n")));
  upload.End().IgnoreError();
}

TEST_F(BatchServiceTest, HasNoReceiptOfABatchThatIsStillWorkedOn) {
  const auto submitted = Submit("waits", Input(100));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  AwaitQueued(submitted->batch(), 5);
  rpc::CallContext context;
  v1::GetReceiptRequest request;
  request.set_batch(submitted->batch());
  v1::GetReceiptResponse receipt;
  const absl::Status none = rpc::FromGrpc(stub_->GetReceipt(&context, request, &receipt));
  EXPECT_TRUE(absl::IsFailedPrecondition(none)) << none;
  EXPECT_THAT(none.message(), HasSubstr("0 of its 5 items"));
}

TEST_F(BatchServiceTest, RefusesTheRestOfAnUploadThatWasCancelled) {
  Upload upload(stub_.get());
  upload.SendHeader(Header("unwanted"));
  upload.Hear();
  ASSERT_TRUE(keeper_->Cancel(1, "unwanted").ok());
  upload.SendChunk(0, "key\n");
  const absl::Status refused = upload.End();
  EXPECT_TRUE(absl::IsCancelled(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("batch 1 is cancelled"));
}

TEST_F(BatchServiceTest, PutsAgainWhatAQueueHasLost) {
  const auto submitted = Submit("lost", Input(1000));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  AwaitQueued(submitted->batch(), 50);
  for (const queue::QueueId& id : wire::InputQueues(kAccount, "count", 2)) {
    ASSERT_TRUE(queues_->Clear(id).ok());
  }
  StartProcessor();
  const auto last = Watch(submitted->batch());
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->aggregated(), 1000);
  EXPECT_EQ(ledger_->Get(submitted->batch())->refills, 1);
}

// What a handler is told of traces, and how it answers: one item is retried, another one is given
// up until it is cured.
class TracedHandler final : public handler::Handler {
 public:
  struct Notes {
    std::atomic<bool> cured = false;
    base::Mutex mu;
    std::vector<std::optional<base::TraceContext>> traces ABSL_GUARDED_BY(mu);
  };

  explicit TracedHandler(Notes* notes) : notes_(notes) {}  // not owned

  handler::Outcome Process(const handler::WorkItem& item, handler::Results& results) override {
    {
      base::MutexLock lock(&notes_->mu);
      notes_->traces.push_back(item.trace());
    }
    if (item.index() == 5 && item.attempt() == 1) {
      return handler::Outcome::Retry(absl::Milliseconds(1), "once more");
    }
    if (item.index() == 7 && !notes_->cured) return handler::Outcome::Dead("ill");
    return counting_.Process(item, results);
  }

 private:
  Notes* const notes_;
  CountHandler counting_;
};

class TraceTest : public BatchServiceTest {
 protected:
  ~TraceTest() override {
    if (processor_ != nullptr) processor_->Stop(absl::Seconds(10)).IgnoreError();
    processor_.reset();  // before what it works with
  }

  static v1::SubmitHeader Traced(const std::string& request_id, const std::string& traceparent) {
    v1::SubmitHeader header = Header(request_id);
    header.set_traceparent(traceparent);
    return header;
  }

  v1::BatchStatus SubmitTraced(const v1::SubmitHeader& header) {
    const auto submitted = batch_remote::Submit(channel_, header, input::TextSource(Input(1000)),
                                                {}, base::RealClock(), {});
    EXPECT_TRUE(submitted.ok()) << submitted.status();
    return submitted.value_or(v1::BatchStatus());
  }

  // The trace of the batch that a stream with this metadata begins.
  std::string TraceOfCall(const std::string& request_id, const v1::SubmitHeader& header,
                          const std::multimap<std::string, std::string>& metadata) {
    Upload upload(stub_.get(), metadata);
    upload.SendHeader(header);
    upload.Hear();
    return ledger_->FindByRequestId(request_id)->trace->ToTraceparent();
  }

  void RedriveAll(uint64_t batch) {
    redrive::BatchReopener reopener(ledger_.get(), desk_.get());
    for (const queue::QueueId& id : wire::InputQueues(kAccount, "count", 2)) {
      redrive::RedriveRequest request;
      request.queue = id;
      const auto redriven = redrive::RedriveItems(request, *queues_, reopener);
      EXPECT_TRUE(redriven.ok()) << redriven.status();
    }
    keeper_->Advance(batch, absl::Seconds(5));
  }

  TracedHandler::Notes notes_;
  CountedStore put_by_processor_{queues_.get()};
};

TEST_F(TraceTest, EveryItemAttemptAndResultCarriesThatOfTheSubmit) {
  v1::SubmitHeader header = Traced("traced", kTraceparent);
  header.set_tracestate("a=b");
  const uint64_t batch = SubmitTraced(header).batch();
  AwaitQueued(batch, 50);
  for (const queue::QueueId& id : wire::InputQueues(kAccount, "count", 2)) {
    ASSERT_TRUE(queues_->Clear(id).ok());  // for a refill
  }
  StartProcessor(&put_by_processor_, [this] { return std::make_unique<TracedHandler>(&notes_); });
  EXPECT_EQ(Watch(batch)->items_dead(), 1);
  notes_.cured = true;
  RedriveAll(batch);
  const auto last = Watch(batch);
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->aggregated(), 1000);
  EXPECT_EQ(last->items_dead(), 0);
  EXPECT_EQ(last->traceparent(), kTraceparent);

  base::TraceContext trace = base::TraceContext::FromTraceparent(kTraceparent).value();
  const std::vector<std::string> results = put_by_processor_.bodies();
  for (const std::string& body : results) {
    const auto decoded = controller::DecodeResults(body, blobs_.get());
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    for (const auto& result : *decoded) EXPECT_EQ(result->trace, trace);
  }
  EXPECT_FALSE(results.empty());
  trace.state = "a=b";
  const std::vector<std::string> items = counted_queues_.bodies();
  EXPECT_GE(items.size(), 100u) << "each twice";
  for (const std::string& body : items) {
    EXPECT_EQ(wire::DecodeWorkItemHeader(body)->identity.trace, trace);
  }
  base::MutexLock lock(&notes_.mu);
  EXPECT_GE(notes_.traces.size(), 52u);
  for (const auto& seen : notes_.traces) EXPECT_EQ(seen, trace);
}

TEST_F(TraceTest, IsBegunForABatchWhoseSubmitterNamesNone) {
  const auto submit = [this](const std::string& request_id, double sample) {
    StopInitiator();
    trace_sample_ = sample;
    StartInitiator();
    return base::TraceContext::FromTraceparent(SubmitTraced(Header(request_id)).traceparent());
  };
  const auto all = submit("all", 1), none = submit("none", 0);
  ASSERT_TRUE(all.ok() && none.ok()) << all.status() << none.status();
  EXPECT_TRUE(all->sampled());
  EXPECT_FALSE(none->sampled());
  EXPECT_NE(all->trace_low, none->trace_low);
  EXPECT_EQ(submit("none", 1), none) << "it is decided once";
}

TEST_F(TraceTest, StaysThatOfTheFirstSubmit) {
  EXPECT_EQ(SubmitTraced(Traced("same", kTraceparent)).traceparent(), kTraceparent);
  const std::string other = absl::StrReplaceAll(kTraceparent, {{"4bf9", "0000"}});
  EXPECT_EQ(SubmitTraced(Traced("same", other)).traceparent(), kTraceparent);
  EXPECT_EQ(SubmitTraced(Header("same")).traceparent(), kTraceparent);
}

TEST_F(TraceTest, IsThatOfTheCallUnlessTheHeaderNamesOne) {
  const std::string other = absl::StrReplaceAll(kTraceparent, {{"4bf9", "0000"}});
  EXPECT_EQ(TraceOfCall("a", Header("a"), {{"traceparent", kTraceparent}, {"tracestate", "a=b"}}),
            kTraceparent);
  EXPECT_EQ(ledger_->FindByRequestId("a")->trace->state, "a=b");
  EXPECT_EQ(TraceOfCall("b", Traced("b", other), {{"traceparent", kTraceparent}}), other);
  // What libraries and proxies set is no mistake of the submitter.
  EXPECT_NE(TraceOfCall("c", Header("c"), {{"traceparent", "garbage"}, {"tracestate", "a=b"}}), "");
  EXPECT_EQ(ledger_->FindByRequestId("c")->trace->state, "");
  const std::string chosen =
      TraceOfCall("d", Header("d"), {{"traceparent", kTraceparent}, {"traceparent", other}});
  EXPECT_NE(chosen, kTraceparent);
  EXPECT_NE(chosen, other);
}

TEST_F(BatchServiceTest, ListsBatchesNewestFirstPageByPage) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Submit(absl::StrCat("r", i), Input(1)).ok());
  const auto page = [this](const std::string& token) {
    rpc::CallContext context;
    v1::ListBatchesRequest request;
    request.set_page_size(2);
    request.set_page_token(token);
    v1::ListBatchesResponse response;
    const absl::Status listed = rpc::FromGrpc(stub_->ListBatches(&context, request, &response));
    EXPECT_TRUE(listed.ok()) << listed;
    return response;
  };
  std::vector<std::vector<uint64_t>> pages;
  std::string token;
  do {
    const v1::ListBatchesResponse response = page(token);
    pages.emplace_back();
    for (const v1::BatchStatus& batch : response.batches()) pages.back().push_back(batch.batch());
    token = response.next_page_token();
  } while (!token.empty());
  EXPECT_THAT(pages, ElementsAre(ElementsAre(5, 4), ElementsAre(3, 2), ElementsAre(1)));
}

TEST_F(BatchServiceTest, KnowsNoBatchThatWasNeverSubmitted) {
  EXPECT_TRUE(absl::IsNotFound(Watch(77).status()));
}

}  // namespace
}  // namespace muster
