// SPDX-License-Identifier: Apache-2.0

// muster scale status | simulate | decisions | explain | override; rules_command.cc has rules

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/output/format.h"
#include "cli/scale/agent_client.h"
#include "cli/scale/commands.h"
#include "cli/scale/quote.h"
#include "cli/scale/view.h"
#include "cli/server/options.h"
#include "muster/args/command.h"
#include "muster/args/option.h"
#include "muster/base/proto_time.h"
#include "muster/base/quantity.h"
#include "muster/base/status.h"
#include "muster/os/stop_signals.h"
#include "muster/scaling/policy/quote_proto.h"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

struct StatusOptions {
  CommonOptions common;
  std::string target;  // empty: all
};

struct SimulateOptions {
  CommonOptions common;
  std::string target;
  scaling::policy::QuotedWork work;
  std::optional<double> price;
};

absl::Status ShowTargets(const StatusOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto agent, ScalingAgentClient::Find(options.common));
  v1::ListTargetsRequest request;
  request.set_target(options.target);
  MUSTER_ASSIGN_OR_RETURN(const auto listed, agent->Call(&ScalingStub::ListTargets, request));
  Table table = TargetColumns();
  ordered_json json = ordered_json::array();
  for (const v1::ScalingTarget& target : listed.targets()) {
    table.AddRow(TargetRow(target, environment.clock->Now()));
    json.push_back(TargetJson(target));
  }
  PrintRows(table, json, options.common, environment);
  return absl::OkStatus();
}

absl::Status SimulateWork(const SimulateOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto agent, ScalingAgentClient::Find(options.common));
  v1::SimulateRequest request = scaling::policy::ToProto(options.work);
  request.set_target(options.target);
  MUSTER_ASSIGN_OR_RETURN(auto simulated, agent->Call(&ScalingStub::Simulate, request));
  QuoteView view;
  view.target = options.target;
  view.price = options.price;
  view.quote = scaling::policy::QuoteOf(std::move(simulated), options.work.items);
  view.Show(options.common, environment);
  return absl::OkStatus();
}

// muster scale decisions [--watch] | explain [DECISION]

struct DecisionsOptions {
  CommonOptions common;
  std::string target;  // empty: all
  std::string decision;
  int limit = 50;
  bool watch = false;
};

// Prints each decision as it arrives, one a line.
absl::Status WatchDecisions(const DecisionsOptions& options, const Environment& environment) {
  const os::StopSignals signals({.grace = absl::Seconds(5),
                                 .exit_code = kInterrupted,
                                 .when_late = "muster: stopped",
                                 .when_hurried = "muster: stopped"});
  if (options.common.output == OutputFormat::kCsv) {
    return absl::InvalidArgumentError("--watch writes lines, JSON or YAML, not CSV");
  }
  MUSTER_ASSIGN_OR_RETURN(const auto agent, ScalingAgentClient::Find(options.common));
  std::stop_source end;
  const std::stop_callback on_signal(signals.token(), [&end] { end.request_stop(); });
  const DecisionFeed::Tell tell = [&](const v1::ScalingDecision& decision) {
    switch (options.common.output) {
      case OutputFormat::kJson:
        *environment.out << Structured(DecisionJson(decision), OutputFormat::kJson);
        break;
      case OutputFormat::kYaml:  // so far a sequence that grows
        *environment.out << YamlItem(DecisionJson(decision), 0);
        break;
      default:
        *environment.out << DecisionLine(decision) << "\n";
    }
    environment.out->flush();
    if (!environment.out->good()) end.request_stop();
  };
  const auto tell_trouble = [&](const absl::Status& trouble) {
    *environment.err << "muster: " << Printable(trouble.message()) << "; trying again for a while"
                     << std::endl;
  };
  DecisionFeed feed(agent.get(), options.target, options.limit, tell);
  const absl::Status followed = feed.Follow(tell_trouble, environment.clock, end.get_token());
  // muster::cli::Main tells why nothing more can be written.
  return environment.out->good() ? followed : absl::OkStatus();
}

absl::Status ListDecisions(const DecisionsOptions& options, const Environment& environment) {
  if (options.watch) return WatchDecisions(options, environment);
  MUSTER_ASSIGN_OR_RETURN(const auto agent, ScalingAgentClient::Find(options.common));
  v1::ListDecisionsRequest request;
  request.set_target(options.target);
  request.set_page_size(options.limit);
  MUSTER_ASSIGN_OR_RETURN(const auto listed, agent->Call(&ScalingStub::ListDecisions, request));
  Table table = DecisionColumns();
  ordered_json json = ordered_json::array();
  for (const v1::ScalingDecision& decision : listed.decisions()) {
    table.AddRow(DecisionRow(decision));
    json.push_back(DecisionJson(decision));
  }
  PrintRows(table, json, options.common, environment);
  return absl::OkStatus();
}

absl::Status ExplainDecision(const DecisionsOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto agent, ScalingAgentClient::Find(options.common));
  v1::GetDecisionRequest request;
  request.set_decision(options.decision);
  request.set_target(options.target);
  MUSTER_ASSIGN_OR_RETURN(const auto explained, agent->Call(&ScalingStub::GetDecision, request));
  if (!PrintIfStructured(ExplainedJson(explained), options.common, environment)) {
    PrintExplained(explained, *environment.out);
  }
  return absl::OkStatus();
}

// muster scale override TARGET N --for TIME | override TARGET --clear

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
  MUSTER_RETURN_IF_ERROR(agent.Call(&ScalingStub::ClearOverride, request).status());
  const ordered_json json = {{"target", options.target}, {"override", nullptr}};
  if (!PrintIfStructured(json, options.common, environment)) {
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
  MUSTER_ASSIGN_OR_RETURN(const auto set, agent.Call(&ScalingStub::SetOverride, request));
  const v1::ScalingOverride& held = set.override();
  const ordered_json json = {{"target", held.target()}, {"override", OverrideJson(held)}};
  if (!PrintIfStructured(json, options.common, environment)) {
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

void AddScaleStatus(CLI::App* scale, const Environment& environment) {
  const auto options = std::make_shared<StatusOptions>();
  args::Add(AddServerVerb(scale, {"status", "Where each target stands", Csv::kYes}, options,
                          ShowTargets, environment),
            "TARGET", &options->target, "This one only");
  const auto work = std::make_shared<SimulateOptions>();
  CLI::App* const simulate = AddServerVerb(
      scale, {"simulate", "What would become of more work, put now; exit 4 if it would be late"},
      work, SimulateWork, environment);
  args::Add(simulate, "TARGET", &work->target, "As the rules name it").Required();
  args::Add(simulate, "--items", &work->work.items, "So many work items")
      .Required()
      .Check(args::Range(int64_t{1}, scaling::policy::kMaxQuotedItems));
  AddSla(simulate, kAskedSla, &work->work.sla);
  args::Add(simulate, "--rate", &work->work.items_per_second,
            "Items per second of one replica, in place of what is known")
      .Check(args::PositiveNumber());
  args::Add(simulate, "--price", &work->price, "Dollars for an hour of a replica")
      .Check(args::NonNegativeNumber());
}

void AddScaleDecisions(CLI::App* scale, const Environment& environment) {
  const auto options = std::make_shared<DecisionsOptions>();
  CLI::App* const decisions =
      AddServerVerb(scale, {"decisions", "What was decided, newest first", Csv::kYes}, options,
                    ListDecisions, environment);
  args::Add(decisions, "--target", &options->target, "Of this target only");
  args::Add(decisions, "--limit", &options->limit, "So many at most")
      .Check(args::Range(1, kMaxListedDecisions))
      .CaptureDefaultStr();
  args::AddFlag(decisions, "--watch", &options->watch,
                "Go on with each as it is made and carried out, newest last");
  CLI::App* const explain =
      AddServerVerb(scale, {"explain", "One decision in full; without a name, the last one"},
                    options, ExplainDecision, environment);
  const args::Option target =
      args::Add(explain, "--target", &options->target, "The last one of this target");
  args::Add(explain, "DECISION", &options->decision, "Its name").Excludes(target);
}

void AddScaleOverride(CLI::App* scale, const Environment& environment) {
  const auto options = std::make_shared<OverrideOptions>();
  CLI::App* const command =
      AddServerVerb(scale, {"override", "Hold a target at a number of replicas for a while"},
                    options, Override, environment);
  args::Add(command, "TARGET", &options->target, "As the rules name it").Required();
  CLI::App* const what = args::AddOptionGroup(command, "what");
  const args::Option replicas = args::Add(what, "REPLICAS", &options->replicas,
                                          "So many, also where the policy says otherwise")
                                    .Check(args::NonNegativeNumber());
  args::AddFlag(what, "--clear", &options->clear, "Let the policy decide again");
  args::RequireOptions(what, 1, 1);
  const args::Option hold =
      args::Add(command, "--for", &options->hold, "For how long, such as 30m; 1s to 30d")
          .Check([](const std::string& text) {
            return base::ParseDuration(text).ok()
                       ? ""
                       : absl::StrCat("'", text, "' is no time like 30m");
          });
  hold.Needs(replicas);
  replicas.Needs(hold);
}

}  // namespace

void AddScale(CLI::App* app, const Environment& environment) {
  CLI::App* const scale =
      args::AddSubcommand(app, "scale", "Grow and shrink by rules and deadlines");
  args::RequireSubcommand(scale);
  AddScaleStatus(scale, environment);
  AddScaleDecisions(scale, environment);
  AddScaleOverride(scale, environment);
  AddScaleRules(scale, environment);
}

}  // namespace muster::cli
