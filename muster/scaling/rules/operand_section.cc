#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/nearest_name.h"
#include "muster/scaling/rules/rules_file.h"
#include "muster/scaling/rules/sections.h"

namespace muster::scaling::rules {
namespace {

using yaml::Problems;
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

// Conditions read a '-' as a minus, and have words of their own.
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
  if (!ReadWord(map.Required("metric"), metrics, &place)) return;
  operand->metric = static_cast<Metric>(place + (queue.present() ? 0 : QueueMetrics().size()));
}

void ReadAggregate(const YamlMap& map, Operand* operand) {
  size_t place = 0;
  if (!ReadWord(map.Required("agg"), {"last", "average", "min", "max", "growth"}, &place)) return;
  operand->aggregate = static_cast<Aggregate>(place);
  if (operand->aggregate != Aggregate::kLast) {
    map.Required("over").ReadDuration(&operand->over, kMinOver, kMaxOver);
  } else if (const YamlValue over = map.Optional("over"); over.present()) {
    over.Problem("has no meaning for last");
  }
}

}  // namespace

void ReadOperands(const YamlValue& section, Problems* problems, Rules* rules) {
  for (const auto& [name, entry] : section.Entries(0, kMaxOperands)) {
    const YamlMap map(entry, RulesFileKeys().at(kOperand), problems);
    Operand operand;
    ReadOperandName(name, &operand.name);
    ReadSource(entry, map, *rules, &operand);
    ReadAggregate(map, &operand);
    rules->operands.push_back(std::move(operand));
  }
}

}  // namespace muster::scaling::rules
