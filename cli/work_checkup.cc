#include "cli/work_checkup.h"

#include <map>
#include <memory>
#include <set>
#include <utility>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/queue_admin.h"
#include "cli/remote_jobs.h"
#include "muster/job/job_file.h"
#include "muster/v1/batch_service.grpc.pb.h"

namespace muster::cli {
namespace {

constexpr int kOpenBatchesPerPage = 1000;

Finding NotSeen(const std::string& what, const absl::Status& status) {
  return {Health::kWrong, what, absl::StrCat("cannot be looked at: ", status.message()),
          "see the initiator's log"};
}

using Versions = std::map<std::string, std::set<std::string>>;  // that processors have, by job

Versions VersionsOf(const std::vector<v1::Instance>& instances) {
  Versions versions;
  for (const v1::Instance& instance : instances) {
    if (instance.leaving() || instance.info().role() != v1::ROLE_PROCESSOR) continue;
    for (const v1::HandlerVersion& handler : instance.info().handlers()) {
      versions[handler.job()].insert(handler.version());
    }
  }
  return versions;
}

// What the job file asks for; empty: whatever processors have.
std::string WantedVersion(const v1::Job& job) {
  const auto definition = job::ParseJob(job.definition(), job.name());
  if (!definition.ok()) return "";
  const auto* const command = std::get_if<job::CommandHandlerSpec>(&definition->handler);
  return command == nullptr ? "" : command->version;
}

Finding CheckJob(const v1::Job& job, const std::set<std::string>& versions) {
  const std::string what = absl::StrCat("job ", job.name());
  const std::string wanted = WantedVersion(job);
  const std::string there = absl::StrJoin(versions, ", ");
  if (versions.empty()) {
    return {Health::kWrong, what, "no processor has its handler",
            "start a processor with it; the logs of those there say why they have not"};
  }
  if (!wanted.empty() && !versions.contains(wanted)) {
    return {Health::kWrong, what,
            absl::StrCat("no processor has handler version ", wanted, ", but ", there),
            "give processors that version"};
  }
  if (versions.size() > 1) {
    return {Health::kWarning, what, absl::StrCat("processors have handler versions ", there),
            "fine for as long as they are replaced; otherwise give all the same"};
  }
  return {Health::kOk, what, absl::StrCat("processors have handler version ", there)};
}

void CheckJobs(const ServerOptions& server, const Versions& versions, Findings* findings) {
  absl::StatusOr<std::unique_ptr<Mesh>> mesh = Mesh::Open(server);
  if (!mesh.ok()) return findings->push_back(NotSeen("jobs", mesh.status()));
  const absl::StatusOr<std::vector<v1::Job>> jobs = RemoteJobs(*std::move(mesh)).List();
  if (!jobs.ok()) return findings->push_back(NotSeen("jobs", jobs.status()));
  for (const v1::Job& job : *jobs) {
    const auto there = versions.find(job.name());
    findings->push_back(
        CheckJob(job, there == versions.end() ? std::set<std::string>() : there->second));
  }
}

void CheckQueues(const CommonOptions& options, const std::string& account,
                 const Environment& environment, Findings* findings) {
  const absl::StatusOr<std::unique_ptr<QueueAdmin>> admin = OpenQueueAdmin(options, environment);
  if (!admin.ok()) return findings->push_back(NotSeen("queues", admin.status()));
  const absl::StatusOr<std::vector<QueueCounts>> queues = (*admin)->List(account);
  if (!queues.ok()) return findings->push_back(NotSeen("queues", queues.status()));
  bool any = false;
  for (const auto& [id, stats] : *queues) {
    if (stats.poison == 0) continue;
    any = true;
    findings->push_back({Health::kWarning, absl::StrCat("queue ", id.ToString()),
                         absl::StrCat(stats.poison, " messages were given up"),
                         absl::StrCat("`muster queue poison ", id.ToString(),
                                      "` says why; `muster queue redrive` tries them again")});
  }
  if (any) return;
  findings->push_back(
      {Health::kOk, "queues", absl::StrCat(queues->size(), " of ", account, ", none has poison")});
}

void CheckBatch(const v1::BatchStatus& batch, const Versions& versions, Findings* findings) {
  const bool runs =
      batch.state() == v1::BATCH_STATE_OPEN || batch.state() == v1::BATCH_STATE_SEALED;
  if (!runs) return;
  const std::string what = absl::StrCat("batch ", batch.batch());
  if (!batch.problem().empty()) {
    findings->push_back({Health::kWrong, what, absl::StrCat("waits: ", batch.problem()),
                         "it goes on by itself once that is mended"});
  }
  const auto there = versions.find(batch.job());
  if (batch.handler_version().empty() || there == versions.end()) return;
  if (there->second.contains(batch.handler_version())) return;
  findings->push_back(
      {Health::kWrong, what,
       absl::StrCat("is bound to version ", batch.handler_version(), " of the handler of job ",
                    batch.job(), ", which no processor has"),
       "start a processor with that version"});
}

void CheckBatches(const Mesh& mesh, const Versions& versions, Findings* findings) {
  const auto stub = v1::BatchService::NewStub(mesh.initiator());
  v1::ListBatchesRequest request;
  request.set_page_size(kOpenBatchesPerPage);
  request.add_states(v1::BATCH_STATE_OPEN);
  request.add_states(v1::BATCH_STATE_SEALED);
  const size_t before = findings->size();
  do {
    v1::ListBatchesResponse response;
    const absl::Status listed =
        mesh.Call(*stub, &v1::BatchService::Stub::ListBatches, request, &response);
    if (!listed.ok()) return findings->push_back(NotSeen("batches", listed));
    for (const v1::BatchStatus& batch : response.batches()) CheckBatch(batch, versions, findings);
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  if (findings->size() == before) {
    findings->push_back({Health::kOk, "batches", "none waits with a problem"});
  }
}

}  // namespace

void CheckWork(const WorkCheck& check, const Mesh& mesh, const std::vector<v1::Instance>& instances,
               Findings* findings) {
  const Versions versions = VersionsOf(instances);
  CheckJobs(check.options->server, versions, findings);
  CheckQueues(*check.options, check.account, *check.environment, findings);
  CheckBatches(mesh, versions, findings);
}

}  // namespace muster::cli
