// SPDX-License-Identifier: Apache-2.0

// muster scale rules check FILE | rules show [FILE --at TIME]
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/output/environment.h"
#include "cli/output/format.h"
#include "cli/scale/agent_client.h"
#include "cli/scale/commands.h"
#include "cli/scale/view.h"
#include "cli/server/options.h"
#include "muster/args/command.h"
#include "muster/args/option.h"
#include "muster/base/quantity.h"
#include "muster/base/status.h"
#include "muster/scaling/rules/constraints.h"
#include "muster/scaling/rules/rules_file.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;
using scaling::rules::ConstraintSchedule;
using scaling::rules::Rules;
using scaling::rules::Ruling;
using scaling::rules::Target;

struct RulesOptions {
  CommonOptions common;
  std::string file;
  std::string at;
  std::string cold_start = "0s";
};

absl::Status CheckRules(const RulesOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const Rules rules, scaling::rules::LoadRulesFile(options.file));
  for (const std::string& warning : scaling::rules::WarningsOf(rules, options.file)) {
    *environment.err << "muster: warning: " << warning << "\n";
  }
  *environment.out << options.file << ": the rules are fine (targets: " << rules.targets.size()
                   << ", constraints: " << rules.constraints.size()
                   << ", reactions: " << rules.reactions.size() << ")\n";
  return absl::OkStatus();
}

absl::StatusOr<absl::Time> TimeOf(const RulesOptions& options, const Environment& environment) {
  absl::Time time = environment.clock->Now();
  std::string error;
  if (!options.at.empty() && !absl::ParseTime(absl::RFC3339_full, options.at, &time, &error)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", options.at, "' is no time such as 2026-11-30T08:00:00+01:00"));
  }
  return time;
}

// What rules, and by which constraint: "[5, 100] (month-end)".
std::string RangeCell(const Ruling& ruling) {
  const std::string by = ruling.range_by.empty() ? "the target's own" : ruling.range_by;
  return absl::StrCat("[", ruling.range.min, ", ", ruling.range.max, "] (", by, ")");
}

std::string NumberCell(int number, const std::string& by) {
  return by.empty() ? "-" : absl::StrCat(number, " (", by, ")");
}

ordered_json RulingJson(const Target& target, const Ruling& ruling, absl::Time next) {
  const auto name_or_null = [](const std::string& by) {
    return by.empty() ? ordered_json() : ordered_json(by);
  };
  const bool changes = next != absl::InfiniteFuture();
  return {{"target", target.id},
          {"min", ruling.range.min},
          {"max", ruling.range.max},
          {"range_by", name_or_null(ruling.range_by)},
          {"budget_replica_minutes", ruling.budget ? ordered_json(*ruling.budget) : ordered_json()},
          {"budget_by", name_or_null(ruling.budget_by)},
          {"standby", ruling.standby},
          {"standby_by", name_or_null(ruling.standby_by)},
          {"prewarmed_by", name_or_null(ruling.prewarmed_by)},
          {"changes", changes ? ordered_json(Rfc3339(next)) : ordered_json()}};
}

absl::Status ShowFile(const RulesOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const absl::Time at, TimeOf(options, environment));
  MUSTER_ASSIGN_OR_RETURN(const absl::Duration cold_start, base::ParseDuration(options.cold_start));
  MUSTER_ASSIGN_OR_RETURN(Rules loaded, scaling::rules::LoadRulesFile(options.file));
  const auto rules = std::make_shared<const Rules>(std::move(loaded));
  Table table;
  table.AddColumns({"target", "range", "replica-min/h", "standby", "prewarmed by", "changes"});
  ordered_json json = ordered_json::array();
  for (const Target& target : rules->targets) {
    const ConstraintSchedule timetable(rules, target.id);
    const Ruling ruling = timetable.At(at, cold_start);
    const absl::Time next = timetable.NextChange(at, cold_start);
    table.AddRow({target.id, RangeCell(ruling),
                  NumberCell(ruling.budget.value_or(0), ruling.budget_by),
                  NumberCell(ruling.standby, ruling.standby_by), OrDash(ruling.prewarmed_by),
                  next == absl::InfiniteFuture() ? "never" : Rfc3339(next)});
    json.push_back(RulingJson(target, ruling, next));
  }
  PrintRows(table, json, options.common, environment);
  return absl::OkStatus();
}

// Those that are in force.
absl::Status ShowRules(const RulesOptions& options, const Environment& environment) {
  if (!options.file.empty()) return ShowFile(options, environment);
  MUSTER_ASSIGN_OR_RETURN(const auto agent, ScalingAgentClient::Find(options.common));
  MUSTER_ASSIGN_OR_RETURN(const auto rules, agent->Call(&ScalingStub::GetRules, {}));
  const ordered_json json = {{"revision", rules.revision()}, {"text", rules.text()}};
  if (PrintIfStructured(json, options.common, environment)) return absl::OkStatus();
  *environment.out << "# revision " << rules.revision() << "\n" << rules.text();
  if (!absl::EndsWith(rules.text(), "\n")) *environment.out << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddScaleRules(CLI::App* scale, const Environment& environment) {
  CLI::App* const parent =
      args::AddSubcommand(scale, "rules", "What the scaling agent must keep to");
  args::RequireSubcommand(parent);
  const auto options = std::make_shared<RulesOptions>();
  const auto add_verb = [&](const char* name, const char* about, auto verb) {
    return AddCommand(parent, name, about, environment,
                      [options, verb, &environment] { return verb(*options, environment); });
  };
  args::Add(add_verb("check", "Validate a rules file", CheckRules), "FILE", &options->file,
            "The rules file (YAML)")
      .Required();
  CLI::App* const show = add_verb(
      "show", "The rules in force; of a file, which constraints rule at a time", ShowRules);
  const args::Option file =
      args::Add(show, "FILE", &options->file, "A rules file (YAML); none: ask the scaling agent");
  args::Add(show, "--at", &options->at, "A time such as 2026-11-30T08:00:00+01:00; now by default")
      .Needs(file);
  args::Add(show, "--cold-start", &options->cold_start,
            "How long a replica takes to start, for `prewarm: auto`")
      .Needs(file)
      .CaptureDefaultStr();
  AddServer(show, &options->common);
  AddOutput(show, &options->common);
}

}  // namespace muster::cli
