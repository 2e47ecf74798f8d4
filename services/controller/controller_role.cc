// SPDX-License-Identifier: Apache-2.0
#include "services/controller/controller_role.h"

#include <algorithm>
#include <utility>

#include "muster/args/option.h"
#include "muster/backend/backend.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/job/job_registry.h"
#include "muster/partition/member_metrics.h"
#include "muster/partition/options.h"
#include "muster/rpc/status.h"
#include "muster/v1/heartbeat.pb.h"
#include "services/controller/count_metrics.h"

namespace muster::controller {
namespace {

// An initiator that does not answer within this time counts as away: the results of its batches
// wait.
constexpr absl::Duration kInitiatorTimeout = absl::Seconds(5);
// How long Open waits for the ownership, so that a controller that is alone, or takes over, serves
// at once. A stop waits as long.
constexpr absl::Duration kStandbyPatience = absl::Seconds(1);
// Between two such calls.
constexpr absl::Duration kStandbyPause = absl::Milliseconds(10);
// Of jobs whose results are not counted: a heartbeat stays small.
constexpr size_t kMaxTroubles = 32;
constexpr size_t kMaxTroubleBytes = 300;

}  // namespace

std::string ControllerRole::ReportUrl() const {
  return options_.report_url.empty() ? backend::DataDirUrls(host_.data_dir).report
                                     : options_.report_url;
}

// The host calls this again after a transient error, so each part that is already open stays.
absl::Status ControllerRole::Open(const host::Stores& stores, const host::Fail&) {
  MUSTER_RETURN_IF_ERROR(host_.CreateDataDir());
  partition::ShowMemberMetrics(stores.metrics);
  if (host_.is_embedded()) {
    if (Counting().ok()) return absl::OkStatus();
    MUSTER_RETURN_IF_ERROR(JoinMesh(stores));
    return BeginCounting(stores, std::nullopt);
  }
  if (ownership_ == nullptr) MUSTER_RETURN_IF_ERROR(CreateOwnership(stores));
  const absl::Duration began = clock_->Monotonic();
  const absl::Status counts = ownership_->AwaitCounting(kStandbyPatience);
  // A standby waits here, so that it serves as soon as it counts, and not in the host.
  const bool waited = clock_->Monotonic() - began >= kStandbyPatience;
  return waited ? rpc::WithRetryAfter(counts, kStandbyPause) : counts;
}

absl::Status ControllerRole::JoinMesh(const host::Stores& stores) {
  const auto complete = [this](absl::Duration, v1::Heartbeat* heartbeat) {
    TellTroubles(heartbeat);
    if (ownership_ == nullptr) return;
    const std::optional<std::string> owner = ownership_->StandbyFor();
    // One that does not know of another yet is about to count, and is to be known by then.
    if (owner.has_value() && !owner->empty())
      heartbeat->mutable_controller_standby()->set_owner(*owner);
  };
  if (membership_ == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(membership_, host::Membership::Join(v1::ROLE_CONTROLLER, host_.instance,
                                                                stores, clock_, complete));
  }
  if (records_ == nullptr) MakeRecords();
  return absl::OkStatus();
}

void ControllerRole::TellTroubles(v1::Heartbeat* heartbeat) const {
  const auto counting = Counting();
  if (!counting.ok()) return;
  for (const auto& [job, why] : (*counting)->Troubles(kMaxTroubles)) {
    v1::JobLoad* const load = heartbeat->add_jobs();
    load->set_job(job);
    load->set_trouble(base::Printable(why.message(), kMaxTroubleBytes));
  }
}

// Says first what is wrong with the report, before others hear of this controller.
absl::Status ControllerRole::CreateOwnership(const host::Stores& stores) {
  if (seat_ == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(seat_, ControllerSeat::Take(host_.data_dir, host_.instance));
  }
  std::vector<std::string> predecessors = seat_->predecessors();
  // Of a report that was put back from a backup, the last owner is known from itself alone.
  const bool knows = seat_->is_alone() && options_.report_url.empty();
  const auto identity = backend::ReadReportIdentity(ReportUrl());
  if (knows && identity.ok() && !identity->owner.empty() &&
      predecessors.size() < partition::kMaxPredecessors) {
    predecessors.push_back(identity->owner);
  }
  OwnedCounting counting;
  counting.identity = [this] { return backend::ReadReportIdentity(ReportUrl()); };
  counting.begin = [this, stores](const report::ReportOwner& owner) {
    return BeginCounting(stores, owner);
  };
  counting.end = [this] { EndCounting(); };
  MUSTER_ASSIGN_OR_RETURN(ownership_,
                          ReportOwnership::Create({.account = host_.account,
                                                   .instance = host_.instance,
                                                   .lease = options_.ownership_lease,
                                                   .replaced_report = options_.replaced_report,
                                                   .predecessors = std::move(predecessors),
                                                   .metrics = stores.metrics},
                                                  stores.sync, std::move(counting), clock_));
  absl::Status joined = JoinMesh(stores);
  if (joined.ok()) joined = ownership_->Join();
  if (!joined.ok()) ownership_.reset();
  return joined;
}

absl::Status ControllerRole::BeginCounting(const host::Stores& stores,
                                           const std::optional<report::ReportOwner>& owner) {
  report_.Close();
  absl::StatusOr<std::unique_ptr<report::ReportStore>> store =
      owner.has_value() ? backend::OpenOwnedReport(ReportUrl(), *owner, clock_, stores.metrics)
                        : backend::OpenReportStore(ReportUrl(), backend::Mode::kReadWrite, clock_,
                                                   stores.metrics);
  MUSTER_RETURN_IF_ERROR(store.status());
  report_.Open(*std::move(store));
  if (owner.has_value()) seat_->Keep();
  const std::shared_ptr<ControllerSupervisor> counting = MakeCounting(stores);
  MUSTER_RETURN_IF_ERROR(BeginKnownJobs(counting.get()));
  base::MutexLock lock(&mu_);
  counting_ = counting;
  forgotten_jobs_ = std::make_unique<ForgottenJobs>(
      &report_, [this](const std::string& job) { return jobs_->Has(job); }, clock_);
  return absl::OkStatus();
}

void ControllerRole::EndCounting() {
  std::shared_ptr<ControllerSupervisor> ended;
  std::unique_ptr<ForgottenJobs> forgotten_jobs;
  {
    base::MutexLock lock(&mu_);
    ended.swap(counting_);
    forgotten_jobs.swap(forgotten_jobs_);
  }
  forgotten_jobs.reset();
  if (ended != nullptr) ended->Stop();
  report_.RefuseChanges();
}

absl::StatusOr<std::shared_ptr<ControllerSupervisor>> ControllerRole::Counting() const {
  base::MutexLock lock(&mu_);
  if (counting_ != nullptr) return counting_;
  return DoesNotCount();
}

void ControllerRole::MakeRecords() {
  const auto initiators = [this] {
    std::vector<std::string> addresses = membership_->AddressesOf(v1::ROLE_INITIATOR);
    for (const std::string& address : options_.initiators) {
      if (std::find(addresses.begin(), addresses.end(), address) == addresses.end()) {
        addresses.push_back(address);
      }
    }
    return addresses;
  };
  records_ = std::make_unique<ledger::remote::RemoteBatchRecords>(initiators, host_.channel(),
                                                                  kInitiatorTimeout);
}

std::shared_ptr<ControllerSupervisor> ControllerRole::MakeCounting(const host::Stores& stores) {
  Options options;
  options.instance = host_.instance;
  options.unknown_batch_grace = options_.unknown_batch_grace;
  Events events;
  events.on_progress = [bus = stores.bus,
                        instance = host_.instance](const report::Progress& progress) {
    // Best effort: an initiator that misses it asks once in a while.
    base::LogUnlessOk(base::kWarning, "progress was not multicast",
                      bus->Publish({instance, bus::BatchCountedEvent{progress.batch}}),
                      {{"batch", progress.batch}});
  };
  jobs_ = std::make_unique<job::JobRegistry>(stores.sync, clock_);
  const CountMetrics before_the_first_job(stores.metrics);  // so that a scrape shows their types
  return std::make_shared<ControllerSupervisor>(
      host_.account, std::move(options), std::move(events),
      Dependencies{stores.queues, stores.bus, records_.get(), &report_, stores.blobs, clock_,
                   stores.metrics, stores.spans},
      [this](const std::string& job) { return IsNeeded(job); });
}

// In doubt it is.
bool ControllerRole::IsNeeded(const std::string& job) {
  const absl::StatusOr<bool> defined = jobs_->Has(job);
  if (!defined.ok() || *defined) return true;
  const absl::StatusOr<bool> open = HasOpenBatch(job);
  return !open.ok() || *open;
}

absl::StatusOr<bool> ControllerRole::HasOpenBatch(const std::string& job) {
  MUSTER_ASSIGN_OR_RETURN(const auto reader, report_.Read());
  MUSTER_ASSIGN_OR_RETURN(const std::vector<uint64_t> batches, reader->BatchesOf(job));
  for (const uint64_t number : batches) {
    MUSTER_ASSIGN_OR_RETURN(const report::Progress batch, reader->GetProgress(number));
    if (!batch.is_complete() && !batch.cancelled.has_value()) return true;
  }
  return false;
}

absl::Status ControllerRole::BeginKnownJobs(ControllerSupervisor* counting) {
  MUSTER_ASSIGN_OR_RETURN(const auto reader, report_.Read());
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> jobs, reader->Jobs());
  for (const std::string& job : jobs) {
    if (!IsNeeded(job)) continue;  // a batch that is registered begins it
    const absl::Status begun = counting->Begin(job);
    if (!base::MismatchOf(begun).has_value()) {
      MUSTER_RETURN_IF_ERROR(begun);
      continue;
    }
    // An error of one job's queue must not delay the results of other jobs. The initiator that
    // waits for this job registers its batch again and again, which retries Begin.
    base::Log(base::kWarning, "a job's results cannot be counted yet",
              {{"job", job}, {"why", begun.ToString()}});
  }
  return absl::OkStatus();
}

std::vector<rpc::ServedService> ControllerRole::services() {
  report_service_ = std::make_unique<ReportService>(
      &report_,
      [this](uint64_t batch) -> absl::Status {
        MUSTER_ASSIGN_OR_RETURN(const auto counting, Counting());
        return counting->CheckCompletion(batch);
      },
      [this](const std::string& job, uint64_t batch) -> absl::Status {
        MUSTER_ASSIGN_OR_RETURN(const auto counting, Counting());
        return counting->Begin(job, batch);
      },
      host_.data_dir);
  return {{v1::ReportService::service_full_name(), report_service_.get()},
          {v1::MeshService::service_full_name(), &membership_->service()}};
}

// Gives the ownership up, so that a standby counts on.
void ControllerRole::Drain(absl::Duration) {
  if (membership_ != nullptr) membership_->Leave();
  if (ownership_ != nullptr) ownership_->Stop();
  EndCounting();
}

// The report, too: it records metrics, and the host's registry does not outlive the host.
void ControllerRole::Close() {
  if (ownership_ != nullptr) ownership_->Stop();
  EndCounting();
  membership_.reset();  // before the ownership, of which its heartbeats tell
  ownership_.reset();
  records_.reset();
  report_service_.reset();
  report_.Close();
  seat_.reset();
}

void AddControllerOptions(CLI::App* app, RoleOptions* options) {
  args::Add(app, "--report", &options->report_url,
            "The report's URL; without it, sqlite:report.db in the data directory")
      .Envname(host::EnvironmentName("--report"));
  host::AddDuration(app, "--ownership-lease", &options->ownership_lease, absl::Seconds(1),
                    absl::Minutes(10),
                    "A standby controller counts so long after the last sign of the one that does");
  args::Add(app, "--replace-report", &options->replaced_report,
            "The id of the report that this controller's takes the place of, if the mesh "
            "counts into that one")
      .Envname(host::EnvironmentName("--replace-report"))
      .TypeName("ID");
  host::AddDuration(app, "--unknown-batch-grace", &options->unknown_batch_grace, absl::Seconds(1),
                    absl::Hours(24 * 7),
                    "Results of a batch that no initiator has become poison after this time");
}

}  // namespace muster::controller
