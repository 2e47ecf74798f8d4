// SPDX-License-Identifier: Apache-2.0
#include "cli/run/local_run.h"

#include <algorithm>
#include <future>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/output/environment.h"
#include "muster/backend/backend.h"
#include "muster/base/failpoint.h"
#include "muster/base/log.h"
#include "muster/base/names.h"
#include "muster/base/retry.h"
#include "muster/base/status.h"
#include "muster/item/queue_names.h"
#include "muster/os/process_limits.h"
#include "muster/queue/cost.h"
#include "muster/queue/limits.h"
#include "muster/report/report_proto.h"
#include "muster/telemetry/otlp/environment.h"
#include "services/host/build_info.h"
#include "services/initiator/batch/batch_spans.h"

namespace muster::cli {

namespace {

// How often the run looks whether the queues have lost anything.
constexpr absl::Duration kLossCheckInterval = absl::Seconds(1);
// SIGTERM to exit takes at most 5 s: workers get most of it.
constexpr absl::Duration kWorkerGrace = absl::Seconds(3);

}  // namespace

LocalRun::LocalRun(RunRequest request, base::Clock* clock)
    : request_(std::move(request)), clock_(clock), slow_items_(clock) {}

// The roles are destroyed before the stores that they use: members are declared in the opposite
// order.
LocalRun::~LocalRun() = default;

absl::StatusOr<std::unique_ptr<LocalRun>> LocalRun::Open(RunRequest request, base::Clock* clock,
                                                         const std::stop_token& stop) {
  std::unique_ptr<LocalRun> run(new LocalRun(std::move(request), clock));
  // Open the input first: a wrong path must not leave a data directory behind.
  MUSTER_ASSIGN_OR_RETURN(run->source_, initiator::batch::BatchSource::Open(
                                            run->request_.input, run->request_.job->input,
                                            /*is_new=*/true));
  run->source_size_ = run->source_->size();
  run->bytes_ = run->source_->bytes();
  const handler::JobSchema schema = run->request_.job->schema();
  MUSTER_RETURN_IF_ERROR(
      base::Annotate(run->request_.handler.factory(schema).status(), run->request_.handler_place));
  MUSTER_RETURN_IF_ERROR(run->OpenTelemetry());
  MUSTER_RETURN_IF_ERROR(run->OpenStores());
  MUSTER_FAILPOINT("run.after_open");
  MUSTER_RETURN_IF_ERROR(run->CreateRoles());
  MUSTER_ASSIGN_OR_RETURN(run->submission_, run->Submit(stop));
  run->content_batch_ = run->submission_.batch.number;
  run->engine_ = std::make_unique<initiator::batch::BatchEngine>(
      run->submission_.batch.number, run->EngineDependencies(), run->job_queues_.get(),
      std::move(run->source_));
  // Another process may hold the report for a moment, since people open the file: retry.
  report::BatchShape shape = report::ShapeOf(run->submission_.batch.number, schema);
  shape.replaces = run->submission_.batch.replaces;
  MUSTER_RETURN_IF_ERROR(base::RetryPolicy({}, clock).Run(stop, [&](const base::RetryAttempt&) {
    return run->report_->RegisterBatch(shape).status();
  }));
  run->engine_->NoteRegistered();
  MUSTER_ASSIGN_OR_RETURN(const report::Progress counted, run->CountedSoFar());
  run->counted_before_ = static_cast<uint64_t>(counted.transactions);
  {
    base::MutexLock lock(&run->mu_);
    run->counted_ = counted;
  }
  MUSTER_RETURN_IF_ERROR(run->ReopenIfReportIncomplete());
  return run;
}

// The report may have been deleted, or restored from an older copy, since the batch was completed.
absl::Status LocalRun::ReopenIfReportIncomplete() {
  if (submission_.start != initiator::batch::Start::kDone) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const report::Progress counted, CountedSoFar());
  const ledger::Batch& batch = submission_.batch;
  if (static_cast<uint64_t>(counted.items()) == batch.items &&
      static_cast<uint64_t>(counted.transactions) == batch.transactions) {
    return absl::OkStatus();
  }
  base::Log(base::kWarning, "the report lacks items of a batch that was done",
            {{"batch", batch.number}, {"items", batch.items}, {"counted", counted.items()}});
  MUSTER_RETURN_IF_ERROR(ledger_->Reopen(batch.number));
  MUSTER_FAILPOINT("run.after_reopen");
  submission_.start = initiator::batch::Start::kContinued;
  return absl::OkStatus();
}

absl::Status LocalRun::OpenTelemetry() {
  host::HostOptions options(host::kProcessor);
  options.service = "muster-run";
  options.instance = base::MakeInstanceId("run");
  options.metrics = request_.metrics;
  options.allow_plaintext_metrics = request_.allow_plaintext_metrics;
  MUSTER_ASSIGN_OR_RETURN(telemetry_, host::HostTelemetry::Start(options, clock_));
  if (telemetry_ != nullptr) telemetry_->TellReadiness([] { return absl::OkStatus(); });
  return absl::OkStatus();
}

telemetry::Registry* LocalRun::metrics() const {
  return telemetry_ == nullptr ? nullptr : telemetry_->registry();
}

telemetry::SpanSink* LocalRun::spans() const {
  return telemetry_ == nullptr ? nullptr : telemetry_->spans();
}

absl::Status LocalRun::OpenStores() {
  const backend::DataDirUrls urls(request_.data_dir);
  const backend::Mode mode = backend::Mode::kReadWrite;
  // Such a store stays so until it is opened again, and the roles would try for ever.
  const auto on_failure = [this](const absl::Status& why) { wakeup_.Fail(why); };
  // Each store creates files and syncs them one by one: opened in parallel they take as long as the
  // slowest.
  auto queues = std::async(std::launch::async, [&] {
    return backend::OpenQueueStore(urls.queue, mode, backend::Holders::kInProcess, clock_, nullptr,
                                   on_failure);
  });
  auto ledger = std::async(std::launch::async,
                           [&] { return backend::OpenBatchLedger(urls.ledger, mode, on_failure); });
  auto sync = std::async(std::launch::async, [&] {
    return backend::OpenSyncStore(urls.sync, mode, nullptr, on_failure);
  });
  MUSTER_ASSIGN_OR_RETURN(stored_queues_, queues.get());
  queue::QueueStore* outermost = stored_queues_.get();
  if (request_.calls_per_second > 0) {
    throttle_ =
        std::make_unique<queue::ThrottledStore>(outermost, request_.calls_per_second, clock_);
    outermost = throttle_.get();
  }
  queues_ = std::make_unique<queue::MeteredStore>(outermost);
  MUSTER_ASSIGN_OR_RETURN(ledger_, ledger.get());
  MUSTER_ASSIGN_OR_RETURN(sync_, sync.get());
  MUSTER_ASSIGN_OR_RETURN(blobs_, backend::OpenBlobStore(urls.blobs));
  MUSTER_ASSIGN_OR_RETURN(report_, backend::OpenReportStore(urls.report, mode, clock_));
  MUSTER_ASSIGN_OR_RETURN(bus_, backend::OpenTriggerBus("local:"));
  // One at a time: batches are few, and people like small numbers without gaps.
  batch_numbers_ = std::make_unique<sync::UniqueIdGenerator>(
      sync_.get(), initiator::batch::kBatchNumbers, sync::UniqueIdOptions{.range_size = 1});
  job_queues_ =
      std::make_unique<initiator::batch::JobQueues>(queues_.get(), item::kLocalAccount, clock_);
  back_pressure_ = std::make_unique<initiator::batch::BackPressure>(request_.back_pressure,
                                                                    queues_.get(), clock_);
  return absl::OkStatus();
}

// The file of this run's batch is open already. The queue may also hold items of other batches, of
// runs that were cut off.
absl::StatusOr<std::shared_ptr<const input::ByteSource>> LocalRun::OpenContent(uint64_t batch) {
  if (batch == content_batch_) return bytes_;
  MUSTER_ASSIGN_OR_RETURN(const ledger::Batch other, ledger_->Get(batch));
  return initiator::batch::OpenUsersContent(other);
}

void LocalRun::OnDamage(uint64_t batch, const absl::Status& why) {
  if (batch != content_batch_) return;  // its items wait until it is run again
  wakeup_.Fail(absl::FailedPreconditionError(
      absl::StrCat(why.message(),
                   ". What is counted stays. Put the file back as it was and run the same command "
                   "again; or run the new content with a --request-id of its own, or with --new, "
                   "beside batch ",
                   batch)));
}

// Nothing else would take up the work of this process, and its limits stay as they are.
void LocalRun::OnNoWorker(const absl::Status& why) {
  wakeup_.Fail(absl::ResourceExhaustedError(absl::StrCat(
      "no worker can start: ", why.message(), "; ", os::kRaiseThreadLimits,
      ". What is counted stays: the same command goes on with batch ", submission_.batch.number)));
}

absl::Status LocalRun::CreateRoles() {
  const std::string account = item::kLocalAccount;
  content_ = std::make_unique<content::LedgerContent>(content::LedgerContent::Dependencies{
      .ledger = ledger_.get(),
      .blobs = blobs_.get(),
      .open = [this](uint64_t batch) { return OpenContent(batch); },
      .on_damage = [this](const content::ItemReference& item,
                          const absl::Status& why) { OnDamage(item.batch, why); },
      .keeps_copies = true});
  MUSTER_ASSIGN_OR_RETURN(
      processor_,
      processor::Processor::Create(
          request_.job, request_.handler.factory, request_.handler.version,
          processor::Dependencies{
              .queues = queues_.get(),
              .bus = bus_.get(),
              .blobs = blobs_.get(),
              .clock = clock_,
              .content = content_.get(),
              .slow_items = &slow_items_,
              .is_over = [this](uint64_t batch) { return ledger::IsOver(*ledger_, batch); },
              .metrics = metrics(),
              .spans = spans(),
              .held_keys = sync_.get()},
          processor::Options{
              .account = account,
              .threads = request_.threads,
              .isolated_handlers = request_.handler.isolated,
              .restarts = request_.handler.restarts,
              .on_no_worker = [this](const absl::Status& why) { OnNoWorker(why); }}));
  MUSTER_ASSIGN_OR_RETURN(
      controller_,
      controller::Controller::Create(
          controller::Options{.partitions = {item::OutputQueue(account, request_.job->name, 0)}},
          ControllerEvents(),
          controller::Dependencies{queues_.get(), bus_.get(), ledger_.get(), report_.get(),
                                   blobs_.get(), clock_, metrics(), spans()}));
  report_client_ = std::make_unique<report::LocalReportClient>(
      report_.get(), [this](uint64_t batch) { return controller_->CheckCompletion(batch); });
  return absl::OkStatus();
}

controller::Events LocalRun::ControllerEvents() {
  controller::Events events;
  events.on_progress = [this](const report::Progress& progress) {
    base::MutexLock lock(&mu_);
    if (progress.batch == submission_.batch.number) counted_ = progress;
  };
  events.on_complete = [this](uint64_t batch) {
    if (batch == submission_.batch.number) wakeup_.Notify();
  };
  events.on_error = [this](const absl::Status& status) { wakeup_.Fail(status); };
  return events;
}

absl::StatusOr<initiator::batch::Submission> LocalRun::Submit(const std::stop_token& stop) {
  initiator::batch::SubmitRequest submit;
  const bool chosen = !request_.request_id.empty();
  submit.request_id =
      chosen ? request_.request_id : absl::StrCat(request_.job->name, ":", source_->path());
  submit.handler_version = request_.handler.version;
  submit.allow_new_revision = !chosen;
  submit.always_new = request_.always_new;
  submit.trace = request_.trace;
  submit.sla = request_.sla;
  const bool is_new =
      absl::IsNotFound(ledger_->FindByRequest(submit.tenant, submit.request_id).status());
  if (is_new && !submit.always_new) MUSTER_RETURN_IF_ERROR(CheckReportIsKnown());
  initiator::batch::BatchOpener opener(
      request_.job, source_.get(), ledger_.get(), batch_numbers_.get(), clock_,
      telemetry::TraceSampleOr(initiator::batch::kDefaultTraceSample));
  absl::StatusOr<initiator::batch::Submission> begun = opener.Open(submit, stop);
  if (!begun.ok()) return WithWayOut(begun.status(), submit);
  if (begun->start == initiator::batch::Start::kNew) {
    initiator::batch::RecordSubmit(spans(), begun->batch, begun->batch.created, clock_->Now());
  }
  return begun;
}

absl::Status LocalRun::WithWayOut(const absl::Status& refused,
                                  const initiator::batch::SubmitRequest& submit) {
  if (!absl::IsFailedPrecondition(refused)) return refused;
  const absl::StatusOr<ledger::Batch> prior =
      ledger_->FindByRequest(submit.tenant, submit.request_id);
  if (!prior.ok() || ledger::IsOver(prior->state)) return refused;
  return absl::FailedPreconditionError(absl::StrCat(refused.message(), ". Batch ", prior->number,
                                                    " stays open; to give it up, ",
                                                    HowToGiveUp(prior->number, request_.data_dir)));
}

absl::Status LocalRun::CheckReportIsKnown() {
  MUSTER_ASSIGN_OR_RETURN(const auto reader, report_->Read());
  MUSTER_ASSIGN_OR_RETURN(const std::vector<uint64_t> batches,
                          reader->BatchesOf(request_.job->name));
  for (const uint64_t batch : batches) {
    if (!absl::IsNotFound(ledger_->Get(batch).status())) continue;
    return absl::DataLossError(absl::StrCat(
        "the report holds batch ", batch, " of job '", request_.job->name,
        "', and the ledger does not know it: a new batch could count its input twice. `muster "
        "check --repair",
        DataDirOption(request_.data_dir),
        "` takes the batch out of the report; --new begins another one beside it"));
  }
  return absl::OkStatus();
}

initiator::batch::EngineDependencies LocalRun::EngineDependencies() {
  initiator::batch::EngineDependencies dependencies;
  dependencies.stores = {queues_.get(), bus_.get(), ledger_.get(), blobs_.get(),
                         clock_,        spans(),    metrics()};
  dependencies.options.account = item::kLocalAccount;
  dependencies.report_client = report_client_.get();
  dependencies.back_pressure = back_pressure_.get();
  return dependencies;
}

absl::StatusOr<RunSummary> LocalRun::Run(const std::stop_token& stop) {
  const absl::Duration start = clock_->Monotonic();
  const bool was_done = submission_.start == initiator::batch::Start::kDone;
  if (!was_done) {
    MUSTER_RETURN_IF_ERROR(job_queues_->Ensure(*request_.job));
    MUSTER_RETURN_IF_ERROR(controller_->Start());
    MUSTER_RETURN_IF_ERROR(processor_->Start());
  }
  std::stop_source end;
  const std::stop_callback on_stop(stop, [&end] { end.request_stop(); });
  const std::unique_ptr<HeldWatch> watch =
      was_done ? nullptr : WatchHeldKeys([&end] { end.request_stop(); });
  // Also for a batch that was done: the run that completed it may have been killed since.
  const absl::StatusOr<initiator::batch::StepResult> ended =
      RunToEnd(engine_.get(), &wakeup_, clock_, kLossCheckInterval, end.get_token());
  if (was_done) {
    MUSTER_RETURN_IF_ERROR(ended.status());
    return Summarise(submission_.batch.completed.value_or(submission_.batch.created) -
                     submission_.batch.created);
  }
  const absl::Status stopped = StopRoles();
  if (!ended.ok() && !absl::IsCancelled(ended.status())) return ended.status();
  MUSTER_RETURN_IF_ERROR(engine_->refusal());
  if (!stopped.ok()) {
    base::Log(base::kWarning, "some work was cut off when its workers stopped",
              {{"why", stopped.ToString()}});
  }
  const absl::Duration lapse = clock_->Monotonic() - start;
  RecordUsage(lapse);
  MUSTER_ASSIGN_OR_RETURN(RunSummary summary, Summarise(lapse));
  if (watch != nullptr && !summary.complete) summary.held = watch->found();
  return summary;
}

std::unique_ptr<HeldWatch> LocalRun::WatchHeldKeys(std::function<void()> end) {
  if (request_.job->on_poison != job::OnPoison::kHold) return nullptr;
  HeldWatch::Sources sources;
  sources.inputs =
      item::InputQueues(item::kLocalAccount, request_.job->name, request_.job->queue.partitions);
  sources.output = item::OutputQueue(item::kLocalAccount, request_.job->name, 0);
  sources.queues = stored_queues_.get();  // a look is no call of the run's
  sources.records = sync_.get();
  sources.clock = clock_;
  sources.is_put = [this]() -> absl::StatusOr<bool> {
    MUSTER_ASSIGN_OR_RETURN(const ledger::Batch batch, ledger_->Get(submission_.batch.number));
    return batch.state == ledger::BatchState::kSealed && batch.enqueued_items == batch.items;
  };
  sources.on_held = std::move(end);
  return std::make_unique<HeldWatch>(std::move(sources));
}

void LocalRun::RecordUsage(absl::Duration lapse) {
  const listener::ListenerCounters counters = processor_->listener().counters();
  queue::RunUsage run;
  run.batch = submission_.batch.number;
  run.ended = clock_->Now();
  run.seconds = absl::ToDoubleSeconds(lapse);
  run.partitions = request_.job->queue.partitions;
  run.threads = request_.threads;
  run.usage.transactions = queues_->transactions();
  run.usage.wakeups_push = counters.wakeups_push;
  run.usage.wakeups_safety = counters.wakeups_safety;
  // Counts the triggers about items, which the processor receives, and about results, which it
  // sends.
  run.usage.bus_messages = counters.triggers_heard + counters.triggers_sent;
  const std::string file = backend::DataDirUrls(request_.data_dir).usage_file;
  if (const absl::Status noted = queue::AppendUsage(file, run); !noted.ok()) {
    base::Log(base::kWarning, "the bill of this run is lost", {{"why", noted.ToString()}});
  }
}

absl::Status LocalRun::StopRoles() {
  // Senders before receivers: what the processor settles while it stops is still counted if it can.
  absl::Status processed = processor_->Stop(kWorkerGrace);
  controller_->Stop();
  return processed;
}

absl::StatusOr<report::Progress> LocalRun::CountedSoFar() {
  MUSTER_ASSIGN_OR_RETURN(const auto reader, report_->Read());
  return reader->GetProgress(submission_.batch.number);
}

absl::StatusOr<RunSummary> LocalRun::Summarise(absl::Duration lapse) {
  RunSummary summary;
  MUSTER_ASSIGN_OR_RETURN(summary.batch, ledger_->Get(submission_.batch.number));
  MUSTER_ASSIGN_OR_RETURN(summary.progress, CountedSoFar());
  summary.start = submission_.start;
  summary.counted_before =
      submission_.start == initiator::batch::Start::kDone ? 0 : counted_before_;
  summary.complete = summary.batch.state == ledger::BatchState::kComplete;
  summary.lapse = lapse;
  summary.promise =
      item::StateOfPromise(summary.batch, static_cast<int64_t>(summary.batch.transactions),
                           summary.progress.transactions, clock_->Now());
  return summary;
}

RunProgress LocalRun::progress() const {
  const initiator::batch::SplitProgress split =
      engine_->split_progress().value_or(initiator::batch::SplitProgress());
  RunProgress progress;
  progress.read = split.transactions_read;
  progress.queued = split.transactions_enqueued;
  const double size = static_cast<double>(source_size_);
  progress.split = size > 0 ? static_cast<double>(split.bytes_read) / size : 1;
  base::MutexLock lock(&mu_);
  progress.committed = static_cast<uint64_t>(counted_.transactions);
  progress.rejected = static_cast<uint64_t>(counted_.rejected);
  progress.dead_lettered = static_cast<uint64_t>(counted_.dead_lettered);
  progress.processed =
      std::max(progress.committed, processor_->transactions_processed() + counted_before_);
  return progress;
}

}  // namespace muster::cli
