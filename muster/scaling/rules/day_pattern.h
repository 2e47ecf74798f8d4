// DayPattern: which days of the calendar a window opens on.
#pragma once

#include <bitset>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"

namespace muster::scaling::rules {

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
// "12-24", of each year. InvalidArgument: none of these, or a day that no year has.
absl::StatusOr<DayPattern> ParseDayPattern(absl::string_view text);

bool IsOn(const DayPattern& pattern, absl::CivilDay day);

}  // namespace muster::scaling::rules
