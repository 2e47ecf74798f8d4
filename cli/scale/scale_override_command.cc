// muster scale override TARGET N --for TIME | override TARGET --clear
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/output/batch_view.h"
#include "cli/output/structured.h"
#include "cli/scale/scale_command.h"
#include "cli/scale/scale_view.h"
#include "cli/scale/scaling_agent.h"
#include "cli/scale/time_view.h"
#include "muster/base/proto_time.h"
#include "muster/base/quantity.h"
#include "muster/base/status_macros.h"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

struct OverrideOptions {
  CommonOptions common;
  std::string target;
  int replicas = 0;
  std::string hold;
  bool clear = false;
};

absl::Status ClearOverride(const OverrideOptions& options, ScalingAgentClient& agent,
                           const Environment& environment) {
  v1::ClearOverrideRequest request;
  request.set_target(options.target);
  MUSTER_RETURN_IF_ERROR(
      agent.Call<v1::ClearOverrideResponse>(&ScalingStub::ClearOverride, request).status());
  if (IsStructured(options.common.output)) {
    PrintStructured({{"target", options.target}, {"override", nullptr}}, options.common.output,
                    environment);
  } else {
    *environment.out << Printable(options.target) << ": the policy decides\n";
  }
  return absl::OkStatus();
}

absl::Status SetOverride(const OverrideOptions& options, ScalingAgentClient& agent,
                         const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const absl::Duration hold, base::ParseDuration(options.hold));
  v1::SetOverrideRequest request;
  request.set_target(options.target);
  request.set_replicas(options.replicas);
  *request.mutable_hold() = base::ToProto(hold);
  MUSTER_ASSIGN_OR_RETURN(const auto set,
                          agent.Call<v1::SetOverrideResponse>(&ScalingStub::SetOverride, request));
  const v1::ScalingOverride& held = set.override();
  if (IsStructured(options.common.output)) {
    const ordered_json override_json = {{"replicas", held.replicas()},
                                        {"until", TimeJson(held.has_until(), held.until())},
                                        {"by", held.by()}};
    PrintStructured({{"target", held.target()}, {"override", override_json}}, options.common.output,
                    environment);
  } else {
    *environment.out << Printable(held.target()) << ": held at " << held.replicas()
                     << " replicas until " << Rfc3339(base::FromProto(held.until())) << "\n";
  }
  return absl::OkStatus();
}

absl::Status Override(const OverrideOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto agent, ScalingAgentClient::Find(options.common));
  return options.clear ? ClearOverride(options, *agent, environment)
                       : SetOverride(options, *agent, environment);
}

}  // namespace

void AddScaleOverride(CLI::App* scale, const Environment& environment) {
  const auto options = std::make_shared<OverrideOptions>();
  CLI::App* const command =
      AddScaleVerb(scale, {"override", "Hold a target at a number of replicas for a while"},
                   options, Override, environment);
  command->add_option("TARGET", options->target, "As the rules name it")->required();
  CLI::Option_group* const what = command->add_option_group("what");
  CLI::Option* const replicas =
      what->add_option("REPLICAS", options->replicas, "So many, whatever the policy says")
          ->check(CLI::NonNegativeNumber);
  what->add_flag("--clear", options->clear, "Let the policy decide again");
  what->require_option(1);
  CLI::Option* const hold =
      command->add_option("--for", options->hold, "For how long, such as 30m; 1s to 30d")
          ->check([](const std::string& text) {
            return base::ParseDuration(text).ok()
                       ? ""
                       : absl::StrCat("'", text, "' is no time like 30m");
          });
  hold->needs(replicas);
  replicas->needs(hold);
}

}  // namespace muster::cli
