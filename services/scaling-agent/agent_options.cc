#include "services/scaling-agent/agent_options.h"

#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "muster/base/quantity.h"
#include "muster/scaling/recording/recording.h"
#include "muster/scaling/rules/rules_file.h"
#include "services/host/host_options.h"
#include "services/scaling-agent/limits.h"

namespace muster::scaling_agent {
namespace {

const CLI::Validator kSoundRules(
    [](std::string& path) -> std::string {
      return std::string(scaling::rules::LoadRulesFile(path).status().message());
    },
    "FILE");

const CLI::Validator kRecordingSize(
    [](std::string& text) -> std::string {
      const absl::StatusOr<int64_t> bytes = base::ParseBytes(text);
      if (!bytes.ok()) return std::string(bytes.status().message());
      if (*bytes >= scaling::recording::kMinRecordingBytes) return "";
      return absl::StrCat(text, " is less than ",
                          base::BytesToString(scaling::recording::kMinRecordingBytes));
    },
    "SIZE");

constexpr absl::Duration kLongestColdStart = absl::Hours(1);

void AddKubernetesOptions(CLI::App* app, ActuatorOptions* options) {
  app->add_option(
         "--kubernetes-namespace", options->name_space,
         "Where the workloads are; without it, the namespace of the context, or this pod's")
      ->envname(host::EnvironmentName("--kubernetes-namespace"));
  app->add_option("--kubeconfig", options->kubeconfig,
                  "How to reach the cluster; without it, as a pod of it, or as kubectl does")
      ->envname(host::EnvironmentName("--kubeconfig"));
}

void AddProcessOptions(CLI::App* app, ProcessOptions* options) {
  app->add_option("--processor-program", options->processor_program,
                  "What runs as a replica; without it, what the target's name says, beside this "
                  "program")
      ->envname(host::EnvironmentName("--processor-program"));
  app->add_option(
         "--processor-args", options->processor_arguments,
         "Arguments for each replica, with spaces between: --processor-args=\"--threads 4\"")
      ->envname(host::EnvironmentName("--processor-args"))
      ->delimiter(' ')
      ->allow_extra_args(false);
  app->add_option("--replica-keeper", options->keeper_program,
                  "What looks after each replica; without it, muster-replica-keeper beside this "
                  "program")
      ->envname(host::EnvironmentName("--replica-keeper"));
}

void AddSpeedOptions(CLI::App* app, RoleOptions* options) {
  host::AddDuration(app, "--cold-start", &options->speed.cold_start, absl::ZeroDuration(),
                    kLongestColdStart,
                    "From an order until a new replica works, believed until five were measured");
  app->add_option("--replica-cores", options->speed.replica_cores,
                  "Cores that a replica may use; 0: a pod one, and others share this machine's")
      ->envname(host::EnvironmentName("--replica-cores"))
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1024.0));
  app->add_option("--max-tasks", options->max_tasks,
                  "Dequeue tasks that a replica may be given; 0: as many as it has")
      ->envname(host::EnvironmentName("--max-tasks"))
      ->capture_default_str()
      ->check(CLI::Range(0, kMaxTasks));
}

void AddRecordingOptions(CLI::App* app, RecordingPlace* recording) {
  app->add_option("--record", recording->path,
                  "Records all that is seen and decided into a new file, for `muster replay "
                  "--recording`")
      ->envname(host::EnvironmentName("--record"));
  const auto set = [recording](const std::string& text) {
    recording->most_bytes = base::ParseBytes(text).value_or(recording->most_bytes);  // checked
  };
  app->add_option_function<std::string>("--record-size", set,
                                        "Of the recording's file; before it is longer, it becomes "
                                        "FILE.1 in place of the one before, and FILE begins anew")
      ->envname(host::EnvironmentName("--record-size"))
      ->check(kRecordingSize)
      ->type_name("SIZE")
      ->default_str(base::BytesToString(recording->most_bytes));
}

}  // namespace

void AddAgentOptions(CLI::App* app, RoleOptions* options) {
  app->add_option("--rules", options->rules_file, "What to scale, and how; read again on change")
      ->envname(host::EnvironmentName("--rules"))
      ->required()
      ->check(kSoundRules);
  app->add_option("--actuator", options->actuator.kind,
                  "Who carries it out: process, kubernetes, threads or dry-run")
      ->envname(host::EnvironmentName("--actuator"))
      ->required()
      ->check(CLI::IsMember(ActuatorKinds()));
  AddRecordingOptions(app, &options->recording);
  AddSpeedOptions(app, options);
  AddProcessOptions(app, &options->actuator.process);
  AddKubernetesOptions(app, &options->actuator);
}

}  // namespace muster::scaling_agent
