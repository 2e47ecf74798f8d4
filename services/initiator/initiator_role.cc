// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/initiator_role.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/args/option.h"
#include "muster/backend/backend.h"
#include "muster/base/status.h"
#include "muster/content/ledger_content.h"
#include "muster/partition/member_metrics.h"
#include "muster/release/releases.h"
#include "muster/schedule/occurrence.h"
#include "muster/schedule/schedule_store.h"
#include "muster/stream/event_stream_store.h"
#include "muster/telemetry/catalogue.h"
#include "muster/telemetry/otlp/environment.h"
#include "muster/v1/heartbeat.pb.h"
#include "services/initiator/api/local_reopener.h"
#include "services/initiator/api/mesh_reopener.h"
#include "services/initiator/api/release_service.h"
#include "services/initiator/api/schedule_service.h"
#include "services/initiator/back_pressure_metrics.h"
#include "services/initiator/back_pressure_options.h"
#include "services/initiator/batch/batch_number_recovery.h"
#include "services/initiator/batch/damaged_items.h"
#include "services/initiator/batch_metrics.h"
#include "services/initiator/call/call_batches.h"
#include "services/initiator/call/call_gatherer.h"
#include "services/initiator/call/call_outcomes.h"
#include "services/initiator/call/call_service.h"
#include "services/initiator/queue_metrics.h"
#include "services/initiator/release_metrics.h"
#include "services/initiator/schedule/runner.h"
#include "services/initiator/schedule_metrics.h"
#include "services/initiator/submit/directory_id.h"
#include "services/initiator/submit/handler_versions.h"
#include "services/initiator/submit/submit_whole.h"
#include "services/initiator/wait_sources.h"
#include "services/queue-admin/queue_service.h"

namespace muster::initiator {
namespace {

// A restart skips at most so many batch numbers, which stay short for people.
constexpr int64_t kReservedNumbers = 10;
// A controller that does not answer within this time counts as away; the initiator asks it again
// later.
constexpr absl::Duration kControllerTimeout = absl::Seconds(10);
// The heartbeat's contract names it; they take a tenth of a heartbeat's room.
constexpr size_t kMaxHeldQueues = 64;

void TellHeldBack(const batch::BackPressure& back_pressure, v1::Heartbeat* heartbeat) {
  for (const batch::BackPressure::HeldQueue& held : back_pressure.HeldQueues(kMaxHeldQueues)) {
    v1::HeldBack* const told = heartbeat->add_held_back();
    told->set_queue(held.queue.ToString());
    told->set_items(held.items);
  }
}

// Of the partition that the group "STREAM/GROUP" reads; nullopt: it reads no stream.
std::optional<stream::PartitionExtent> ExtentOfStream(stream::EventStreamStore* streams,
                                                      const std::string& group, int partition) {
  const std::string stream = group.substr(0, group.find('/'));
  if (!stream::ValidateStreamName(stream).ok()) return std::nullopt;
  const absl::StatusOr<stream::PartitionExtent> extent = streams->Extent(stream, partition);
  return extent.ok() ? std::optional<stream::PartitionExtent>(*extent) : std::nullopt;
}

}  // namespace

struct InitiatorRole::Parts {
  Parts(InitiatorRole* role, const host::Stores& stores)
      : agent([role] { return role->membership_->AddressesOf(v1::ROLE_SCALING_AGENT); },
              role->host_.channel()),
        report_client([role] { return role->Controllers(); }, role->host_.channel(),
                      kControllerTimeout),
        jobs(stores.sync, role->clock_),
        versions(&jobs, &role->membership_->roster(), role->clock_),
        admission({stores.queues, role->throughput_.get(), &agent, role->clock_,
                   role->host_.account,
                   [role](const queue::QueueId& queue) { return role->HeldBackFrom(queue); }}),
        cancelled(stores.sync),
        claims(stores.sync, {role->directory_id_, role->host_.instance, stores.address},
               submit::AskInitiators(
                   [role] { return role->membership_->AddressesOf(v1::ROLE_INITIATOR); },
                   role->host_.channel())),
        suspended(stores.sync),
        item_content({.ledger = role->ledger_.get(),
                      .blobs = stores.blobs,
                      .open = [role](uint64_t batch) { return role->OpenContent(batch); },
                      .on_damage =
                          [this](const content::ItemReference& item, const absl::Status&) {
                            damaged.Note(item);
                            scheduler.Advance(item.batch);
                          }}),
        quotes({&jobs, &agent, role->ledger_.get(), role->clock_}, role->host_.account),
        wait_reasons(
            WaitSources({role->membership_.get(), &agent, &jobs, stores.sync, role->host_.account,
                         [role] { return !role->Controllers().empty(); }}),
            role->host_.account, role->clock_),
        numbers(stores.sync, batch::kBatchNumbers,
                {.range_size = kReservedNumbers,
                 .begin_at =
                     [role, this, began = role->clock_->Monotonic()](bool lost) {
                       return batch::FirstBatchNumber(role->ledger_.get(), &report_client,
                                                      role->clock_, lost,
                                                      role->clock_->Monotonic() - began);
                     },
                 .highest_given =
                     [role, this, began = role->clock_->Monotonic()] {
                       return batch::HighestBatchNumber(role->ledger_.get(), &report_client,
                                                        role->clock_->Monotonic() - began);
                     }}),
        batch_metrics(role->clock_, stores.metrics),
        other_ledgers([role] { return role->membership_->AddressesOf(v1::ROLE_INITIATOR); },
                      role->host_.channel()),
        scheduler(role->Tools(stores, this),
                  batch::SchedulerOptions{.uploads = role->options_.uploads}),
        submissions({&jobs, role->ledger_.get(), &numbers, role->uploads_.get(),
                     [this](const job::JobDefinition& job) { return versions.Current(job); },
                     [this](const job::JobDefinition& job) { return admission.Admit(job); },
                     role->clock_, role->options_.trace_sample,
                     role->directory_id_.empty() ? nullptr : &claims, role->directory_id_,
                     stores.spans,
                     [this](const ledger::Batch& batch) { return ConfirmOccurrence(batch); },
                     [this] { return scheduler.CheckUploads(); }}),
        reopener(role->ledger_.get(), &report_client, &versions, &scheduler),
        mesh_reopener(&reopener, &other_ledgers),
        batch_service(
            {&submissions, &scheduler, role->uploads_.get(), role->ledger_.get(), &report_client,
             role->clock_, [role] { return role->Processors(); }, &quotes, &wait_reasons,
             [role](const ledger::Batch& batch) { return role->uploads_->OpenRecorded(batch); },
             &jobs, stores.queues, role->host_.account}),
        call_batches(&submissions, &jobs),
        call_outcomes(
            [role] { return role->Controllers(); }, role->host_.channel(), kControllerTimeout,
            role->ledger_.get(),
            [role](const ledger::Batch& batch) { return role->uploads_->OpenRecorded(batch); }),
        calls({.make = [this](auto records) { return call_batches.Make(records); },
               .advance = [this](uint64_t batch) { scheduler.Advance(batch); },
               .get = [role](uint64_t batch) { return role->ledger_->Get(batch); },
               .read = [this](uint64_t batch,
                              const auto& visit) { return call_outcomes.Read(batch, visit); },
               .why = [this](uint64_t batch) { return WhyWaiting(batch); }},
              role->clock_),
        call_service(&calls, role->clock_),
        job_service(&jobs, stores.bus, role->host_.instance,
                    [role](absl::string_view job) { return role->FindRunningBatch(job); }),
        releases(stores.sync, stores.bus, role->host_.instance, role->clock_),
        release_service(&releases, &role->membership_->roster()),
        schedules(stores.sync, stores.blobs, role->clock_),
        schedule_runner({&schedules, role->clock_, role->directory_id_, SubmitterOf(role)}),
        schedule_service({&schedules, &jobs, role->clock_, SubmitterOf(role),
                          [this](absl::string_view name) { schedule_runner.Wake(name); }}),
        queue_service(stores.queues, &mesh_reopener, stores.sync, stores.bus, role->host_.instance),
        partition_service(stores.sync,
                          [streams = stores.streams](const std::string& group, int partition) {
                            return ExtentOfStream(streams, group, partition);
                          }),
        stream_service({.events = stores.streams, .sync = stores.sync, .metrics = stores.metrics},
                       role->clock_,
                       [heartbeats = stores.heartbeats] { return heartbeats->CanReceive(); }),
        ledger_service(
            role->ledger_.get(), &reopener, &item_content,
            [role](const ledger::Batch& batch) { return role->uploads_->FileOf(batch); },
            {.wants_outcome = [this](uint64_t batch) { return calls.WaitFor(batch); },
             .on_complete =
                 [this](uint64_t batch, const v1::BatchOutcome* outcome) {
                   if (outcome != nullptr) {
                     calls.NoteOutcome(batch, *outcome);
                   } else {
                     calls.NoteOver(batch);
                   }
                   scheduler.Advance(batch);
                 }},
            [role](const v1::FindRequestRequest& request) { return role->FindRequest(request); }),
        queue_metrics(
            {stores.queues, &jobs,
             [heartbeats = stores.heartbeats] { return heartbeats->CanReceive(); },
             [role](const std::string& job) { return role->throughput_->ItemsPerSecond(job); },
             role->host_.account, role->clock_},
            stores.metrics),
        reading_back_pressure(ReadBackPressure(stores.metrics, role->back_pressure_.get())),
        reading_schedules(ReadSchedules(stores.metrics, &schedule_runner)),
        reading_releases(ReadReleases(stores.metrics, &releases, [heartbeats = stores.heartbeats] {
          return heartbeats->CanReceive();
        })) {
    partition::ShowMemberMetrics(stores.metrics);
    telemetry::FamilyOf(stores.metrics, telemetry::kRefilledItems.entry());
    batch_metrics.Watch(&scheduler);
  }
  ~Parts() {
    scheduler.Stop();  // it tells `calls`, which end before it
    batch_metrics.Close();
  }

  // Empty: something is done for the batch, or it is not known.
  std::string WhyWaiting(uint64_t batch) {
    absl::StatusOr<batch::BatchStatus> found = scheduler.Get(batch);
    if (!found.ok()) return "";
    wait_reasons.Explain(&*found);
    return std::string(found->problem.message());
  }

  absl::Status ConfirmOccurrence(const ledger::Batch& batch) {
    const auto occurrence = muster::schedule::OccurrenceOf(batch.request_id, batch.labels);
    if (!occurrence.has_value()) return absl::OkStatus();
    return muster::schedule::Confirm(&schedules, *occurrence);
  }

  absl::Status SettleOccurrence(const ledger::Batch& batch, absl::Time now) {
    const auto occurrence = muster::schedule::OccurrenceOf(batch.request_id, batch.labels);
    if (!occurrence.has_value()) return absl::OkStatus();
    return muster::schedule::Settle(&schedules, *occurrence, batch.number, now);
  }

  // Submits what schedules are made of.
  schedule::Submit SubmitterOf(InitiatorRole* role) {
    return [this, role](const v1::SubmitHeader& header, const std::string& content) {
      return submit::SubmitWhole(
          {&submissions, &scheduler, role->uploads_.get(), role->ledger_.get()}, header, content);
    };
  }

  client::ScalingLeaderClient agent;
  report::remote::RemoteReportClient report_client;
  job::JobRegistry jobs;
  submit::HandlerVersions versions;
  submit::Admission admission;
  item::CancelledBatches cancelled;
  submit::RequestClaims claims;
  item::SuspendedBatches suspended;
  batch::DamagedItems damaged;
  content::LedgerContent item_content;
  api::Quotes quotes;
  api::WaitReasons wait_reasons;
  sync::UniqueIdGenerator numbers;
  BatchMetrics batch_metrics;
  ledger::remote::RemoteBatchRecords other_ledgers;
  batch::BatchScheduler scheduler;
  submit::Submissions submissions;
  api::LocalReopener reopener;
  api::MeshReopener mesh_reopener;
  api::BatchService batch_service;
  call::CallBatches call_batches;
  call::CallOutcomes call_outcomes;
  call::CallGatherer calls;
  call::CallService call_service;
  api::JobService job_service;
  release::Releases releases;
  api::ReleaseService release_service;
  muster::schedule::ScheduleStore schedules;
  schedule::ScheduleRunner schedule_runner;
  api::ScheduleService schedule_service;
  queue_admin::QueueService queue_service;
  api::PartitionService partition_service;
  api::StreamService stream_service;
  api::LedgerService ledger_service;
  QueueMetrics queue_metrics;
  std::unique_ptr<telemetry::Reading> reading_back_pressure;
  std::unique_ptr<telemetry::Reading> reading_schedules;
  std::unique_ptr<telemetry::Reading> reading_releases;
};

InitiatorRole::InitiatorRole(const host::HostOptions& host, RoleOptions options, base::Clock* clock)
    : host_(host), options_(std::move(options)), clock_(clock) {}

InitiatorRole::~InitiatorRole() = default;

// The host calls this again after a transient error, so each part that is already open stays.
absl::Status InitiatorRole::Open(const host::Stores& stores, const host::Fail& fail) {
  if (ledger_ == nullptr) MUSTER_RETURN_IF_ERROR(OpenData(fail, stores.metrics));
  if (membership_ == nullptr) {
    back_pressure_ =
        std::make_unique<batch::BackPressure>(options_.back_pressure, stores.queues, clock_);
    const auto complete = [back_pressure = back_pressure_.get()](absl::Duration,
                                                                 v1::Heartbeat* heartbeat) {
      TellHeldBack(*back_pressure, heartbeat);
    };
    MUSTER_ASSIGN_OR_RETURN(membership_, host::Membership::Join(v1::ROLE_INITIATOR, host_.instance,
                                                                stores, clock_, complete));
  }
  if (throughput_ == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(throughput_,
                            submit::JobThroughput::Open(stores.heartbeats, &membership_->roster(),
                                                        host_.account, clock_));
  }
  parts_ = std::make_unique<Parts>(this, stores);
  if (!directory_id_.empty()) {
    base::LogUnlessOk(base::kWarning,
                      "request ids whose claims were lost may begin batches elsewhere",
                      parts_->claims.RestoreLost(ledger_.get()));
  }
  MUSTER_RETURN_IF_ERROR(parts_->scheduler.Start());
  parts_->schedule_runner.Start();
  return absl::OkStatus();
}

absl::Status InitiatorRole::OpenData(const host::Fail& fail, telemetry::Registry* metrics) {
  MUSTER_RETURN_IF_ERROR(host_.CreateDataDir());
  // Where the shared stores lie in the data directory, no second initiator can open them.
  if (!host_.is_embedded()) {
    MUSTER_ASSIGN_OR_RETURN(directory_id_, submit::OpenDirectoryId(host_.data_dir));
  }
  MUSTER_ASSIGN_OR_RETURN(uploads_,
                          submit::Uploads::Open(absl::StrCat(host_.data_dir, "/uploads"), clock_));
  MUSTER_ASSIGN_OR_RETURN(ledger_,
                          backend::OpenBatchLedger(backend::DataDirUrls(host_.data_dir).ledger,
                                                   backend::Mode::kReadWrite, fail, metrics));
  return absl::OkStatus();
}

batch::EngineDependencies InitiatorRole::Tools(const host::Stores& stores, Parts* parts) const {
  batch::EngineDependencies tools;
  tools.stores = {stores.queues, stores.bus,   ledger_.get(), stores.blobs,
                  clock_,        stores.spans, stores.metrics};
  tools.options.account = host_.account;
  tools.options.instance = host_.instance;
  tools.content = uploads_.get();
  tools.item_content = &parts->item_content;
  tools.damaged = &parts->damaged;
  tools.report_client = &parts->report_client;
  tools.cancelled = &parts->cancelled;
  tools.back_pressure = back_pressure_.get();
  tools.suspended = &parts->suspended;
  tools.no_worker_fits = [parts](const ledger::Batch& batch) {
    return parts->versions.NoneFits(batch.job, batch.handler_version);
  };
  tools.jobs = &parts->jobs;
  tools.records = stores.sync;
  tools.on_complete = [parts](const ledger::Batch& batch) {
    parts->batch_metrics.NoteComplete(batch);
    parts->calls.NoteOver(batch.number);
  };
  tools.on_number_taken = [parts] { parts->numbers.DropRange(); };
  tools.settle_request = [parts, clock = clock_](const ledger::Batch& batch) {
    return parts->SettleOccurrence(batch, clock->Now());
  };
  if (!directory_id_.empty()) {
    tools.find_elsewhere = [parts](uint64_t batch) {
      return parts->other_ledgers.Get(batch).status();
    };
    tools.find_open_elsewhere = [parts](const std::string& job,
                                        const std::string& but_of_revision) {
      return parts->other_ledgers.FindOpenBatch(job, but_of_revision);
    };
    tools.decide = [parts](uint64_t batch) { return parts->submissions.Decide(batch); };
    tools.restore_requests = [parts, ledger = ledger_.get()] {
      return parts->claims.RestoreLost(ledger);
    };
    tools.release_request = [parts](const ledger::Batch& batch) {
      return parts->claims.Release(batch);
    };
  }
  return tools;
}

absl::StatusOr<std::shared_ptr<const input::ByteSource>> InitiatorRole::OpenContent(
    uint64_t number) const {
  MUSTER_ASSIGN_OR_RETURN(const ledger::Batch batch, ledger_->Get(number));
  return uploads_->OpenRecorded(batch);
}

absl::StatusOr<uint64_t> InitiatorRole::FindRequest(const v1::FindRequestRequest& request) const {
  if (directory_id_.empty() || request.directory() != directory_id_) {
    return absl::FailedPreconditionError("this initiator has another data directory");
  }
  if (!request.has_tenant()) return parts_->submissions.FindBegunOfAny(request.request_id());
  return parts_->submissions.FindBegun({request.tenant(), request.request_id()});
}

std::vector<std::string> InitiatorRole::Controllers() const {
  if (!options_.controller.empty()) return {options_.controller};
  return membership_->AddressesOf(v1::ROLE_CONTROLLER);
}

int64_t InitiatorRole::HeldBackFrom(const queue::QueueId& queue) const {
  return bus::HeldBackItems(
      membership_->roster().List(v1::ROLE_INITIATOR),
      [name = queue.ToString()](absl::string_view held) { return held == name; });
}

batch::BackPressureCounters InitiatorRole::back_pressure() const {
  return back_pressure_ == nullptr ? batch::BackPressureCounters() : back_pressure_->counters();
}

std::vector<std::string> InitiatorRole::Processors() const {
  std::vector<std::string> instances;
  for (const bus::RosterEntry& entry : membership_->roster().List(v1::ROLE_PROCESSOR)) {
    if (!entry.leaving) instances.push_back(entry.heartbeat.instance().instance());
  }
  return instances;
}

absl::StatusOr<std::optional<uint64_t>> InitiatorRole::FindRunningBatch(
    absl::string_view job) const {
  MUSTER_ASSIGN_OR_RETURN(std::optional<uint64_t> batch, retention::FindOpenBatch(*ledger_, job));
  if (batch.has_value() || directory_id_.empty()) return batch;
  // One that does not answer keeps no job: the job's queues stay until it does.
  return parts_->other_ledgers.FindOpenBatch(std::string(job)).value_or(std::nullopt);
}

std::vector<rpc::ServedService> InitiatorRole::services() {
  return {{v1::BatchService::service_full_name(), &parts_->batch_service,
           parts_->batch_service.watches()},
          {v1::CallService::service_full_name(), &parts_->call_service, &parts_->call_service},
          {v1::JobService::service_full_name(), &parts_->job_service},
          {v1::QueueService::service_full_name(), &parts_->queue_service},
          {v1::PartitionService::service_full_name(), &parts_->partition_service},
          {v1::ReleaseService::service_full_name(), &parts_->release_service},
          {v1::ScheduleService::service_full_name(), &parts_->schedule_service},
          {v1::StreamService::service_full_name(), &parts_->stream_service},
          {v1::LedgerService::service_full_name(), &parts_->ledger_service},
          {v1::MeshService::service_full_name(), &membership_->service()}};
}

void InitiatorRole::OnStoresBack() { parts_->scheduler.RestoreRequests(); }

void InitiatorRole::Drain(absl::Duration) {
  if (membership_ != nullptr) membership_->Leave();
  if (parts_ == nullptr) return;
  parts_->batch_service.StopWatches();
  parts_->call_service.Drain();
  parts_->stream_service.StopProcessing();
  parts_->queue_service.Drain();
  parts_->schedule_runner.Stop();
  parts_->scheduler.Stop();
}

// The ledger, too: it records metrics, and the host's registry does not outlive the host.
void InitiatorRole::Close() {
  parts_.reset();
  throughput_.reset();
  membership_.reset();
  back_pressure_.reset();
  uploads_.reset();
  ledger_.reset();
}

void AddInitiatorOptions(CLI::App* app, RoleOptions* options) {
  AddBackPressureOptions(app, &options->back_pressure);
  AddUploadOptions(app, &options->uploads);
  const auto refuse = [](const std::string& text) -> std::string {
    double share = 0;
    // NaN fails both comparisons.
    if (absl::SimpleAtod(text, &share) && share >= 0 && share <= 1) return "";
    return "'" + text + "' is no share within 0 to 1";
  };
  options->trace_sample = telemetry::TraceSampleOr(options->trace_sample);
  args::Add(app, "--trace-sample", &options->trace_sample,
            "Share of batches to trace of those whose submitter names no trace")
      .Envname(host::EnvironmentName("--trace-sample"))
      .Check(refuse)
      .CaptureDefaultStr()
      .TypeName("SHARE");
}

}  // namespace muster::initiator
