// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/rules/rules_file.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/input/byte_source.h"
#include "muster/scaling/rules/rules_sections.h"
#include "muster/yaml/problems.h"
#include "muster/yaml/yaml_value.h"

namespace muster::scaling::rules {

namespace {

void ReadRules(const yaml::YamlValue& root, Rules* rules) {
  const yaml::YamlMap map(root, RulesFileKeys().at(kTop));
  map.Optional("mode").ReadWord({"observe", "notify", "act"}, &rules->mode);
  ReadTargets(map.Required("targets"), rules);
  ReadConstraints(map.Optional("constraints"), rules);
  ReadOperands(map.Optional("operands"), rules);
  ReadReactions(map.Optional("reactive"), rules);
  ReadStabilizer(map.Optional("stabilizer"), rules);
  ReadMetricLoss(map.Optional("on_metric_loss"), rules);
}

}  // namespace

const std::map<std::string, std::vector<std::string>>& RulesFileKeys() {
  static const auto* const keys = new std::map<std::string, std::vector<std::string>>{
      {kTop,
       {"mode", "targets", "constraints", "operands", "reactive", "stabilizer", "on_metric_loss"}},
      {kTarget,
       {"kind", "name", "queues", "sla", "patience", "forecast", "min", "max", "actuator"}},
      {kTargetSla, {"max", "aim"}},
      {kConstraint, {"name", "rank", "target", "range", "budget", "standby", "when"}},
      {kWhen, {"days", "from", "cron", "for", "tz", "prewarm"}},
      {kOperand, {"queue", "target", "metric", "agg", "over"}},
      {kReaction, {"rank", "target", "if", "do"}},
      {kDo, {"scale", "set", "hold"}},
      {kStabilizer, {"up_cooldown", "idle_hold"}},
      {kMetricLoss, {"after", "keep"}},
  };
  return *keys;
}

absl::StatusOr<Rules> ParseRules(absl::string_view text, absl::string_view file_name) {
  yaml::Problems problems(file_name);
  Rules rules;
  const YAML::Node document = yaml::ReadDocument(text, kMaxRulesFileBytes, &problems);
  if (problems.empty()) ReadRules(yaml::YamlValue(document, "", &problems), &rules);
  MUSTER_RETURN_IF_ERROR(problems.ToStatus());
  return rules;
}

std::vector<std::string> WarningsOf(const Rules& rules, absl::string_view file_name) {
  std::vector<std::string> lines;
  for (const yaml::Problem& warning : rules.warnings) {
    lines.push_back(absl::StrCat(file_name, ":", warning.place.line, ":", warning.place.column,
                                 ": ", warning.message));
  }
  return lines;
}

absl::StatusOr<std::string> ReadRulesText(const std::string& path) {
  return input::ReadTextFile(path, "rules file", kMaxRulesFileBytes);
}

absl::StatusOr<Rules> LoadRulesFile(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadRulesText(path));
  return ParseRules(text, path);
}

namespace {

using yaml::YamlMap;
using yaml::YamlValue;

void ReadQueues(const YamlValue& list, std::vector<std::string>* queues) {
  for (const YamlValue& entry : list.List(1, kMaxQueues)) {
    std::string queue;
    if (!entry.ReadText(&queue)) continue;
    if (std::find(queues->begin(), queues->end(), queue) != queues->end()) {
      entry.Problem(absl::StrCat("the queue ", base::Quoted(queue), " is there twice"));
    }
    queues->push_back(std::move(queue));
  }
}

void ReadSla(const YamlValue& section, Target* target) {
  if (!section.present()) return;
  const YamlMap map(section, RulesFileKeys().at(kTargetSla));
  absl::Duration duration;
  if (map.Required("max").ReadDuration(&duration, kMinSla, kMaxSla)) target->sla_max = duration;
  const YamlValue aim = map.Optional("aim");
  if (!aim.ReadDuration(&duration, kMinSla, kMaxSla)) return;
  target->sla_aim = duration;
  if (target->sla_max && duration > *target->sla_max) aim.Problem("must not exceed sla.max");
}

void ReadPatience(const YamlValue& value, double* patience) {
  if (!value.present()) return;
  double number = 0;
  if (!value.IsNumber() || !absl::SimpleAtod(value.Raw(), &number) || !(number >= 0) ||
      !(number <= 1)) {
    return value.MustBe("a number from 0 (eager) to 1");
  }
  *patience = number;
}

void ReadLimits(const YamlMap& map, const YamlValue& target, Range* range) {
  const YamlValue max = map.Optional("max");
  const bool has_min = map.Optional("min").ReadInt(&range->min, 0, kMaxReplicas);
  const bool has_max = max.ReadInt(&range->max, 0, kMaxReplicas);
  if (range->min <= range->max || !has_min) return;
  if (has_max) {
    max.Problem(absl::StrCat("must not be less than min, which is ", range->min));
  } else if (!max.present()) {
    target.Problem(absl::StrCat("min is above max, which is ", kDefaultMaxReplicas,
                                " when nothing else is said"));
  }
}

const std::vector<std::string>& TargetKinds() {
  static const auto* const kinds =
      new std::vector<std::string>{"deployment", "statefulset", "process", "threads", "dry-run"};
  return *kinds;
}

// How two queue names overlap; nullopt: they do not.
std::optional<std::string> OverlapOf(const std::string& queue, const std::string& taken) {
  if (queue == taken) return "";
  if (MatchesQueue(taken, queue))
    return absl::StrCat(", a partition of ", base::Quoted(taken), ",");
  if (!MatchesQueue(queue, taken)) return std::nullopt;
  return absl::StrCat(", of which ", base::Quoted(taken), " is a partition,");
}

// A queue belongs to one target: two targets that count the same backlog would both grow for it.
void RequireQueuesOfItsOwn(const YamlValue& entry, const Target& target, const Rules& rules) {
  for (const Target& other : rules.targets) {
    for (const std::string& queue : target.queues) {
      for (const std::string& taken : other.queues) {
        const std::optional<std::string> overlap = OverlapOf(queue, taken);
        if (!overlap.has_value()) continue;
        entry.Problem(absl::StrCat("the queue ", base::Quoted(queue), *overlap,
                                   " belongs to the target '", other.id, "' already"));
      }
    }
  }
}

// Two targets that give one workload its replicas would undo each other's orders. Another
// autoscaler may ask for the numbers of several targets, and takes the largest.
void RequireWorkloadOfItsOwn(const YamlValue& name, const Target& target, const Rules& rules) {
  if (target.name.empty() || (target.kind != "deployment" && target.kind != "statefulset")) return;
  for (const Target& other : rules.targets) {
    const bool is_same = other.kind == target.kind && other.name == target.name;
    const bool are_external =
        other.actuated_by == ActuatedBy::kExternal && target.actuated_by == ActuatedBy::kExternal;
    if (!is_same || are_external) continue;
    name.Problem(absl::StrCat("the ", target.kind, " ", base::Quoted(target.name),
                              " belongs to the target '", other.id, "' already"));
  }
}

}  // namespace

bool ReadTargetId(const YamlValue& value, const Rules& rules, std::string* id) {
  if (!value.ReadName(id)) return false;
  if (rules.FindTarget(*id) != nullptr) return true;
  std::vector<std::string> ids;
  for (const Target& target : rules.targets) ids.push_back(target.id);
  value.Problem(absl::StrCat("there is no target ", base::Quoted(*id), base::DidYouMean(*id, ids)));
  return false;
}

void ReadTargets(const YamlValue& section, Rules* rules) {
  for (const auto& [id, entry] : section.Entries(1, kMaxTargets)) {
    Target target;
    id.ReadName(&target.id);
    const YamlMap map(entry, RulesFileKeys().at(kTarget));
    size_t kind = 0;
    if (map.Required("kind").ReadWord(TargetKinds(), &kind)) target.kind = TargetKinds()[kind];
    const YamlValue name = map.Required("name");
    name.ReadText(&target.name);
    ReadQueues(map.Required("queues"), &target.queues);
    ReadSla(map.Optional("sla"), &target);
    ReadPatience(map.Optional("patience"), &target.patience);
    map.Optional("forecast").ReadBool(&target.forecast);
    ReadLimits(map, entry, &target.range);
    map.Optional("actuator").ReadWord({"agent", "external"}, &target.actuated_by);
    RequireQueuesOfItsOwn(entry, target, *rules);
    RequireWorkloadOfItsOwn(name, target, *rules);
    rules->targets.push_back(std::move(target));
  }
}

}  // namespace muster::scaling::rules
