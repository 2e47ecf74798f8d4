#include "services/scaling-agent/local_actuators.h"

#include <filesystem>
#include <optional>
#include <set>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "services/scaling-agent/queue_names.h"

namespace muster::scaling_agent {
namespace {

using scaling::rules::Rules;
using scaling::rules::Target;

constexpr char kKeeper[] = "muster-replica-keeper";

std::string BesideThisProgram(const std::string& name) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / name).string();
}

std::string PathOf(const std::string& given, const std::string& name) {
  return given.empty() ? BesideThisProgram(name) : given;
}

// The jobs whose queues a target names; nullopt: one of them is no job's.
std::optional<std::set<std::string>> JobsOfTarget(const Target& target,
                                                  const std::vector<std::string>& known_jobs) {
  std::set<std::string> jobs;
  for (const std::string& queue : target.queues) {
    const std::optional<std::string> job = JobOf(queue, known_jobs);
    if (!job.has_value()) return std::nullopt;
    jobs.insert(*job);
  }
  return jobs;
}

std::string ProgramOf(const Target& target, const ProcessOptions& options) {
  if (!options.processor_program.empty()) return options.processor_program;
  return absl::StrContains(target.name, '/') ? target.name : BesideThisProgram(target.name);
}

absl::Status CheckProgram(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("there is no program ", path));
}

class Processes final : public ActuatorHolder {
 public:
  Processes(ProcessOptions options,
            std::unique_ptr<scaling::actuator::process::ProcessActuator> actuator)
      : options_(std::move(options)), actuator_(std::move(actuator)) {}

  scaling::actuator::Actuator* actuator() override { return actuator_.get(); }
  void Use(const Rules& rules, const std::vector<std::string>& jobs) override {
    actuator_->SetTargets(ProgramsOf(rules, jobs, options_));
  }

 private:
  const ProcessOptions options_;
  const std::unique_ptr<scaling::actuator::process::ProcessActuator> actuator_;
};

std::vector<scaling::actuator::threads::LiveProcessor> LiveOf(
    const std::vector<bus::RosterEntry>& heard) {
  std::vector<scaling::actuator::threads::LiveProcessor> processors;
  for (const bus::RosterEntry& entry : heard) {
    if (!entry.leaving)
      processors.push_back(scaling::actuator::threads::FromHeartbeat(entry.heartbeat));
  }
  return processors;
}

class Threads final : public ActuatorHolder {
 public:
  Threads(const ThreadsOptions& options, base::Clock* clock)
      : actuator_({.targets = {},
                   .processors = [roster = options.roster] { return LiveOf(roster()); },
                   .channel = options.channel},
                  clock) {}

  scaling::actuator::Actuator* actuator() override { return &actuator_; }
  void Use(const Rules& rules, const std::vector<std::string>& jobs) override {
    actuator_.SetTargets(JobsOf(rules, jobs));
  }

 private:
  scaling::actuator::threads::ThreadsActuator actuator_;
};

}  // namespace

scaling::actuator::process::Targets ProgramsOf(const Rules& rules,
                                               const std::vector<std::string>& known_jobs,
                                               const ProcessOptions& options) {
  scaling::actuator::process::Targets targets;
  for (const Target& target : rules.targets) {
    if (target.kind != "process") continue;
    scaling::actuator::process::Program& program = targets[target.id];
    program.path = ProgramOf(target, options);
    program.arguments = options.processor_arguments;
    program.environment = options.environment;
    for (const std::string& job :
         JobsOfTarget(target, known_jobs).value_or(std::set<std::string>())) {
      program.arguments.insert(program.arguments.end(), {"--job", job});
    }
  }
  return targets;
}

scaling::actuator::threads::Targets JobsOf(const Rules& rules,
                                           const std::vector<std::string>& known_jobs) {
  scaling::actuator::threads::Targets targets;
  for (const Target& target : rules.targets) {
    if (target.kind != "threads") continue;
    const auto jobs = JobsOfTarget(target, known_jobs);
    targets[target.id] = jobs.has_value() && jobs->size() == 1 ? *jobs->begin() : "";
  }
  return targets;
}

absl::StatusOr<std::unique_ptr<ActuatorHolder>> OpenProcesses(const ProcessOptions& options,
                                                              base::Clock* clock) {
  scaling::actuator::process::Options actuator;
  actuator.folder = options.folder;
  actuator.keeper = PathOf(options.keeper_program, kKeeper);
  actuator.drain_grace = options.drain_grace;
  MUSTER_RETURN_IF_ERROR(CheckProgram(actuator.keeper));
  if (!options.processor_program.empty()) {
    MUSTER_RETURN_IF_ERROR(CheckProgram(options.processor_program));
  }
  MUSTER_ASSIGN_OR_RETURN(auto opened,
                          scaling::actuator::process::ProcessActuator::Open(actuator, clock));
  return std::make_unique<Processes>(options, std::move(opened));
}

std::unique_ptr<ActuatorHolder> MakeThreads(const ThreadsOptions& options, base::Clock* clock) {
  return std::make_unique<Threads>(options, clock);
}

}  // namespace muster::scaling_agent
