// CronFields: when something starts, in the five fields of a crontab line.
#pragma once

#include <bitset>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"

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
  // Minute or hour begin with '*': it repeats with the clock on the wall, also when that is put
  // back, and skips with it what is skipped.
  bool follows_clock = false;

  // As Vixie's cron has it: a day must fit both fields of days, or one of them when neither begins
  // with '*'.
  bool IsOn(absl::CivilDay day) const;
};

// "MINUTE HOUR DAY MONTH WEEKDAY", each `*`, a number, a range (1-5), one of these with a step
// (*/15, 8-18/2), or a list of them (1,15,20-25). Months and weekdays also by three letters
// (jan, mon); 7 is Sunday, too. InvalidArgument names the field.
absl::StatusOr<CronFields> ParseCron(absl::string_view text);

}  // namespace muster::scaling::rules
