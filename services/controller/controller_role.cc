#include "services/controller/controller_role.h"

#include <algorithm>
#include <utility>

#include "muster/backend/backend.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/v1/heartbeat.pb.h"

namespace muster::controller {
namespace {

// An initiator that does not answer within this time counts as away: the results of its batches
// wait.
constexpr absl::Duration kInitiatorTimeout = absl::Seconds(5);

}  // namespace

// The host calls this again after a transient error, so each part that is already open stays.
absl::Status ControllerRole::Open(const host::Stores& stores, const host::Fail&) {
  if (report_ == nullptr) MUSTER_RETURN_IF_ERROR(OpenReport());
  if (membership_ == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(
        membership_, host::Membership::Join(v1::ROLE_CONTROLLER, host_.instance, stores, clock_));
  }
  if (records_ == nullptr) MakeRecords();
  if (counting_ == nullptr) MakeCounting(stores);
  return BeginKnownJobs();
}

absl::Status ControllerRole::OpenReport() {
  MUSTER_RETURN_IF_ERROR(host_.CreateDataDir());
  const std::string url = options_.report_url.empty() ? backend::DataDirUrls(host_.data_dir).report
                                                      : options_.report_url;
  MUSTER_ASSIGN_OR_RETURN(report_,
                          backend::OpenReportStore(url, backend::Mode::kReadWrite, clock_));
  return absl::OkStatus();
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

void ControllerRole::MakeCounting(const host::Stores& stores) {
  Options options;
  options.instance = host_.instance;
  Events events;
  events.on_progress = [bus = stores.bus,
                        instance = host_.instance](const report::Progress& progress) {
    // Best effort: an initiator that misses it asks once in a while.
    base::LogUnlessOk(base::kWarning, "progress was not multicast",
                      bus->Publish({instance, bus::BatchCountedEvent{progress.batch}}),
                      {{"batch", progress.batch}});
  };
  counting_ = std::make_unique<ControllerSupervisor>(
      host_.account, std::move(options), std::move(events),
      Dependencies{stores.queues, stores.bus, records_.get(), report_.get(), stores.blobs, clock_});
}

absl::Status ControllerRole::BeginKnownJobs() {
  MUSTER_ASSIGN_OR_RETURN(const auto reader, report_->Read());
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> jobs, reader->Jobs());
  for (const std::string& job : jobs) {
    const absl::Status begun = counting_->Begin(job);
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
      report_.get(), [this](uint64_t batch) { return counting_->CheckCompletion(batch); },
      [this](const std::string& job) { return counting_->Begin(job); }, host_.data_dir);
  return {{v1::ReportService::service_full_name(), report_service_.get()},
          {v1::MeshService::service_full_name(), &membership_->service()}};
}

void ControllerRole::Drain(absl::Duration) {
  if (membership_ != nullptr) membership_->Leave();
  if (counting_ != nullptr) counting_->Stop();
}

void ControllerRole::Close() {
  counting_.reset();
  records_.reset();
  membership_.reset();
}

}  // namespace muster::controller
