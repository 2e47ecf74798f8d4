#include "cli/mesh_checkup.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "cli/mesh.h"
#include "cli/queue_admin.h"
#include "cli/remote_jobs.h"
#include "cli/scaling_checkup.h"
#include "cli/side_by_side.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "muster/base/status_macros.h"
#include "muster/job/job_file.h"
#include "muster/mesh/limits.h"
#include "muster/proto_time/proto_time.h"
#include "muster/v1/batch_service.grpc.pb.h"

namespace muster::cli {
namespace {

using grpc::health::v1::HealthCheckResponse;

constexpr absl::Duration kMaxSkew = absl::Seconds(1);
constexpr int kOpenBatchesPerPage = 1000;
constexpr char kSetClocks[] = "let NTP set the clocks: deadlines and leases are told by them";

// "processor p-1".
std::string NameOf(const v1::Instance& instance) {
  return absl::StrCat(
      absl::AsciiStrToLower(absl::StripPrefix(v1::Role_Name(instance.info().role()), "ROLE_")), " ",
      instance.info().instance());
}

Finding NotSeen(const std::string& what, const absl::Status& status) {
  return {Health::kWrong, what, absl::StrCat("cannot be looked at: ", status.message()),
          "see the initiator's log"};
}

Finding CheckHealth(const Mesh& mesh, const v1::Instance& instance) {
  const std::string name = NameOf(instance);
  const std::string& address = instance.info().address();
  if (instance.leaving()) {
    return {Health::kWarning, name, "leaves, or was not heard lately",
            "if it shall be there, see whether it runs and reaches the NATS server"};
  }
  if (address.empty()) return {Health::kOk, name, "is heard; it serves nobody"};
  const char* const unreachable = "see whether it runs, and whether --advertise leads to it";
  const absl::StatusOr<Peer> peer = mesh.Connect(address);
  if (!peer.ok()) return {Health::kWrong, name, std::string(peer.status().message()), unreachable};
  const auto stub = grpc::health::v1::Health::NewStub(peer->channel);
  HealthCheckResponse response;
  const absl::Status checked = mesh.Call(*stub, &grpc::health::v1::Health::Stub::Check,
                                         grpc::health::v1::HealthCheckRequest(), &response, *peer);
  if (!checked.ok()) return {Health::kWrong, name, std::string(checked.message()), unreachable};
  if (response.status() != HealthCheckResponse::SERVING) {
    return {Health::kWrong, name, absl::StrCat(address, " answers that it is not ready"),
            "its log says what it waits for"};
  }
  return {Health::kOk, name,
          absl::StrCat(address, " is ready, version ", instance.info().version())};
}

void CheckVersion(const v1::Instance& instance, const std::string& version, Findings* findings) {
  if (instance.leaving() || instance.info().version() == version) return;
  findings->push_back({Health::kWarning, NameOf(instance),
                       absl::StrCat("has version ", instance.info().version(), ", not ", version),
                       "give all of the mesh, and this program, one version"});
}

// A heartbeat takes no time to speak of from its sender's clock to the initiator's.
void CheckClock(const v1::Instance& instance, Findings* findings) {
  if (!instance.heartbeat().has_sent()) return;
  const absl::Duration skew = proto_time::FromProto(instance.heartbeat().sent()) -
                              proto_time::FromProto(instance.last_heartbeat());
  if (absl::AbsDuration(skew) <= kMaxSkew) return;
  findings->push_back(
      {Health::kWarning, NameOf(instance),
       absl::StrCat("its clock is ", absl::FormatDuration(absl::AbsDuration(skew)),
                    skew > absl::ZeroDuration() ? " ahead of" : " behind", " the initiator's"),
       kSetClocks});
}

// The initiator hears itself, so that what it heard last is at most an interval old.
void CheckClockHere(const std::vector<v1::Instance>& instances, absl::Time now,
                    Findings* findings) {
  absl::Time newest = absl::InfinitePast();
  for (const v1::Instance& instance : instances) {
    newest = std::max(newest, proto_time::FromProto(instance.last_heartbeat()));
  }
  const absl::Duration age = now - newest;
  if (instances.empty() || (age >= -kMaxSkew && age <= mesh::kHeartbeatInterval + kMaxSkew)) return;
  findings->push_back({Health::kWarning, "initiator",
                       absl::StrCat("its clock differs from the one here: what it heard last is ",
                                    absl::FormatDuration(absl::AbsDuration(age)),
                                    age < absl::ZeroDuration() ? " ahead" : " ago"),
                       kSetClocks});
}

void CheckRoles(const std::vector<v1::Instance>& instances, Findings* findings) {
  const std::map<v1::Role, const char*> needed = {
      {v1::ROLE_PROCESSOR, "start muster-processor: nothing is worked on"},
      {v1::ROLE_CONTROLLER, "start muster-controller: no result is counted"}};
  for (const auto& [role, to_do] : needed) {
    const bool there = std::any_of(
        instances.begin(), instances.end(),
        [role = role](const auto& one) { return one.info().role() == role && !one.leaving(); });
    if (there) continue;
    findings->push_back({Health::kWrong,
                         absl::AsciiStrToLower(absl::StripPrefix(v1::Role_Name(role), "ROLE_")),
                         "the initiator has heard of none", to_do});
  }
}

void CheckInstances(const Mesh& mesh, const std::vector<v1::Instance>& instances,
                    const std::string& version, absl::Time now, Findings* findings) {
  for (Finding& finding :
       SideBySide(instances, [&](const v1::Instance& one) { return CheckHealth(mesh, one); })) {
    findings->push_back(std::move(finding));
  }
  for (const v1::Instance& instance : instances) {
    CheckVersion(instance, version, findings);
    CheckClock(instance, findings);
  }
  CheckClockHere(instances, now, findings);
  CheckRoles(instances, findings);
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

absl::StatusOr<Findings> CheckMesh(const CommonOptions& options, const std::string& account,
                                   const std::string& version, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<Mesh> mesh, Mesh::Open(options.server));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<v1::Instance> instances,
                          mesh->Instances(v1::ROLE_UNSPECIFIED));
  Findings findings;
  findings.push_back({Health::kOk, "initiator",
                      absl::StrCat(options.server.address, " answers; it hears ", instances.size(),
                                   " instances")});
  CheckInstances(*mesh, instances, version, environment.clock->Now(), &findings);
  CheckScaling(*mesh, instances, &findings);
  const Versions versions = VersionsOf(instances);
  CheckJobs(options.server, versions, &findings);
  CheckQueues(options, account, environment, &findings);
  CheckBatches(*mesh, versions, &findings);
  return findings;
}

}  // namespace muster::cli
