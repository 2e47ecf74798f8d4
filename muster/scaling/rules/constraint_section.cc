#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "muster/base/nearest_name.h"
#include "muster/scaling/rules/rules_file.h"
#include "muster/scaling/rules/sections.h"

namespace muster::scaling::rules {
namespace {

using yaml::Problems;
using yaml::YamlMap;
using yaml::YamlValue;

std::string RangeText(const Range& range) {
  return absl::StrCat("[", range.min, ", ", range.max, "]");
}

void ReadRange(const YamlValue& value, const Target* target, Constraint* constraint) {
  const std::vector<YamlValue> ends = value.List(2, 2);
  if (ends.empty()) return;
  Range range;
  const bool has_min = ReadIntInto(ends[0], &range.min, 0, kMaxReplicas);
  if (!ReadIntInto(ends[1], &range.max, 0, kMaxReplicas) || !has_min) return;
  if (range.min > range.max) {
    return value.Problem(absl::StrCat("is upside down: ", range.min, " is above ", range.max));
  }
  if (target != nullptr && (range.min < target->range.min || range.max > target->range.max)) {
    value.Problem(absl::StrCat("leaves ", RangeText(target->range), ", the min and max of '",
                               target->id, "'"));
  }
  constraint->range = range;
}

// "900 replica-min/h"
void ReadBudget(const YamlValue& value, Constraint* constraint) {
  if (!value.present()) return;
  const std::string raw = value.Raw();
  absl::string_view text = raw;
  int64_t budget = 0;
  const bool fits = absl::ConsumeSuffix(&text, " replica-min/h") && !text.empty() &&
                    text.find_first_not_of("0123456789") == absl::string_view::npos &&
                    absl::SimpleAtoi(text, &budget) && budget >= 1 && budget <= kMaxBudget;
  if (!fits) {
    return value.MustBe(absl::StrCat("a whole number of replica-minutes in an hour up to ",
                                     kMaxBudget, ", such as 900 replica-min/h"));
  }
  constraint->budget = static_cast<int>(budget);
}

template <typename Value>
bool Contradict(const std::optional<Value>& a, const std::optional<Value>& b) {
  return a && b && *a != *b;
}

// Windows of both may never meet; whether they do would change with the year, so that nobody asks.
void RequireNoContradiction(const YamlValue& rank, const Constraint& constraint,
                            const Rules& rules) {
  for (const Constraint& other : rules.constraints) {
    if (other.rank != constraint.rank || other.target != constraint.target) continue;
    const char* const what = Contradict(other.range, constraint.range)       ? "range"
                             : Contradict(other.budget, constraint.budget)   ? "budget"
                             : Contradict(other.standby, constraint.standby) ? "standby"
                                                                             : nullptr;
    if (what == nullptr) continue;
    rank.Problem(absl::StrCat("'", other.name, "' has the same rank and another ", what,
                              "; which of them rules?"));
  }
}

void ReadConstraint(const YamlValue& entry, Problems* problems, Rules* rules) {
  const YamlMap map(entry, RulesFileKeys().at(kConstraint), problems);
  Constraint constraint;
  const YamlValue name = map.Required("name"), rank = map.Required("rank");
  name.ReadName(&constraint.name);
  const bool has_rank = ReadIntInto(rank, &constraint.rank, 0, kMaxRank);
  const bool has_target = ReadTargetId(map.Required("target"), *rules, &constraint.target);
  ReadRange(map.Optional("range"), has_target ? rules->FindTarget(constraint.target) : nullptr,
            &constraint);
  ReadBudget(map.Optional("budget"), &constraint);
  int standby = 0;
  if (ReadIntInto(map.Optional("standby"), &standby, 0, kMaxReplicas)) constraint.standby = standby;
  const bool states_something = map.Optional("range").present() ||
                                map.Optional("budget").present() ||
                                map.Optional("standby").present();
  if (entry.IsMap() && !states_something) {
    entry.Problem("must have at least one of 'range', 'budget' and 'standby'");
  }
  if (const YamlValue when = map.Optional("when"); when.present()) {
    ReadWhen(when, problems, &constraint);
  }
  for (const Constraint& other : rules->constraints) {
    if (constraint.name.empty() || other.name != constraint.name) continue;
    name.Problem(absl::StrCat("the constraint '", constraint.name, "' is there twice"));
  }
  if (has_rank && has_target) RequireNoContradiction(rank, constraint, *rules);
  rules->constraints.push_back(std::move(constraint));
}

}  // namespace

void ReadConstraints(const YamlValue& section, Problems* problems, Rules* rules) {
  for (const YamlValue& entry : section.List(0, kMaxConstraints)) {
    ReadConstraint(entry, problems, rules);
  }
}

}  // namespace muster::scaling::rules
