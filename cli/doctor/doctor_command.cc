// SPDX-License-Identifier: Apache-2.0

// `muster doctor`, and CheckMesh, which finds what in a mesh does not answer, is not ready, does
// not fit together or waits.

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "cli/doctor/commands.h"
#include "cli/doctor/gateway_checkup.h"
#include "cli/doctor/nats_checkup.h"
#include "cli/doctor/scaling_checkup.h"
#include "cli/doctor/work_checkup.h"
#include "cli/output/environment.h"
#include "cli/output/format.h"
#include "cli/output/one_of.h"
#include "cli/server/mesh_client.h"
#include "cli/server/options.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "muster/args/command.h"
#include "muster/args/option.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/bus/roster.h"
#include "muster/item/queue_names.h"
#include "muster/v1/batch_service.grpc.pb.h"
#include "nlohmann/json.hpp"
#include "services/host/host_options.h"
#include "services/host/parse_error.h"

namespace muster::cli {
namespace {

// Finer than a difference of clocks is known.
std::string InTenths(absl::Duration duration) {
  return absl::FormatDuration(absl::Trunc(duration, absl::Milliseconds(100)));
}

constexpr absl::Duration kMaxSkew = absl::Seconds(1);
constexpr char kSetClocks[] = "let NTP set the clocks: deadlines and leases are told by them";

// "processor p-1".
std::string NameOf(const v1::Instance& instance) {
  return absl::StrCat(EnumName(v1::Role_Name(instance.info().role()), "ROLE_"), " ",
                      instance.info().instance());
}

// "muster-processor".
std::string ProgramOf(v1::Role role) {
  return absl::StrCat("muster-",
                      absl::StrReplaceAll(EnumName(v1::Role_Name(role), "ROLE_"), {{"_", "-"}}));
}

Finding Unknown(const std::string& what) {
  return {Health::kUnknown, what, "are unknown while no NATS server answers the initiator"};
}

// Without a NATS server all are silent and none is ready, which says nothing of them.
Finding CheckHealth(const MeshClient& mesh, const v1::Instance& instance, bool has_nats) {
  const std::string name = NameOf(instance);
  const std::string& address = instance.info().address();
  if (instance.leaving() && !has_nats) return Unknown(name);
  if (instance.leaving()) {
    return {Health::kWarning, name, "is leaving, or has sent no heartbeat lately",
            "if it should run, check that it does, and that it reaches the NATS server"};
  }
  if (instance.heartbeat().has_controller_standby()) {
    const std::string& owner = instance.heartbeat().controller_standby().owner();
    return {Health::kOk, name,
            owner.empty() ? "is standby, and has not seen yet who counts"
                          : absl::StrCat("is standby, and counts when ", owner, " ends")};
  }
  if (address.empty()) return {Health::kOk, name, "sends heartbeats; it has no server"};
  const char* const unreachable = "check that it runs, and that --advertise leads to it";
  const absl::StatusOr<Peer> peer = mesh.Connect(address, ProgramOf(instance.info().role()));
  if (!peer.ok()) return {Health::kWrong, name, std::string(peer.status().message()), unreachable};
  const auto checked = mesh.Call(&grpc::health::v1::Health::Stub::Check, {}, *peer);
  if (!checked.ok()) {
    return {Health::kWrong, name, std::string(checked.status().message()), unreachable};
  }
  const bool is_ready = checked->status() == grpc::health::v1::HealthCheckResponse::SERVING;
  if (!is_ready && !has_nats) return Unknown(name);
  if (!is_ready) {
    return {Health::kWrong, name, absl::StrCat(address, " answers that it is not ready"),
            "its log says what it waits for"};
  }
  return {Health::kOk, name,
          absl::StrCat(address, " is ready, version ", instance.info().version())};
}

void CheckHealthOfAll(const MeshClient& mesh, const std::vector<v1::Instance>& instances,
                      bool has_nats, Findings* findings) {
  const auto check = [&](const auto& one) { return CheckHealth(mesh, one, has_nats); };
  for (Finding& finding : ParallelMap(instances, check)) findings->push_back(std::move(finding));
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
  const absl::Duration skew =
      base::FromProto(instance.heartbeat().sent()) - base::FromProto(instance.last_heartbeat());
  if (absl::AbsDuration(skew) <= kMaxSkew) return;
  findings->push_back(
      {Health::kWarning, NameOf(instance),
       absl::StrCat("its clock is ", InTenths(absl::AbsDuration(skew)),
                    skew > absl::ZeroDuration() ? " ahead of" : " behind", " the initiator's"),
       kSetClocks});
}

// The initiator hears itself, so that what it heard last is at most an interval old.
void CheckClockHere(const std::vector<v1::Instance>& instances, absl::Time now,
                    Findings* findings) {
  absl::Time newest = absl::InfinitePast();
  for (const v1::Instance& instance : instances) {
    newest = std::max(newest, base::FromProto(instance.last_heartbeat()));
  }
  const absl::Duration age = now - newest;
  if (instances.empty() || (age >= -kMaxSkew && age <= bus::kHeartbeatInterval + kMaxSkew)) return;
  findings->push_back({Health::kWarning, "initiator",
                       absl::StrCat("its clock differs from the one here: what it heard last is ",
                                    InTenths(absl::AbsDuration(age)),
                                    age < absl::ZeroDuration() ? " ahead" : " ago"),
                       kSetClocks});
}

// A controller is ready though a store keeps it from counting. Controllers of an earlier muster
// count beside each other, each into a report of its own.
void CheckControllers(const std::vector<v1::Instance>& instances, Findings* findings) {
  std::vector<std::string> names;
  for (const v1::Instance& instance : instances) {
    if (instance.info().role() != v1::ROLE_CONTROLLER || instance.leaving()) continue;
    if (instance.heartbeat().has_controller_standby()) continue;
    names.push_back(instance.info().instance());
    for (const v1::JobLoad& load : instance.heartbeat().jobs()) {
      if (load.trouble().empty()) continue;
      findings->push_back(
          {Health::kWrong, absl::StrCat("job ", load.job()),
           absl::StrCat(NameOf(instance), " cannot count its results: ", load.trouble()),
           "once that is mended, it goes on within seconds, and nothing is lost"});
    }
  }
  if (names.size() < 2) return;
  findings->push_back({Health::kWrong, "controller",
                       absl::StrCat(names.size(), " are there: ", absl::StrJoin(names, ", ")),
                       "stop all but the one that has the report: each counts into its own"});
}

void CheckRoles(const std::vector<v1::Instance>& instances, const ScalingTargets& started,
                Findings* findings) {
  const std::map<v1::Role, const char*> needed = {
      {v1::ROLE_PROCESSOR, "start muster-processor: no item is worked on"},
      {v1::ROLE_CONTROLLER, "start muster-controller: no result is counted"}};
  for (const auto& [role, to_do] : needed) {
    const bool there =
        std::any_of(instances.begin(), instances.end(), [needed_role = role](const auto& one) {
          return one.info().role() == needed_role && !one.leaving() &&
                 !one.heartbeat().has_controller_standby();
        });
    if (there) continue;
    const std::string what = EnumName(v1::Role_Name(role), "ROLE_");
    if (role == v1::ROLE_PROCESSOR && !started.empty()) {
      findings->push_back({Health::kOk, what, "none is there; the scaling agent starts them"});
      continue;
    }
    findings->push_back({Health::kWrong, what, "the initiator has heard of none", to_do});
  }
}

void CheckInstances(const MeshClient& mesh, const std::vector<v1::Instance>& instances,
                    const std::string& version, absl::Time now, Findings* findings) {
  CheckHealthOfAll(mesh, instances, true, findings);
  for (const v1::Instance& instance : instances) {
    CheckVersion(instance, version, findings);
    CheckClock(instance, findings);
  }
  CheckClockHere(instances, now, findings);
}

// Jobs, queues and heartbeats are on the NATS server, so without it only the last known instances
// can be checked.
Findings WithoutNats(const MeshClient& mesh, const std::vector<v1::Instance>& last_heard) {
  Findings findings = {
      {Health::kWrong, "NATS",
       absl::StrCat("the initiator at ", mesh.options().address, " gets no answer from it"),
       "start nats-server, or see whether it hangs and the initiator's machine reaches it; the "
       "rest mends itself"}};
  CheckHealthOfAll(mesh, last_heard, false, &findings);
  for (const char* what : {"processor", "controller", "jobs", "queues", "batches"}) {
    findings.push_back(Unknown(what));
  }
  return findings;
}

// Every role tells of instances, so that this proves nothing. Unimplemented: it is another role.
absl::Status RequireInitiator(const MeshClient& mesh) {
  v1::ListBatchesRequest request;
  request.set_page_size(1);
  const absl::Status listed = mesh.Call(&v1::BatchService::Stub::ListBatches, request).status();
  return absl::IsUnimplemented(listed) ? listed : absl::OkStatus();  // others CheckWork tells
}

// Changes nothing. What cannot be looked at is a finding too; only an initiator that does not
// answer, or is none, is an error. `version` is this program's.
absl::StatusOr<Findings> CheckMesh(const CommonOptions& options, const std::string& account,
                                   const std::string& version, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<MeshClient> mesh, MeshClient::Open(options.server));
  MUSTER_ASSIGN_OR_RETURN(const v1::ListInstancesResponse heard,
                          mesh->ListInstances(v1::ROLE_UNSPECIFIED));
  // Now: further questions may take seconds, which are no difference of clocks.
  const absl::Time heard_at = environment.clock->Now();
  const std::vector<v1::Instance> instances(heard.instances().begin(), heard.instances().end());
  MUSTER_RETURN_IF_ERROR(RequireInitiator(*mesh));
  if (heard.disconnected()) return WithoutNats(*mesh, instances);
  Findings findings;
  findings.push_back({Health::kOk, "initiator",
                      absl::StrCat(options.server.address, " answers; it hears ",
                                   Counted(instances.size(), "instance"))});
  CheckInstances(*mesh, instances, version, heard_at, &findings);
  const ScalingTargets started = CheckScaling(*mesh, instances, &findings);
  CheckRoles(instances, started, &findings);
  CheckControllers(instances, &findings);
  CheckWork({&options, account, &environment, &instances, &started}, *mesh, &findings);
  return findings;
}

const char* NameOf(Health health) {
  switch (health) {
    case Health::kOk:
      return "ok";
    case Health::kUnknown:
      return "unknown";
    case Health::kWarning:
      return "warning";
    case Health::kWrong:
      break;
  }
  return "wrong";
}

// One line each, or JSON or YAML. The exit code is kError when something is wrong.
void PrintFindings(const Findings& findings, const CommonOptions& options,
                   const Environment& environment) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    if (finding.health == Health::kWrong) environment.exit_code = kError;
    json.push_back({{"health", NameOf(finding.health)},
                    {"what", finding.what},
                    {"found", finding.found},
                    {"to_do", finding.to_do}});
    if (IsStructured(options.output)) continue;
    *environment.out << NameOf(finding.health) << ": " << Printable(finding.what) << ": "
                     << Printable(finding.found);
    if (!finding.to_do.empty()) *environment.out << "; " << Printable(finding.to_do);
    *environment.out << "\n";
  }
  PrintIfStructured(json, options, environment);
}

struct DoctorOptions {
  CommonOptions common;
  std::string account = item::kLocalAccount;
  NatsCheckOptions nats;
  std::vector<std::string> gateways;  // their health listeners

  // A gateway needs no mesh, so a command that names only gateways checks only gateways.
  bool is_of_gateways_alone() const {
    return !gateways.empty() && !common.server.named() && nats.url.empty();
  }
};

// Longer than a mesh that is well takes, and short enough to ask all that there is to ask.
constexpr absl::Duration kPatience = absl::Seconds(3);

// A fault of NATS may be the reason why the initiator does not answer, so its findings come first.
absl::Status Examine(const DoctorOptions& options, const Environment& environment) {
  const Findings gateways = CheckGateways(options.gateways, kPatience);
  if (options.is_of_gateways_alone()) {
    PrintFindings(gateways, options.common, environment);
    return absl::OkStatus();
  }
  MUSTER_RETURN_IF_ERROR(RequireServer(options.common, "the doctor looks at a mesh"));
  CommonOptions common = options.common;
  if (!common.server.timeout.has_value()) common.server.timeout = kPatience;
  Findings findings = CheckNats(options.nats);
  absl::StatusOr<Findings> mesh = CheckMesh(common, options.account, MUSTER_VERSION, environment);
  if (mesh.ok()) {
    const auto at = options.nats.url.empty() ? findings.begin() : findings.end();
    findings.insert(at, mesh->begin(), mesh->end());
  } else {
    // What one can do comes behind a semicolon, in all messages. One that refuses the call runs.
    const bool has_advice = absl::StrContains(mesh.status().message(), "; ");
    const bool may_be_away =
        absl::IsUnavailable(mesh.status()) || absl::IsDeadlineExceeded(mesh.status());
    findings.push_back(
        {Health::kWrong, "initiator", std::string(mesh.status().message()),
         may_be_away && !has_advice ? "see whether muster-initiator runs there" : ""});
  }
  findings.insert(findings.end(), gateways.begin(), gateways.end());
  PrintFindings(findings, options.common, environment);
  // The findings name the error already.
  if (!mesh.ok()) environment.exit_code = ExitCodeOf(mesh.status());
  return absl::OkStatus();
}

}  // namespace

void AddDoctor(CLI::App* app, const Environment& environment) {
  CLI::App* const command = args::AddSubcommand(
      app, "doctor", "What of a mesh can be reached, what is wrong with it, and how to mend that");
  const auto options = std::make_shared<DoctorOptions>();
  AddServer(command, &options->common);
  AddOutput(command, &options->common);
  args::Add(command, "--account", &options->account, "Whose queues").CaptureDefaultStr();
  args::Add(command, "--nats", &options->nats.url, "The NATS server too, such as nats://host:4222")
      .Envname("MUSTER_NATS");
  args::Add(command, "--gateway", &options->gateways,
            "The health listener of a queue gateway, HOST:PORT; may be given more than once. "
            "Without --server and --nats, only gateways are looked at")
      .Envname("MUSTER_GATEWAYS")
      .Delimiter(',');
  host::AddNatsSecrets(command, &options->nats.connection);
  args::Add(command, "--bucket", &options->nats.bucket, "Of the services' records and blobs there")
      .Envname("MUSTER_BUCKET")
      .CaptureDefaultStr();
  args::Add(command, "--replicas", &options->nats.replicas, "Of what the services store there")
      .Envname("MUSTER_REPLICAS")
      .Check(args::IsMember({"1", "3", "5"}))
      .CaptureDefaultStr();
  args::Add(command, "--ack-survives", &options->nats.ack_survives,
            "What the services say that its acknowledgements survive: process or power")
      .Transform(OneOf<queue::Survives>(
          {{"process", queue::Survives::kProcess}, {"power", queue::Survives::kPower}}))
      .Envname("MUSTER_ACK_SURVIVES")
      .TypeName("")
      .DefaultStr("process");
  args::OnRun(command, [options, command, &environment] {
    host::TakeRefusedVariables(command);
    if (const absl::Status status = Examine(*options, environment); !status.ok()) {
      environment.Fail(status);
    }
  });
}

}  // namespace muster::cli
