// SPDX-License-Identifier: Apache-2.0

// Calendar: the windows of time of a constraint, with their starts as CronFields or DayPatterns.
//
// CronFields: start times in the five fields of a crontab line.
#pragma once

#include <bitset>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"

namespace muster::scaling::rules {

// A value type.
struct CronFields {
  std::bitset<60> minutes;
  std::bitset<24> hours;
  std::bitset<32> days;      // of the month, 1 to 31
  std::bitset<13> months;    // 1 to 12
  std::bitset<7> weekdays;   // 0 is Sunday
  bool any_day = false;      // the field begins with '*'
  bool any_weekday = false;  // likewise
  // The minute or the hour field begins with '*': starts follow the wall clock. They repeat when
  // the clock is put back, and times that the clock skips are left out.
  bool follows_clock = false;

  // As in Vixie's cron: a day must match both day fields, or either of them if neither begins with
  // '*'.
  bool IsOn(absl::CivilDay day) const;
};

// "MINUTE HOUR DAY MONTH WEEKDAY", each `*`, a number, a range (1-5), one of these with a step
// (*/15, 8-18/2), or a list of them (1,15,20-25). Months and weekdays also by three letters
// (jan, mon); 7 is Sunday, too. InvalidArgument names the field.
absl::StatusOr<CronFields> ParseCron(absl::string_view text);

// DayPattern: the days of the calendar on which a window opens.

struct Weekdays {
  std::bitset<7> days;  // 0 is Monday
};
struct FirstOfMonth {
  int count = 1;
};
struct LastOfMonth {
  int count = 1;
};
struct Date {
  absl::CivilDay day;
};
struct YearlyDate {
  int month = 1;
  int day = 1;
};

using DayPattern = std::variant<Weekdays, FirstOfMonth, LastOfMonth, Date, YearlyDate>;

// "mon", "mon-fri", "fri-mon"; "first-3-of-month", "last-2-of-month" (up to 28); "2026-12-24";
// "12-24", of each year. InvalidArgument: any other text, or a day that no year has.
absl::StatusOr<DayPattern> ParseDayPattern(absl::string_view text);

bool IsOn(const DayPattern& pattern, absl::CivilDay day);

// Calendar: the windows of time in which a constraint is in force.
//
// A window begins at a wall-clock time in a time zone. Its length is fixed, even if the clock is
// changed in between. A window that would begin in a skipped hour begins when that hour ends; one
// in an hour that comes twice begins at the first time. Only a cron line with a `*` for its minute
// or hour follows the clock: it opens twice, or not at all.

// A start at a time of the day, on some days.
struct DailyStart {
  std::vector<DayPattern> days;  // on days that match any of them; empty: each day
  int minute = 0;                // of the day, 0 to 1439
};

// The first instant at which a wall clock in `zone` shows `local` or later.
absl::Time InstantOf(absl::CivilSecond local, const absl::TimeZone& zone);

// An immutable value. Thread-safe.
class Calendar {
 public:
  struct Window {
    absl::Time start;
    absl::Time end;  // exclusive
  };

  std::variant<DailyStart, CronFields> start;
  // How long a window lasts, kMinWindow to kMaxWindow; nullopt: until the local day ends.
  std::optional<absl::Duration> lasts;
  absl::TimeZone zone = absl::UTCTimeZone();

  // The window that contains `at`; of several, the one that begins last.
  std::optional<Window> WindowAt(absl::Time at) const;
  bool IsOpen(absl::Time at) const { return WindowAt(at).has_value(); }

  // The first start of a window after `after` and not after `until`; InfiniteFuture: there is none.
  absl::Time NextStart(absl::Time after, absl::Time until = absl::InfiniteFuture()) const;
  // When IsOpen changes next after `after`; InfiniteFuture: never, or not within kMaxChainedWindows
  // windows.
  absl::Time NextChange(absl::Time after) const;

 private:
  bool IsOn(absl::CivilDay day) const;
  // The window starts on a local day, in order.
  std::vector<absl::Time> StartsOn(absl::CivilDay day) const;
  // Appends the instants at which a clock shows `local`: none, one or two.
  void AppendStarts(absl::CivilMinute local, std::vector<absl::Time>* starts) const;
  absl::Time EndOf(absl::Time window_start) const;
};

}  // namespace muster::scaling::rules
