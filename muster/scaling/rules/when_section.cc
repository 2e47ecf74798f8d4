#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/nearest_name.h"
#include "muster/scaling/rules/rules_file.h"
#include "muster/scaling/rules/sections.h"

namespace muster::scaling::rules {
namespace {

// Leads to no file but those of the time zone database, and to the same on each machine.
bool IsZoneName(absl::string_view name) {
  return !name.empty() && absl::ascii_isalpha(static_cast<unsigned char>(name[0])) &&
         name != "localtime" && std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '+' || c == '/';
         });
}

void ReadZone(const yaml::YamlValue& value, absl::TimeZone* zone) {
  std::string name;
  if (!value.ReadText(&name)) return;
  if (!IsZoneName(name) || !absl::LoadTimeZone(name, zone)) {
    value.MustBe("a time zone that this machine knows, such as Europe/Paris");
  }
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

void ReadWhen(const yaml::YamlValue& section, yaml::Problems* problems, Constraint* constraint) {
  const yaml::YamlMap map(section, RulesFileKeys().at(kWhen), problems);
  Calendar calendar;
  ReadZone(map.Optional("tz"), &calendar.zone);
  ReadStart(section, map, &calendar);
  absl::Duration lasts;
  if (map.Optional("for").ReadDuration(&lasts, kMinWindow, kMaxWindow)) calendar.lasts = lasts;
  ReadPrewarm(map.Optional("prewarm"), &constraint->prewarm);
  constraint->when = std::move(calendar);
}

}  // namespace muster::scaling::rules
