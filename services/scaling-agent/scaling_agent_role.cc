// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/scaling_agent_role.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/args/option.h"
#include "muster/base/log.h"
#include "muster/base/quantity.h"
#include "muster/base/retry.h"
#include "muster/base/status.h"
#include "muster/rpc/address.h"
#include "muster/scaling/recording/recording.h"
#include "muster/scaling/rules/rules_file.h"
#include "muster/v1/heartbeat.pb.h"
#include "services/host/host_telemetry.h"
#include "services/scaling-agent/limits.h"

namespace muster::scaling_agent {
namespace {

// The cores of a pod, unless the options say otherwise.
constexpr double kPodCores = 1;

// Each replica takes a port that is free, and tells its keeper which. InvalidArgument: others could
// read the metrics, and the agent's options do not allow it.
absl::Status AddReplicaMetrics(const host::HostOptions& host, ProcessOptions* options) {
  if (options->metrics_host.empty()) return absl::OkStatus();
  host::HostOptions replica = host;
  replica.metrics = absl::StrCat(options->metrics_host, ":0");
  MUSTER_RETURN_IF_ERROR(host::CheckMetricsReach(replica));
  const auto add = [options](const char* option, const std::string& value) {
    options->environment.emplace_back(host::EnvironmentName(option), value);
  };
  add("--metrics", replica.metrics);
  add("--allow-plaintext-metrics", replica.allow_plaintext_metrics ? "true" : "false");
  return absl::OkStatus();
}

}  // namespace

// The host calls Open again after a transient error; the parts that exist already stay.
absl::Status ScalingAgentRole::Open(const host::Stores& stores, const host::Fail&) {
  if (membership_ == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(membership_, host::Membership::Join(v1::ROLE_SCALING_AGENT,
                                                                host_.instance, stores, clock_));
  }
  if (actuator_ == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(actuator_, MakeActuator());
  }
  if (agent_ == nullptr) MUSTER_RETURN_IF_ERROR(MakeAgent(stores));
  return agent_->Start();
}

// The replicas inherit the agent's host options, so that they join the same mesh.
absl::StatusOr<std::unique_ptr<ActuatorHolder>> ScalingAgentRole::MakeActuator() {
  ActuatorOptions options = options_.actuator;
  options.process.folder = absl::StrCat(host_.data_dir, "/replicas");
  options.process.drain_grace = host_.drain_grace;
  options.process.environment = host::EnvironmentOf(host_);
  MUSTER_RETURN_IF_ERROR(AddReplicaMetrics(host_, &options.process));
  options.threads.roster = [roster = &membership_->roster()] {
    return roster->List(v1::ROLE_PROCESSOR);
  };
  options.threads.channel = host_.channel();
  options.dry_run.roster = options.threads.roster;
  options.dry_run.account = host_.account;
  return OpenActuator(options, clock_);
}

absl::Status ScalingAgentRole::MakeAgent(const host::Stores& stores) {
  MUSTER_ASSIGN_OR_RETURN(
      std::unique_ptr<scaling::rules::RulesWatch> rules,
      scaling::rules::RulesWatch::Open(options_.rules_file, absl::ZeroDuration(), clock_));
  AgentOptions options;
  options.election.instance = host_.instance;
  options.election.address = stores.address;
  options.loop.account = host_.account;
  options.loop.speed = options_.speed;
  if (options_.actuator.kind == "kubernetes" && options_.speed.replica_cores == 0) {
    options.loop.speed.replica_cores = kPodCores;  // a pod runs on another machine
  }
  if (SetsTasks(options_.actuator.kind)) {
    options.loop.max_tasks = options_.max_tasks;
  } else if (options_.max_tasks > 0) {
    base::Log(base::kWarning, "--max-tasks has no effect: this actuator leaves tasks as they are",
              {{"actuator", options_.actuator.kind}});
  }
  options.loop.recording = options_.recording;
  AgentDependencies deps;
  deps.queues = stores.queues;
  deps.sync = stores.sync;
  deps.bus = stores.bus;
  deps.actuator = actuator_->actuator();
  deps.clock = clock_;
  deps.roster = [roster = &membership_->roster()] { return roster->List(v1::ROLE_PROCESSOR); };
  deps.initiators = [roster = &membership_->roster()] { return roster->List(v1::ROLE_INITIATOR); };
  jobs_ = std::make_unique<job::JobRegistry>(stores.sync, clock_);
  // An agent that begins without knowing the jobs would replace replicas that work for one of them.
  if (const absl::Status read = ReadJobs(); base::IsTransient(read)) return read;
  deps.jobs = [this] { return KnownJobs(); };
  deps.use_targets = [this](const scaling::rules::Rules& in_force,
                            const std::vector<std::string>& jobs) {
    actuator_->Use(in_force, jobs);
  };
  deps.let_go_of_unknown = [this](const HeldToken& lead) {
    return actuator_->LetGoOfUnknown(lead.token, lead.until);
  };
  deps.on_desired = [this](const std::string& target, std::optional<int> desired) {
    activity_.Update(target, desired);
  };
  deps.metrics = stores.metrics;
  agent_ = std::make_unique<Agent>(std::move(options), std::move(deps), std::move(rules));
  metrics_ = std::make_unique<AgentMetrics>(agent_.get(), stores.metrics);
  return absl::OkStatus();
}

absl::Status ScalingAgentRole::ReadJobs() {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<job::JobSummary> jobs, jobs_->Summaries());
  base::MutexLock lock(&mu_);
  known_jobs_.clear();
  for (const job::JobSummary& job : jobs) known_jobs_.push_back(job.name);
  return absl::OkStatus();
}

std::vector<std::string> ScalingAgentRole::KnownJobs() {
  base::LogUnlessOk(base::kWarning, "which jobs there are cannot be read now", ReadJobs());
  base::MutexLock lock(&mu_);
  return known_jobs_;
}

std::vector<rpc::ServedService> ScalingAgentRole::services() {
  service_ = std::make_unique<ScalingService>(agent_.get(), clock_);
  external_scaler_ =
      std::make_unique<ExternalScalerService>(agent_.get(), &activity_, host_.channel(), clock_);
  return {{v1::ScalingService::service_full_name(), service_.get()},
          {externalscaler::ExternalScaler::service_full_name(), external_scaler_.get()},
          {v1::MeshService::service_full_name(), &membership_->service()}};
}

// Agent::Stop releases the lease, so that another agent leads at once.
void ScalingAgentRole::Drain(absl::Duration) {
  if (service_ != nullptr) service_->StopWatches();
  activity_.Drain();
  if (agent_ != nullptr) agent_->Stop();
  if (membership_ != nullptr) membership_->Leave();
}

void ScalingAgentRole::Close() {
  metrics_.reset();
  agent_.reset();
  actuator_.reset();
  membership_.reset();
}

namespace {

const args::Validator kSoundRules{
    [](std::string& path) -> std::string {
      return std::string(scaling::rules::LoadRulesFile(path).status().message());
    },
    "FILE"};

const args::Validator kRecordingSize{
    [](std::string& text) -> std::string {
      const absl::StatusOr<int64_t> bytes = base::ParseBytes(text);
      if (!bytes.ok()) return std::string(bytes.status().message());
      if (*bytes >= scaling::recording::kMinRecordingBytes) return "";
      return absl::StrCat(text, " is less than ",
                          base::BytesToString(scaling::recording::kMinRecordingBytes));
    },
    "SIZE"};

// A host without a port.
const args::Validator kHost{
    [](std::string& host) -> std::string {
      return std::string(rpc::ParseAddress(absl::StrCat(host, ":0")).status().message());
    },
    "HOST"};

constexpr absl::Duration kLongestColdStart = absl::Hours(1);

void AddKubernetesOptions(CLI::App* app, ActuatorOptions* options) {
  args::Add(app, "--kubernetes-namespace", &options->name_space,
            "Where the workloads are; without it, the namespace of the context, or this pod's")
      .Envname(host::EnvironmentName("--kubernetes-namespace"));
  args::Add(app, "--kubeconfig", &options->kubeconfig,
            "How to reach the cluster; without it, as a pod of it, or as kubectl does")
      .Envname(host::EnvironmentName("--kubeconfig"));
}

void AddProcessOptions(CLI::App* app, ProcessOptions* options) {
  args::Add(app, "--processor-program", &options->processor_program,
            "What runs as a replica; without it, what the target's name says, beside this "
            "program")
      .Envname(host::EnvironmentName("--processor-program"));
  args::Add(app, "--processor-args", &options->processor_arguments,
            "Arguments for each replica, with spaces between: --processor-args=\"--threads 4\"")
      .Envname(host::EnvironmentName("--processor-args"))
      .Delimiter(' ')
      .NoExtraArguments();
  args::Add(app, "--replica-metrics", &options->metrics_host,
            "Host, such as 127.0.0.1, at which each replica serves its metrics, at a port that "
            "is free; replicas/prometheus.json in the data directory tells Prometheus which; "
            "without it, replicas serve none")
      .Envname(host::EnvironmentName("--replica-metrics"))
      .Check(kHost);
  args::Add(app, "--replica-keeper", &options->keeper_program,
            "What looks after each replica; without it, muster-replica-keeper beside this "
            "program")
      .Envname(host::EnvironmentName("--replica-keeper"));
}

void AddSpeedOptions(CLI::App* app, RoleOptions* options) {
  host::AddDuration(app, "--cold-start", &options->speed.cold_start, absl::ZeroDuration(),
                    kLongestColdStart,
                    "From an order until a new replica works, believed until five were measured");
  args::Add(app, "--replica-cores", &options->speed.replica_cores,
            "Cores that a replica may use; 0: a pod one, and others share this machine's")
      .Envname(host::EnvironmentName("--replica-cores"))
      .CaptureDefaultStr()
      .Check(args::Range(0.0, 1024.0));
  args::Add(app, "--max-tasks", &options->max_tasks,
            "Dequeue tasks that actuator threads may give a replica; 0: as many as it has")
      .Envname(host::EnvironmentName("--max-tasks"))
      .CaptureDefaultStr()
      .Check(args::Range(0, kMaxTasks));
}

void AddRecordingOptions(CLI::App* app, RecordingPlace* recording) {
  args::Add(app, "--record", &recording->path,
            "Records all that is seen and decided into a new file, for `muster replay "
            "--recording`")
      .Envname(host::EnvironmentName("--record"));
  const auto set = [recording](const std::string& text) {
    recording->most_bytes = base::ParseBytes(text).value_or(recording->most_bytes);  // checked
  };
  args::AddFunction(app, "--record-size", set,
                    "Of the recording's file; before it is longer, it becomes "
                    "FILE.1 in place of the one before, and FILE begins anew")
      .Envname(host::EnvironmentName("--record-size"))
      .Check(kRecordingSize)
      .TypeName("SIZE")
      .DefaultStr(base::BytesToString(recording->most_bytes));
}

}  // namespace

void AddAgentOptions(CLI::App* app, RoleOptions* options) {
  args::Add(app, "--rules", &options->rules_file, "What to scale, and how; read again on change")
      .Envname(host::EnvironmentName("--rules"))
      .Required()
      .Check(kSoundRules);
  args::Add(app, "--actuator", &options->actuator.kind,
            "Who carries it out: process, kubernetes, threads or dry-run")
      .Envname(host::EnvironmentName("--actuator"))
      .Required()
      .Check(args::IsMember(ActuatorKinds()));
  AddRecordingOptions(app, &options->recording);
  AddSpeedOptions(app, options);
  AddProcessOptions(app, &options->actuator.process);
  AddKubernetesOptions(app, &options->actuator);
}

}  // namespace muster::scaling_agent
