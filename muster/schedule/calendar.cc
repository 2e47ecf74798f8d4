// SPDX-License-Identifier: Apache-2.0
#include "muster/schedule/calendar.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/base/time_zone.h"
#include "muster/schedule/limits.h"

namespace muster::schedule {

using scaling::rules::CronFields;
using scaling::rules::InstantOf;

namespace {

constexpr char kForms[] =
    "is no time such as 2026-12-01T03:00:00Z or 2026-12-01T03:00[Europe/Berlin]";

constexpr std::array<std::pair<absl::string_view, absl::string_view>, 7> kShorthands = {{
    {"@hourly", "0 * * * *"},
    {"@daily", "0 0 * * *"},
    {"@midnight", "0 0 * * *"},
    {"@weekly", "0 0 * * 0"},
    {"@monthly", "0 0 1 * *"},
    {"@yearly", "0 0 1 1 *"},
    {"@annually", "0 0 1 1 *"},
}};

absl::StatusOr<absl::string_view> Spelled(absl::string_view text) {
  if (text.empty() || text[0] != '@') return text;
  std::vector<std::string> names;
  for (const auto& [name, meaning] : kShorthands) {
    if (name == text) return meaning;
    names.emplace_back(name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(base::Quoted(text), " is none of ", base::ListNames(names)));
}

// A leap year has each day of each month, and a day of the week comes in each month.
bool Occurs(const CronFields& cron) {
  if (!cron.any_day && !cron.any_weekday) return true;
  for (absl::CivilDay day(2028, 1, 1); day.year() == 2028; ++day) {
    const bool has_day = cron.days[static_cast<size_t>(day.day())];
    if (has_day && cron.months[static_cast<size_t>(day.month())]) return true;
  }
  return false;
}

// The rarest days are those such as a 29 February that is a Sunday: over a year as 2100, which has
// no such day, they are 40 years apart.
constexpr int kMaxDaysBetween = 366 * 41;

std::optional<absl::CivilMinute> FirstWithin(const CronFields& cron, absl::CivilDay day,
                                             absl::CivilMinute from) {
  for (absl::CivilHour hour = std::max(absl::CivilHour(day), absl::CivilHour(from));
       absl::CivilDay(hour) == day; ++hour) {
    if (!cron.hours[static_cast<size_t>(hour.hour())]) continue;
    for (absl::CivilMinute minute = std::max(absl::CivilMinute(hour), from);
         absl::CivilHour(minute) == hour; ++minute) {
      if (cron.minutes[static_cast<size_t>(minute.minute())]) return minute;
    }
  }
  return std::nullopt;
}

absl::StatusOr<absl::CivilSecond> ParseClock(absl::string_view text) {
  absl::CivilSecond second;
  if (absl::ParseCivilTime(text, &second)) return second;
  absl::CivilMinute minute;
  if (absl::ParseCivilTime(text, &minute)) return absl::CivilSecond(minute);
  return absl::InvalidArgumentError(absl::StrCat(base::Quoted(text), " ", kForms));
}

// Of any year.
absl::StatusOr<absl::Time> ParseAnyMoment(absl::string_view text) {
  const size_t bracket = text.find('[');
  if (bracket == absl::string_view::npos) {
    absl::Time time;
    std::string why;
    if (absl::ParseTime(absl::RFC3339_full, std::string(text), &time, &why) &&
        time != absl::InfiniteFuture() && time != absl::InfinitePast()) {
      return time;
    }
    return absl::InvalidArgumentError(absl::StrCat(base::Quoted(text), " ", kForms));
  }
  if (!absl::EndsWith(text, "]")) {
    return absl::InvalidArgumentError(absl::StrCat(base::Quoted(text), " ", kForms));
  }
  const absl::string_view name = text.substr(bracket + 1, text.size() - bracket - 2);
  MUSTER_ASSIGN_OR_RETURN(const absl::TimeZone zone, FindTimeZone(name));
  MUSTER_ASSIGN_OR_RETURN(const absl::CivilSecond clock, ParseClock(text.substr(0, bracket)));
  return InstantOf(clock, zone);
}

}  // namespace

absl::StatusOr<absl::TimeZone> FindTimeZone(absl::string_view name) {
  if (name.empty() || name == "UTC") return absl::UTCTimeZone();
  return base::FindTimeZone(name);
}

absl::StatusOr<CronFields> ParseCron(absl::string_view text) {
  if (text.size() > kMaxCronBytes) {
    return absl::InvalidArgumentError(absl::StrCat("is longer than ", kMaxCronBytes, " bytes"));
  }
  MUSTER_ASSIGN_OR_RETURN(const absl::string_view spelled, Spelled(text));
  MUSTER_ASSIGN_OR_RETURN(const CronFields cron, scaling::rules::ParseCron(spelled));
  if (Occurs(cron)) return cron;
  return absl::InvalidArgumentError(absl::StrCat(base::Quoted(text), " never occurs"));
}

absl::CivilMinute FirstFrom(const CronFields& cron, absl::CivilMinute from) {
  absl::CivilDay day(from);
  for (int looked = 0; looked <= kMaxDaysBetween; ++looked, ++day) {
    if (!cron.IsOn(day)) continue;
    if (const auto found = FirstWithin(cron, day, from); found.has_value()) return *found;
  }
  MUSTER_CHECK(false, "ParseCron refuses what never occurs");
  return from;
}

absl::StatusOr<absl::Time> ParseMoment(absl::string_view text) {
  MUSTER_ASSIGN_OR_RETURN(const absl::Time moment, ParseAnyMoment(text));
  // Of others, a timestamp would keep the nearest in these.
  const absl::civil_year_t year = absl::ToCivilYear(moment, absl::UTCTimeZone()).year();
  if (year >= 1 && year <= 9999) return moment;
  return absl::InvalidArgumentError(
      absl::StrCat(base::Quoted(text), " is not within the years 1 to 9999"));
}

absl::StatusOr<Calendar> Calendar::Of(const v1::ScheduleSpec& spec) {
  Calendar calendar;
  if (spec.has_at()) {
    calendar.at_ = base::FromProto(spec.at());
    return calendar;
  }
  if (!spec.has_cron()) return absl::InvalidArgumentError("has neither cron nor at");
  MUSTER_ASSIGN_OR_RETURN(calendar.cron_, ParseCron(spec.cron()));
  MUSTER_ASSIGN_OR_RETURN(calendar.zone_, FindTimeZone(spec.time_zone()));
  return calendar;
}

std::optional<absl::Time> Calendar::Next(absl::Time after) const {
  if (is_once()) return at_ > after ? std::optional<absl::Time>(at_) : std::nullopt;
  return cron_->follows_clock ? NextThatIsShown(after) : NextByClock(after);
}

// What the clock shows later comes later or at the same moment: so the first that is late enough is
// the next.
absl::Time Calendar::NextByClock(absl::Time after) const {
  absl::CivilMinute minute(absl::ToCivilSecond(after, zone_));
  while (true) {
    minute = FirstFrom(*cron_, minute);
    const absl::Time moment = InstantOf(absl::CivilSecond(minute), zone_);
    if (moment > after) return moment;
    ++minute;
  }
}

// Within a day that fits, minute by minute: a clock may be changed in between.
absl::Time Calendar::NextThatIsShown(absl::Time after) const {
  absl::Time moment = absl::FromUnixSeconds(absl::ToUnixSeconds(after));
  while (true) {
    const absl::CivilSecond shown = absl::ToCivilSecond(moment, zone_);
    moment += absl::Seconds(60 - shown.second());
    const absl::CivilMinute minute(absl::ToCivilSecond(moment, zone_));
    const absl::CivilDay day(minute);
    if (cron_->IsOn(day)) {
      const bool fits = cron_->hours[static_cast<size_t>(minute.hour())] &&
                        cron_->minutes[static_cast<size_t>(minute.minute())];
      if (fits) return moment;
      continue;
    }
    const absl::CivilDay next(FirstFrom(*cron_, absl::CivilMinute(day + 1)));
    // A second before, for the step above; unless a clock that goes back at midnight shows that day
    // again.
    moment = std::max(moment, InstantOf(absl::CivilSecond(next), zone_) - absl::Seconds(1));
  }
}

}  // namespace muster::schedule
