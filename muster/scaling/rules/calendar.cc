// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/rules/calendar.h"

#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "muster/base/text.h"
#include "muster/scaling/rules/limits.h"

namespace muster::scaling::rules {

namespace {

struct CronField {
  absl::string_view name;
  int min;
  int max;
  absl::Span<const absl::string_view> names;  // of `min` and what follows
};

constexpr absl::string_view kMonths[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                         "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr absl::string_view kWeekdays[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
constexpr CronField kFields[] = {{"minute", 0, 59, {}},
                                 {"hour", 0, 23, {}},
                                 {"day of the month", 1, 31, {}},
                                 {"month", 1, 12, kMonths},
                                 {"day of the week", 0, 7, kWeekdays}};

absl::Status BadField(const CronField& field, absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("the ", field.name, " ", base::Quoted(text), " ", why));
}

std::optional<int> ParseDigits(absl::string_view text) {
  int number = 0;
  if (text.empty() || text.size() > 4) return std::nullopt;
  for (const char c : text) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) return std::nullopt;
    number = 10 * number + (c - '0');
  }
  return number;
}

std::optional<int> ParseValue(const CronField& field, absl::string_view text) {
  const std::string lower = absl::AsciiStrToLower(text);
  for (size_t i = 0; i < field.names.size(); ++i) {
    if (lower == field.names[i]) return field.min + static_cast<int>(i);
  }
  const std::optional<int> number = ParseDigits(text);
  return number && *number >= field.min && *number <= field.max ? number : std::nullopt;
}

// One entry of a list: a range of values and a step through it.
struct Stretch {
  int first;
  int last;
  int step = 1;
};

absl::StatusOr<Stretch> ParseStretch(const CronField& field, absl::string_view text) {
  const std::vector<absl::string_view> stepped = absl::StrSplit(text, absl::MaxSplits('/', 1));
  const std::vector<absl::string_view> ends = absl::StrSplit(stepped[0], absl::MaxSplits('-', 1));
  Stretch stretch{field.min, field.max};
  if (stepped[0] != "*") {
    const std::optional<int> first = ParseValue(field, ends[0]);
    const std::optional<int> last = ends.size() == 2 ? ParseValue(field, ends[1]) : first;
    if (!first || !last) {
      return BadField(
          field, text,
          absl::StrCat("is not *, nor made of numbers from ", field.min, " to ", field.max));
    }
    if (*first > *last) {
      const int end = field.max == 7 ? 6 : field.max;  // the 7th day of the week is the 0th
      if (*first > end) {
        return BadField(field, text,
                        absl::StrCat("begins after it ends; before other days, Sunday is ",
                                     field.min, ": ", field.min, "-", ends[1]));
      }
      return BadField(field, text,
                      absl::StrCat("begins after it ends; over the end it is two ranges: ", ends[0],
                                   "-", end, ",", field.min, "-", ends[1]));
    }
    if (stepped.size() == 2 && ends.size() == 1) {
      return BadField(field, text, "has a step without a range");
    }
    stretch = {*first, *last};
  }
  if (stepped.size() == 2) {
    const std::optional<int> step = ParseDigits(stepped[1]);
    if (!step || *step == 0) return BadField(field, text, "has a step that is no number above 0");
    // Programs that make ranges of numbers may well make one that is shorter than its step.
    const int values = field.max - field.min + (field.max == 7 ? 0 : 1);  // Sunday is 0 and 7
    if (stepped[0] == "*" && *step > values) {
      return BadField(field, text,
                      absl::StrCat("has a step beyond its ", values, " values, and so is the ",
                                   field.name, " ", stretch.first, " alone: write ", stretch.first,
                                   ", or a step of up to ", values));
    }
    stretch.step = *step;
  }
  return stretch;
}

template <size_t kSize>
absl::Status ParseField(const CronField& field, absl::string_view text, std::bitset<kSize>* out) {
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const absl::StatusOr<Stretch> stretch = ParseStretch(field, part);
    if (!stretch.ok()) return stretch.status();
    for (int at = stretch->first; at <= stretch->last; at += stretch->step) {
      out->set(static_cast<size_t>(at) % kSize);  // the 7th day of the week is the 0th
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool CronFields::IsOn(absl::CivilDay day) const {
  if (!months[static_cast<size_t>(day.month())]) return false;
  // absl counts weekdays from Monday.
  const size_t weekday = (static_cast<size_t>(absl::GetWeekday(day)) + 1) % 7;
  const bool fits_day = days[static_cast<size_t>(day.day())];
  const bool fits_weekday = weekdays[weekday];
  return any_day || any_weekday ? fits_day && fits_weekday : fits_day || fits_weekday;
}

absl::StatusOr<CronFields> ParseCron(absl::string_view text) {
  const std::vector<absl::string_view> parts =
      absl::StrSplit(text, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (parts.size() != 5) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", parts.size(), parts.size() == 1 ? " field" : " fields",
                     ", not 5: minute hour day-of-month month day-of-week"));
  }
  CronFields fields;
  absl::Status status = ParseField(kFields[0], parts[0], &fields.minutes);
  if (status.ok()) status = ParseField(kFields[1], parts[1], &fields.hours);
  if (status.ok()) status = ParseField(kFields[2], parts[2], &fields.days);
  if (status.ok()) status = ParseField(kFields[3], parts[3], &fields.months);
  if (status.ok()) status = ParseField(kFields[4], parts[4], &fields.weekdays);
  if (!status.ok()) return status;
  fields.any_day = parts[2][0] == '*';
  fields.any_weekday = parts[4][0] == '*';
  fields.follows_clock = parts[0][0] == '*' || parts[1][0] == '*';
  return fields;
}

namespace {

// The shortest month has 28 days.
constexpr int kMaxDaysOfMonth = 28;

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

std::optional<size_t> ParseWeekday(absl::string_view text) {
  constexpr std::array<absl::string_view, 7> kNames = {
      "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"};
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (text == kNames[i] || text == kNames[i].substr(0, 3)) return i;
  }
  return std::nullopt;
}

// A number of just `digits` digits.
std::optional<int> ParsePart(absl::string_view text, size_t digits) {
  return text.size() == digits ? ParseDigits(text) : std::nullopt;
}

std::optional<int> ParseCount(absl::string_view text) {
  const std::optional<int> count = ParsePart(text, text.size() == 1 ? 1 : 2);
  return count && *count >= 1 && *count <= kMaxDaysOfMonth ? count : std::nullopt;
}

std::optional<DayPattern> WeekdaysOf(absl::string_view text) {
  const std::vector<absl::string_view> ends = absl::StrSplit(text, absl::MaxSplits('-', 1));
  const std::optional<size_t> first = ParseWeekday(ends.front());
  const std::optional<size_t> last = ParseWeekday(ends.back());
  if (!first || !last) return std::nullopt;
  Weekdays weekdays;
  for (size_t at = *first;; at = (at + 1) % 7) {
    weekdays.days.set(at);
    if (at == *last) return weekdays;
  }
}

std::optional<DayPattern> OfMonth(absl::string_view text) {
  if (!absl::ConsumeSuffix(&text, "-of-month")) return std::nullopt;
  const bool is_first = absl::ConsumePrefix(&text, "first-");
  if (!is_first && !absl::ConsumePrefix(&text, "last-")) return std::nullopt;
  const std::optional<int> count = ParseCount(text);
  if (!count) return std::nullopt;
  return is_first ? DayPattern(FirstOfMonth{*count}) : DayPattern(LastOfMonth{*count});
}

// absl turns 29 February into 1 March in years without one.
bool Exists(absl::CivilDay day, int month, int of_month) {
  return day.month() == month && day.day() == of_month;
}

std::optional<DayPattern> DateOf(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '-');
  if (parts.size() != 2 && parts.size() != 3) return std::nullopt;
  const std::optional<int> day = ParsePart(parts.back(), 2);
  const std::optional<int> month = ParsePart(parts[parts.size() - 2], 2);
  const std::optional<int> year = parts.size() == 3 ? ParsePart(parts[0], 4) : 2000;  // a leap year
  if (!day || !month || !year) return std::nullopt;
  const absl::CivilDay date(*year, *month, *day);
  if (!Exists(date, *month, *day)) return std::nullopt;
  return parts.size() == 3 ? DayPattern(Date{date}) : DayPattern(YearlyDate{*month, *day});
}

}  // namespace

absl::StatusOr<DayPattern> ParseDayPattern(absl::string_view text) {
  for (const auto read : {WeekdaysOf, OfMonth, DateOf}) {
    if (const std::optional<DayPattern> pattern = read(text)) return *pattern;
  }
  return absl::InvalidArgumentError(
      "a weekday or a range of them (mon-fri), first-N-of-month, last-N-of-month with N up to 28, "
      "a date (2026-12-24), or one of each year (12-24)");
}

bool IsOn(const DayPattern& pattern, absl::CivilDay day) {
  return std::visit(
      Overloaded{
          [&](const Weekdays& on) { return on.days[static_cast<size_t>(absl::GetWeekday(day))]; },
          [&](const FirstOfMonth& on) { return day.day() <= on.count; },
          [&](const LastOfMonth& on) {
            const absl::CivilDay next_month(absl::CivilMonth(day) + 1);
            return next_month - day <= on.count;
          },
          [&](const Date& on) { return on.day == day; },
          [&](const YearlyDate& on) { return on.month == day.month() && on.day == day.day(); }},
      pattern);
}

absl::Time InstantOf(absl::CivilSecond local, const absl::TimeZone& zone) {
  const absl::TimeZone::TimeInfo info = zone.At(local);
  return info.kind == absl::TimeZone::TimeInfo::SKIPPED ? info.trans : info.pre;
}

bool Calendar::IsOn(absl::CivilDay day) const {
  if (const auto* const cron = std::get_if<CronFields>(&start)) return cron->IsOn(day);
  const std::vector<DayPattern>& days = std::get<DailyStart>(start).days;
  return days.empty() || std::any_of(days.begin(), days.end(), [&](const DayPattern& pattern) {
           return scaling::rules::IsOn(pattern, day);
         });
}

void Calendar::AppendStarts(absl::CivilMinute local, std::vector<absl::Time>* starts) const {
  using Info = absl::TimeZone::TimeInfo;
  const auto* const cron = std::get_if<CronFields>(&start);
  const bool follows_clock = cron != nullptr && cron->follows_clock;
  const Info info = zone.At(absl::CivilSecond(local));
  if (info.kind == Info::SKIPPED) {
    if (!follows_clock) starts->push_back(info.trans);
    return;
  }
  starts->push_back(info.pre);
  if (info.kind == Info::REPEATED && follows_clock) starts->push_back(info.post);
}

std::vector<absl::Time> Calendar::StartsOn(absl::CivilDay day) const {
  std::vector<absl::Time> starts;
  if (!IsOn(day)) return starts;
  if (const auto* const daily = std::get_if<DailyStart>(&start)) {
    AppendStarts(absl::CivilMinute(day) + daily->minute, &starts);
    return starts;
  }
  const CronFields& cron = std::get<CronFields>(start);
  for (int hour = 0; hour < 24; ++hour) {
    if (!cron.hours[static_cast<size_t>(hour)]) continue;
    for (int minute = 0; minute < 60; ++minute) {
      if (!cron.minutes[static_cast<size_t>(minute)]) continue;
      AppendStarts(absl::CivilMinute(day) + int64_t{60} * hour + minute, &starts);
    }
  }
  std::sort(starts.begin(), starts.end());
  return starts;
}

absl::Time Calendar::EndOf(absl::Time window_start) const {
  if (lasts) return window_start + *lasts;
  return InstantOf(absl::CivilSecond(absl::ToCivilDay(window_start, zone) + 1), zone);
}

std::optional<Calendar::Window> Calendar::WindowAt(absl::Time at) const {
  // One day more than a window can last: local days have up to 25 hours.
  const int days_back =
      2 + static_cast<int>(lasts.value_or(absl::ZeroDuration()) / absl::Hours(24));
  const absl::CivilDay today = absl::ToCivilDay(at, zone);
  for (int back = 0; back <= days_back; ++back) {
    const std::vector<absl::Time> starts = StartsOn(today - back);
    const auto later = std::upper_bound(starts.begin(), starts.end(), at);
    if (later == starts.begin()) continue;
    // All windows have the same length: if the last one is over, all are.
    const Window window{*(later - 1), EndOf(*(later - 1))};
    return at < window.end ? std::optional(window) : std::nullopt;
  }
  return std::nullopt;
}

absl::Time Calendar::NextStart(absl::Time after, absl::Time until) const {
  const absl::CivilDay today = absl::ToCivilDay(after, zone);
  const absl::CivilDay last = std::min(today + kMaxDaysAhead, absl::ToCivilDay(until, zone));
  for (absl::CivilDay day = today; day <= last; ++day) {
    const std::vector<absl::Time> starts = StartsOn(day);
    const auto later = std::upper_bound(starts.begin(), starts.end(), after);
    if (later != starts.end()) return *later <= until ? *later : absl::InfiniteFuture();
  }
  return absl::InfiniteFuture();
}

absl::Time Calendar::NextChange(absl::Time after) const {
  std::optional<Window> window = WindowAt(after);
  if (!window) return NextStart(after);
  for (int i = 0; i < kMaxChainedWindows; ++i) {
    const std::optional<Window> next = WindowAt(window->end);
    if (!next) return window->end;
    window = next;
  }
  return absl::InfiniteFuture();
}

}  // namespace muster::scaling::rules
