// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "muster/base/text.h"
#include "muster/scaling/rules/rules_file.h"
#include "muster/scaling/rules/rules_sections.h"

namespace muster::scaling::rules {

namespace {

using yaml::YamlMap;
using yaml::YamlValue;

// In the order of Metric.
const std::vector<std::string>& QueueMetrics() {
  static const auto* const metrics =
      new std::vector<std::string>{"depth", "in_flight", "oldest_age", "arrived", "finished"};
  return *metrics;
}
const std::vector<std::string>& TargetMetrics() {
  static const auto* const metrics = new std::vector<std::string>{
      "cpu", "throttled", "replicas", "starting", "idle", "service_time"};
  return *metrics;
}

// An operand's name must not contain '-', which is a minus in conditions, and must not be a word of
// conditions.
void ReadOperandName(const YamlValue& value, std::string* name) {
  if (!value.ReadName(name)) return;
  const std::vector<std::string> words = {"and", "or", "not", kSlaOperand};
  if (name->find('-') != std::string::npos) {
    value.Problem(absl::StrCat("'-' means minus in conditions; call it ", base::Quoted("a_b"),
                               ", not ", base::Quoted(*name)));
  } else if (std::find(words.begin(), words.end(), *name) != words.end()) {
    value.Problem(absl::StrCat(base::Quoted(*name), " has a meaning of its own in conditions"));
  }
}

void ReadQueue(const YamlValue& value, const Rules& rules, Operand* operand) {
  if (!value.ReadText(&operand->queue)) return;
  std::vector<std::string> known;
  for (const Target& target : rules.targets) {
    if (std::find(target.queues.begin(), target.queues.end(), operand->queue) !=
        target.queues.end()) {
      operand->target = target.id;
      return;
    }
    known.insert(known.end(), target.queues.begin(), target.queues.end());
  }
  value.Problem(absl::StrCat("no target has the queue ", base::Quoted(operand->queue),
                             base::DidYouMean(operand->queue, known)));
}

void ReadSource(const YamlValue& entry, const YamlMap& map, const Rules& rules, Operand* operand) {
  const YamlValue queue = map.Optional("queue"), target = map.Optional("target");
  if (entry.IsMap() && queue.present() == target.present()) {
    return entry.Problem("must have one of 'queue' and 'target'");
  }
  ReadQueue(queue, rules, operand);
  ReadTargetId(target, rules, &operand->target);
  size_t place = 0;
  const std::vector<std::string>& metrics = queue.present() ? QueueMetrics() : TargetMetrics();
  if (!map.Required("metric").ReadWord(metrics, &place)) return;
  operand->metric = static_cast<Metric>(place + (queue.present() ? 0 : QueueMetrics().size()));
}

void ReadAggregate(const YamlMap& map, Operand* operand) {
  if (!map.Required("agg").ReadWord({"last", "average", "min", "max", "growth"},
                                    &operand->aggregate)) {
    return;
  }
  if (operand->aggregate != Aggregate::kLast) {
    map.Required("over").ReadDuration(&operand->over, kMinOver, kMaxOver);
  } else if (const YamlValue over = map.Optional("over"); over.present()) {
    over.Problem("has no meaning for last");
  }
}

}  // namespace

void ReadOperands(const YamlValue& section, Rules* rules) {
  for (const auto& [name, entry] : section.Entries(0, kMaxOperands)) {
    const YamlMap map(entry, RulesFileKeys().at(kOperand));
    Operand operand;
    ReadOperandName(name, &operand.name);
    ReadSource(entry, map, *rules, &operand);
    ReadAggregate(map, &operand);
    rules->operands.push_back(std::move(operand));
  }
}

namespace {

// "+25%", "+3", "-1"
std::optional<Scale> ParseScale(absl::string_view text) {
  Scale scale;
  const bool is_less = absl::ConsumePrefix(&text, "-");
  if (!is_less && !absl::ConsumePrefix(&text, "+")) return std::nullopt;
  scale.is_percent = absl::ConsumeSuffix(&text, "%");
  const int64_t max = !scale.is_percent ? kMaxReplicas : is_less ? 100 : kMaxScalePercent;
  if (text.empty() || text.find_first_not_of("0123456789") != absl::string_view::npos ||
      !absl::SimpleAtoi(text, &scale.amount) || scale.amount < 1 || scale.amount > max) {
    return std::nullopt;
  }
  if (is_less) scale.amount = -scale.amount;
  return scale;
}

void ReadScale(const YamlValue& value, Action* action) {
  const std::optional<Scale> scale = ParseScale(value.Raw());
  if (!scale) return value.MustBe("a step such as \"+25%\", \"+3\" or \"-1\"");
  *action = *scale;
}

void ReadDo(const YamlValue& section, const Target* target, Action* action) {
  const YamlMap map(section, RulesFileKeys().at(kDo));
  const YamlValue scale = map.Optional("scale"), set = map.Optional("set"),
                  hold = map.Optional("hold");
  const int actions = int{scale.present()} + int{set.present()} + int{hold.present()};
  if (section.IsMap() && actions != 1) {
    return section.Problem("must have one of 'scale', 'set' and 'hold'");
  }
  Hold direction = Hold::kUp;
  SetReplicas number;
  if (scale.present()) ReadScale(scale, action);
  if (hold.ReadWord({"up", "down"}, &direction)) *action = direction;
  if (!set.ReadInt(&number.replicas, 0, kMaxReplicas)) return;
  *action = number;
  if (target != nullptr &&
      (number.replicas < target->range.min || number.replicas > target->range.max)) {
    set.Problem(absl::StrCat("leaves [", target->range.min, ", ", target->range.max,
                             "], the min and max of '", target->id, "'"));
  }
}

// Resolves the names of a condition; resolves none while the target is unknown.
class Names {
 public:
  Names(const Rules& rules, const Target* target) : rules_(rules), target_(target) {}

  std::optional<Kind> KindOfName(absl::string_view name) {
    if (name == kSlaOperand) {
      if (target_ != nullptr && !target_->sla_max) wrong_ = "the target has no sla";
      return Kind::kTime;
    }
    const Operand* const operand = rules_.FindOperand(name);
    if (operand == nullptr) return std::nullopt;
    if (target_ != nullptr && operand->target != target_->id && !operand->target.empty()) {
      wrong_ = absl::StrCat("the operand '", operand->name, "' is of the target '", operand->target,
                            "', the reaction of '", target_->id, "'");
    }
    return KindOfMetric(operand->metric);
  }

  const std::string& wrong() const { return wrong_; }

 private:
  const Rules& rules_;
  const Target* const target_;
  std::string wrong_;
};

std::optional<Condition> ReadCondition(const YamlValue& value, const Rules& rules,
                                       const Target* target) {
  std::string text;
  if (!value.ReadText(&text)) return std::nullopt;
  Names names(rules, target);
  const auto condition =
      Condition::Parse(text, [&](absl::string_view name) { return names.KindOfName(name); });
  if (!condition.ok()) {
    value.Problem(condition.status().message());
    return std::nullopt;
  }
  if (!names.wrong().empty()) value.Problem(names.wrong());
  return *condition;
}

void ReadReaction(const YamlValue& entry, Rules* rules) {
  const YamlMap map(entry, RulesFileKeys().at(kReaction));
  int rank = 0;
  std::string id;
  map.Required("rank").ReadInt(&rank, 0, kMaxRank);
  const bool is_known = ReadTargetId(map.Required("target"), *rules, &id);
  const Target* const target = is_known ? rules->FindTarget(id) : nullptr;
  std::optional<Condition> condition = ReadCondition(map.Required("if"), *rules, target);
  Action action;
  if (const YamlValue section = map.Required("do"); section.present()) {
    ReadDo(section, target, &action);
  }
  if (condition) rules->reactions.push_back({rank, id, *std::move(condition), action});
}

}  // namespace

void ReadReactions(const YamlValue& section, Rules* rules) {
  for (const YamlValue& entry : section.List(0, kMaxReactions)) {
    ReadReaction(entry, rules);
  }
}

void ReadStabilizer(const YamlValue& section, Rules* rules) {
  if (!section.present()) return;
  const YamlMap map(section, RulesFileKeys().at(kStabilizer));
  map.Optional("up_cooldown")
      .ReadDuration(&rules->stabilizer.up_cooldown, absl::ZeroDuration(), kMaxCooldown);
  const YamlValue idle_hold = map.Optional("idle_hold");
  absl::Duration hold;
  if (idle_hold.Raw() == "auto") return;
  if (idle_hold.ReadDuration(&hold, absl::ZeroDuration(), kMaxCooldown)) {
    rules->stabilizer.idle_hold = hold;
  }
}

namespace {

// `keep: max` was written `keep: max(current, floor)`. Between braces YAML ends a value at a comma:
// `{after: 3, keep: max(current, floor)}` has three entries, of which the last is this.
constexpr char kRestOfOldMax[] = "floor)";

bool IsOldMax(const YamlValue& keep, const YamlValue& rest) {
  if (!rest.present()) return keep.Raw() == "max(current, floor)";
  return rest.Raw().empty() && keep.Raw() == "max(current";
}

}  // namespace

void ReadMetricLoss(const YamlValue& section, Rules* rules) {
  if (!section.present()) return;
  std::vector<std::string> keys = RulesFileKeys().at(kMetricLoss);
  keys.push_back(kRestOfOldMax);
  const YamlMap map(section, keys);
  map.Optional("after").ReadInt(&rules->on_metric_loss.after, 1, kMaxLosses);
  const YamlValue keep = map.Optional("keep"), rest = map.Optional(kRestOfOldMax);
  if (IsOldMax(keep, rest)) {
    rules->on_metric_loss.keep = MetricLoss::Keep::kMaxOfCurrentAndFloor;
    rules->warnings.push_back(
        {keep.place(), "on_metric_loss.keep: max(current, floor) is now written max"});
    return;
  }
  if (rest.present()) return rest.BareProblem("unknown key 'floor)' in on_metric_loss");
  keep.ReadWord({"max", "current", "floor"}, &rules->on_metric_loss.keep);
}

}  // namespace muster::scaling::rules
