// muster scale decisions [--watch] | explain [DECISION]
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/output/structured.h"
#include "cli/scale/decision_feed.h"
#include "cli/scale/decision_view.h"
#include "cli/scale/explained_view.h"
#include "cli/scale/scale_command.h"
#include "cli/scale/scale_view.h"
#include "cli/scale/scaling_agent.h"
#include "muster/base/status_macros.h"
#include "muster/os/stop_signals.h"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

struct DecisionsOptions {
  CommonOptions common;
  std::string target;  // empty: all
  std::string decision;
  int limit = 50;
  bool watch = false;
};

// As they come, each on a line of its own.
absl::Status WatchDecisions(const DecisionsOptions& options, const Environment& environment) {
  const os::StopSignals signals({.grace = absl::Seconds(5),
                                 .exit_code = kInterrupted,
                                 .when_late = "muster: stopped",
                                 .when_hurried = "muster: stopped"});
  if (options.common.output == OutputFormat::kCsv) {
    return absl::InvalidArgumentError("--watch writes lines, JSON or YAML, not CSV");
  }
  MUSTER_ASSIGN_OR_RETURN(const auto agent, ScalingAgentClient::Find(options.common));
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
  };
  const auto tell_trouble = [&](const absl::Status& trouble) {
    *environment.err << "muster: " << Printable(trouble.message()) << "; trying again for a while"
                     << std::endl;
  };
  DecisionFeed feed(agent.get(), options.target, options.limit, tell);
  return feed.Follow(tell_trouble, environment.clock, signals.token());
}

absl::Status ListDecisions(const DecisionsOptions& options, const Environment& environment) {
  if (options.watch) return WatchDecisions(options, environment);
  MUSTER_ASSIGN_OR_RETURN(const auto agent, ScalingAgentClient::Find(options.common));
  v1::ListDecisionsRequest request;
  request.set_target(options.target);
  request.set_page_size(options.limit);
  MUSTER_ASSIGN_OR_RETURN(const auto listed, agent->Call<v1::ListDecisionsResponse>(
                                                 &ScalingStub::ListDecisions, request));
  Table table = DecisionColumns();
  ordered_json json = ordered_json::array();
  for (const v1::ScalingDecision& decision : listed.decisions()) {
    table.AddRow(DecisionRow(decision));
    json.push_back(DecisionJson(decision));
  }
  PrintRows(table, json, options.common.output, environment);
  return absl::OkStatus();
}

absl::Status ExplainDecision(const DecisionsOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto agent, ScalingAgentClient::Find(options.common));
  v1::GetDecisionRequest request;
  request.set_decision(options.decision);
  request.set_target(options.target);
  MUSTER_ASSIGN_OR_RETURN(const auto explained,
                          agent->Call<v1::GetDecisionResponse>(&ScalingStub::GetDecision, request));
  if (IsStructured(options.common.output)) {
    PrintStructured(ExplainedJson(explained), options.common.output, environment);
  } else {
    PrintExplained(explained, *environment.out);
  }
  return absl::OkStatus();
}

}  // namespace

void AddScaleDecisions(CLI::App* scale, const Environment& environment) {
  const auto options = std::make_shared<DecisionsOptions>();
  CLI::App* const decisions =
      AddScaleVerb(scale, {"decisions", "What was decided, newest first", Csv::kYes}, options,
                   ListDecisions, environment);
  decisions->add_option("--target", options->target, "Of this target only");
  decisions->add_option("--limit", options->limit, "So many at most")
      ->check(CLI::Range(1, kMaxListedDecisions))
      ->capture_default_str();
  decisions->add_flag("--watch", options->watch,
                      "Go on with each as it is made and carried out, newest last");
  CLI::App* const explain =
      AddScaleVerb(scale, {"explain", "One decision in full; without a name, the last one"},
                   options, ExplainDecision, environment);
  CLI::Option* const target =
      explain->add_option("--target", options->target, "The last one of this target");
  explain->add_option("DECISION", options->decision, "Its name")->excludes(target);
}

}  // namespace muster::cli
