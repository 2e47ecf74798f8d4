// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "muster/base/time_zone.h"
#include "muster/scaling/rules/rules_file.h"
#include "muster/scaling/rules/rules_sections.h"

namespace muster::scaling::rules {

namespace {

void ReadZone(const yaml::YamlValue& value, absl::TimeZone* zone) {
  std::string name;
  if (!value.ReadText(&name)) return;
  const absl::StatusOr<absl::TimeZone> found = base::FindTimeZone(name);
  if (!found.ok()) return value.Problem(found.status().message());
  *zone = *found;
}

// "08:00"
std::optional<int> MinuteOfDay(absl::string_view text) {
  const auto digit = [&](size_t at) { return text[at] - '0'; };
  if (text.size() != 5 || text[2] != ':') return std::nullopt;
  for (const size_t at : {0, 1, 3, 4}) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(text[at]))) return std::nullopt;
  }
  const int hour = 10 * digit(0) + digit(1), minute = 10 * digit(3) + digit(4);
  return hour < 24 && minute < 60 ? std::optional(60 * hour + minute) : std::nullopt;
}

void ReadFrom(const yaml::YamlValue& value, int* minute) {
  if (!value.present()) return;
  const std::optional<int> parsed = MinuteOfDay(value.Raw());
  if (!parsed) return value.MustBe("a time of the day from \"00:00\" to \"23:59\"");
  *minute = *parsed;
}

void ReadDay(const yaml::YamlValue& value, std::vector<DayPattern>* days) {
  const absl::StatusOr<DayPattern> day = ParseDayPattern(value.Raw());
  if (!day.ok()) return value.MustBe(day.status().message());
  days->push_back(*day);
}

void ReadDays(const yaml::YamlValue& value, std::vector<DayPattern>* days) {
  if (!value.present()) return;
  if (!value.IsList()) return ReadDay(value, days);
  for (const yaml::YamlValue& entry : value.List(1, kMaxDays)) ReadDay(entry, days);
}

void ReadCron(const yaml::YamlValue& value, Calendar* calendar) {
  std::string text;
  if (!value.ReadText(&text)) return;
  const absl::StatusOr<CronFields> cron = ParseCron(text);
  if (!cron.ok()) return value.Problem(cron.status().message());
  calendar->start = *cron;
  if (calendar->NextStart(absl::UnixEpoch()) == absl::InfiniteFuture()) {
    value.Problem("never comes: no month of these has such a day");
  }
}

void ReadPrewarm(const yaml::YamlValue& value, Prewarm* prewarm) {
  if (value.Raw() == "auto") {
    prewarm->by_cold_start = true;
  } else {
    value.ReadDuration(&prewarm->lead, absl::ZeroDuration(), kMaxPrewarm);
  }
}

void ReadStart(const yaml::YamlValue& section, const yaml::YamlMap& map, Calendar* calendar) {
  const yaml::YamlValue cron = map.Optional("cron");
  const yaml::YamlValue days = map.Optional("days"), from = map.Optional("from");
  if (!cron.present()) {
    if (!days.present() && !from.present() && section.IsMap()) {
      section.Problem("must have 'cron', or 'days' or 'from'");
    }
    DailyStart daily;
    ReadDays(days, &daily.days);
    ReadFrom(from, &daily.minute);
    calendar->start = std::move(daily);
    return;
  }
  for (const yaml::YamlValue& other : {days, from}) {
    if (other.present()) other.Problem("has no meaning beside 'cron'");
  }
  map.Required("for");
  ReadCron(cron, calendar);
}

}  // namespace

void ReadWhen(const yaml::YamlValue& section, Constraint* constraint) {
  const yaml::YamlMap map(section, RulesFileKeys().at(kWhen));
  Calendar calendar;
  ReadZone(map.Optional("tz"), &calendar.zone);
  ReadStart(section, map, &calendar);
  absl::Duration lasts;
  if (map.Optional("for").ReadDuration(&lasts, kMinWindow, kMaxWindow)) calendar.lasts = lasts;
  ReadPrewarm(map.Optional("prewarm"), &constraint->prewarm);
  constraint->when = std::move(calendar);
}

namespace {

using yaml::YamlMap;
using yaml::YamlValue;

std::string RangeText(const Range& range) {
  return absl::StrCat("[", range.min, ", ", range.max, "]");
}

void ReadRange(const YamlValue& value, const Target* target, Constraint* constraint) {
  const std::vector<YamlValue> ends = value.List(2, 2);
  if (ends.empty()) return;
  Range range;
  const bool has_min = ends[0].ReadInt(&range.min, 0, kMaxReplicas);
  if (!ends[1].ReadInt(&range.max, 0, kMaxReplicas) || !has_min) return;
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

// Ignores the windows: whether the windows of two constraints overlap may change with the year.
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

void ReadConstraint(const YamlValue& entry, Rules* rules) {
  const YamlMap map(entry, RulesFileKeys().at(kConstraint));
  Constraint constraint;
  const YamlValue name = map.Required("name"), rank = map.Required("rank");
  name.ReadName(&constraint.name);
  const bool has_rank = rank.ReadInt(&constraint.rank, 0, kMaxRank);
  const bool has_target = ReadTargetId(map.Required("target"), *rules, &constraint.target);
  ReadRange(map.Optional("range"), has_target ? rules->FindTarget(constraint.target) : nullptr,
            &constraint);
  ReadBudget(map.Optional("budget"), &constraint);
  int standby = 0;
  if (map.Optional("standby").ReadInt(&standby, 0, kMaxReplicas)) constraint.standby = standby;
  const bool states_something = map.Optional("range").present() ||
                                map.Optional("budget").present() ||
                                map.Optional("standby").present();
  if (entry.IsMap() && !states_something) {
    entry.Problem("must have at least one of 'range', 'budget' and 'standby'");
  }
  if (const YamlValue when = map.Optional("when"); when.present()) {
    ReadWhen(when, &constraint);
  }
  for (const Constraint& other : rules->constraints) {
    if (constraint.name.empty() || other.name != constraint.name) continue;
    name.Problem(absl::StrCat("the constraint '", constraint.name, "' is there twice"));
  }
  if (has_rank && has_target) RequireNoContradiction(rank, constraint, *rules);
  rules->constraints.push_back(std::move(constraint));
}

}  // namespace

void ReadConstraints(const YamlValue& section, Rules* rules) {
  for (const YamlValue& entry : section.List(0, kMaxConstraints)) {
    ReadConstraint(entry, rules);
  }
}

}  // namespace muster::scaling::rules
