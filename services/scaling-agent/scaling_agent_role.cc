#include "services/scaling-agent/scaling_agent_role.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/v1/heartbeat.pb.h"

namespace muster::scaling_agent {
namespace {

// The cores of a pod, unless the options say otherwise.
constexpr double kPodCores = 1;

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
  options.loop.max_tasks = options_.max_tasks;
  options.loop.recording = options_.recording;
  AgentDependencies deps;
  deps.queues = stores.queues;
  deps.sync = stores.sync;
  deps.bus = stores.bus;
  deps.actuator = actuator_->actuator();
  deps.clock = clock_;
  deps.roster = [roster = &membership_->roster()] { return roster->List(v1::ROLE_PROCESSOR); };
  jobs_ = std::make_unique<job::JobRegistry>(stores.sync, clock_);
  deps.jobs = [this] { return KnownJobs(); };
  deps.use_targets = [this](const scaling::rules::Rules& in_force) {
    actuator_->Use(in_force, KnownJobs());
  };
  agent_ = std::make_unique<Agent>(std::move(options), std::move(deps), std::move(rules));
  return absl::OkStatus();
}

std::vector<std::string> ScalingAgentRole::KnownJobs() const {
  std::vector<std::string> names;
  const auto jobs = jobs_->Summaries();
  if (!jobs.ok()) {
    base::Log(base::kWarning, "which jobs there are cannot be read now",
              {{"why", jobs.status().ToString()}});
    return names;
  }
  for (const job::JobSummary& job : *jobs) names.push_back(job.name);
  return names;
}

std::vector<rpc::ServedService> ScalingAgentRole::services() {
  service_ = std::make_unique<ScalingService>(agent_.get(), clock_);
  return {{v1::ScalingService::service_full_name(), service_.get()},
          {v1::MeshService::service_full_name(), &membership_->service()}};
}

// Agent::Stop releases the lease, so that another agent leads at once.
void ScalingAgentRole::Drain(absl::Duration) {
  if (service_ != nullptr) service_->StopWatches();
  if (agent_ != nullptr) agent_->Stop();
  if (membership_ != nullptr) membership_->Leave();
}

void ScalingAgentRole::Close() {
  agent_.reset();
  actuator_.reset();
  membership_.reset();
}

}  // namespace muster::scaling_agent
