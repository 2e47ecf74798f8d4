#include "services/initiator/initiator_role.h"

#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/backend/backend.h"
#include "muster/base/status.h"
#include "muster/v1/heartbeat.pb.h"
#include "services/initiator/api/mesh_reopener.h"
#include "services/initiator/batch/batch_number_recovery.h"
#include "services/initiator/submit/handler_versions.h"

namespace muster::initiator {

namespace {

// A restart skips at most so many batch numbers, which stay short for people.
constexpr int64_t kReservedNumbers = 10;
// A controller that does not answer within this time counts as away; the initiator asks it again
// later.
constexpr absl::Duration kControllerTimeout = absl::Seconds(10);
// By then a redrive has put a page of poison back into its queue.
constexpr absl::Duration kRedriveTime = absl::Seconds(5);

}  // namespace

// Reopens batches of this initiator's ledger.
class InitiatorRole::Reopener final : public item::BatchReopener {
 public:
  // Nothing is owned.
  Reopener(ledger::BatchLedger* ledger, report::ReportClient* report_client,
           batch::BatchScheduler* scheduler)
      : reopener_(ledger, report_client), scheduler_(scheduler) {}

  absl::Status Grant(uint64_t batch, absl::Span<const uint64_t> items) override {
    const absl::Status granted = reopener_.Grant(batch, items);
    // After an error, too: the ledger may have opened the batch, and only the scheduler completes
    // it again. Not at once: the items are not in their queue yet, and the scheduler must not take
    // them for lost.
    scheduler_->Advance(batch, kRedriveTime);
    return granted;
  }

 private:
  item::LedgerBatchReopener reopener_;
  batch::BatchScheduler* const scheduler_;  // not owned
};

struct InitiatorRole::Parts {
  Parts(InitiatorRole* role, const host::Stores& stores)
      : agent([role] { return role->membership_->AddressesOf(v1::ROLE_SCALING_AGENT); },
              role->host_.channel()),
        report_client([role] { return role->Controllers(); }, role->host_.channel(),
                      kControllerTimeout),
        jobs(stores.sync, role->clock_),
        versions(&jobs, &role->membership_->roster(), role->clock_),
        admission(
            {stores.queues, role->throughput_.get(), &agent, role->clock_, role->host_.account}),
        cancelled(stores.sync),
        claims(stores.sync, {role->directory_id_, role->host_.instance, stores.address},
               submit::AskInitiators(
                   [role] { return role->membership_->AddressesOf(v1::ROLE_INITIATOR); },
                   role->host_.channel())),
        suspended(stores.sync),
        quotes(&jobs, &agent, role->host_.account),
        numbers(stores.sync, batch::kBatchNumbers,
                {.range_size = kReservedNumbers,
                 .begin_at =
                     [role, this, began = role->clock_->Monotonic()](bool lost) {
                       return batch::FirstBatchNumber(role->ledger_.get(), &report_client,
                                                      role->clock_, lost,
                                                      role->clock_->Monotonic() - began);
                     }}),
        other_ledgers([role] { return role->membership_->AddressesOf(v1::ROLE_INITIATOR); },
                      role->host_.channel()),
        scheduler(role->Tools(stores, this), batch::SchedulerOptions()),
        submissions({&jobs, role->ledger_.get(), &numbers, role->uploads_.get(),
                     [this](const job::JobDefinition& job) { return versions.Current(job); },
                     [this](const job::JobDefinition& job) { return admission.Admit(job); },
                     role->clock_, role->options_.trace_sample,
                     role->directory_id_.empty() ? nullptr : &claims, role->directory_id_}),
        reopener(role->ledger_.get(), &report_client, &scheduler),
        mesh_reopener(&reopener, &other_ledgers),
        batch_service({&submissions, &scheduler, role->uploads_.get(), role->ledger_.get(),
                       &report_client, role->clock_, [role] { return role->Processors(); },
                       &quotes}),
        job_service(&jobs, stores.bus, role->host_.instance,
                    [role](absl::string_view job) { return role->FindRunningBatch(job); }),
        queue_service(stores.queues, &mesh_reopener),
        ledger_service(
            role->ledger_.get(), &reopener, [this](uint64_t batch) { scheduler.Advance(batch); },
            [role](const std::string& directory, const std::string& request_id) {
              return role->FindRequest(directory, request_id);
            }) {}

  client::ScalingLeaderClient agent;
  report::remote::RemoteReportClient report_client;
  job::JobRegistry jobs;
  submit::HandlerVersions versions;
  submit::Admission admission;
  item::CancelledBatches cancelled;
  submit::RequestClaims claims;
  item::SuspendedBatches suspended;
  api::Quotes quotes;
  sync::UniqueIdGenerator numbers;
  ledger::remote::RemoteBatchRecords other_ledgers;
  batch::BatchScheduler scheduler;
  submit::Submissions submissions;
  Reopener reopener;
  api::MeshReopener mesh_reopener;
  api::BatchService batch_service;
  api::JobService job_service;
  api::QueueService queue_service;
  api::LedgerService ledger_service;
};

InitiatorRole::InitiatorRole(const host::HostOptions& host, RoleOptions options, base::Clock* clock)
    : host_(host), options_(std::move(options)), clock_(clock) {}

InitiatorRole::~InitiatorRole() = default;

// The host calls this again after a transient error, so each part that is already open stays.
absl::Status InitiatorRole::Open(const host::Stores& stores, const host::Fail& fail) {
  if (ledger_ == nullptr) MUSTER_RETURN_IF_ERROR(OpenData(fail));
  if (membership_ == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(
        membership_, host::Membership::Join(v1::ROLE_INITIATOR, host_.instance, stores, clock_));
  }
  if (throughput_ == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(throughput_,
                            submit::JobThroughput::Open(stores.heartbeats, &membership_->roster(),
                                                        host_.account, clock_));
  }
  parts_ = std::make_unique<Parts>(this, stores);
  return parts_->scheduler.Start();
}

absl::Status InitiatorRole::OpenData(const host::Fail& fail) {
  MUSTER_RETURN_IF_ERROR(host_.CreateDataDir());
  // Where the shared stores lie in the data directory, no second initiator can open them.
  if (!host_.is_embedded()) {
    MUSTER_ASSIGN_OR_RETURN(directory_id_, submit::OpenDirectoryId(host_.data_dir));
  }
  MUSTER_ASSIGN_OR_RETURN(uploads_,
                          submit::Uploads::Open(absl::StrCat(host_.data_dir, "/uploads")));
  MUSTER_ASSIGN_OR_RETURN(ledger_,
                          backend::OpenBatchLedger(backend::DataDirUrls(host_.data_dir).ledger,
                                                   backend::Mode::kReadWrite, fail));
  return absl::OkStatus();
}

batch::EngineDependencies InitiatorRole::Tools(const host::Stores& stores, Parts* parts) const {
  batch::EngineDependencies tools;
  tools.stores = {stores.queues, stores.bus, ledger_.get(), stores.blobs, clock_};
  tools.options.account = host_.account;
  tools.options.instance = host_.instance;
  tools.content = uploads_.get();
  tools.report_client = &parts->report_client;
  tools.cancelled = &parts->cancelled;
  tools.suspended = &parts->suspended;
  tools.no_worker_fits = [parts](const ledger::Batch& batch) {
    return parts->versions.NoneFits(batch.job, batch.handler_version);
  };
  tools.jobs = &parts->jobs;
  tools.on_number_taken = [parts] { parts->numbers.DropRange(); };
  if (!directory_id_.empty()) {
    tools.find_elsewhere = [parts](uint64_t batch) {
      return parts->other_ledgers.Get(batch).status();
    };
    tools.release_request = [parts](const ledger::Batch& batch) {
      return parts->claims.Release(batch);
    };
  }
  return tools;
}

absl::StatusOr<uint64_t> InitiatorRole::FindRequest(const std::string& directory,
                                                    const std::string& request_id) const {
  if (directory_id_.empty() || directory != directory_id_) {
    return absl::FailedPreconditionError("this initiator has another data directory");
  }
  return parts_->submissions.FindBegun(request_id);
}

std::vector<std::string> InitiatorRole::Controllers() const {
  if (!options_.controller.empty()) return {options_.controller};
  return membership_->AddressesOf(v1::ROLE_CONTROLLER);
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
  MUSTER_ASSIGN_OR_RETURN(const std::vector<uint64_t> open, ledger_->ListOpen());
  for (const uint64_t number : open) {
    MUSTER_ASSIGN_OR_RETURN(const ledger::Batch batch, ledger_->Get(number));
    if (batch.job == job && !ledger::IsOver(batch.state)) return number;
  }
  return std::nullopt;
}

std::vector<rpc::ServedService> InitiatorRole::services() {
  return {{v1::BatchService::service_full_name(), &parts_->batch_service,
           parts_->batch_service.watches()},
          {v1::JobService::service_full_name(), &parts_->job_service},
          {v1::QueueService::service_full_name(), &parts_->queue_service},
          {v1::LedgerService::service_full_name(), &parts_->ledger_service},
          {v1::MeshService::service_full_name(), &membership_->service()}};
}

void InitiatorRole::Drain(absl::Duration) {
  if (membership_ != nullptr) membership_->Leave();
  if (parts_ == nullptr) return;
  parts_->batch_service.StopWatches();
  parts_->scheduler.Stop();
}

void InitiatorRole::Close() {
  parts_.reset();
  throughput_.reset();
  membership_.reset();
}

void AddInitiatorOptions(CLI::App* app, RoleOptions* options) {
  const auto refuse = [](const std::string& text) -> std::string {
    double share = 0;
    // NaN fails both comparisons.
    if (absl::SimpleAtod(text, &share) && share >= 0 && share <= 1) return "";
    return "'" + text + "' is no share within 0 to 1";
  };
  app->add_option("--trace-sample", options->trace_sample,
                  "Share of batches to trace of those whose submitter names no trace")
      ->envname(host::EnvironmentName("--trace-sample"))
      ->check(refuse)
      ->capture_default_str()
      ->type_name("SHARE");
}

}  // namespace muster::initiator
