// Calendar: the windows of time in which a constraint is in force.
//
// Windows begin at a time of the clock on the wall, in a time zone, and last as long as they last,
// however that clock is put in between. A window that would begin in an hour that is skipped begins
// when that hour ends; in an hour that comes twice, at its first coming. Only a cron line with a
// `*` for its minute or hour follows the clock: it opens twice, or not at all.
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "muster/scaling/rules/cron.h"
#include "muster/scaling/rules/day_pattern.h"

namespace muster::scaling::rules {

// A time of the day, on some days.
struct DailyStart {
  std::vector<DayPattern> days;  // any of them; empty: each day
  int minute = 0;                // of the day, 0 to 1439
};

// The first instant at which a clock on the wall in `zone` shows `local` or more.
absl::Time InstantOf(absl::CivilSecond local, const absl::TimeZone& zone);

// Immutable, a value. Thread-safe.
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

  // The window that `at` lies in; of several, the one that begins last.
  std::optional<Window> WindowAt(absl::Time at) const;
  bool IsOpen(absl::Time at) const { return WindowAt(at).has_value(); }

  // When a window begins, later than `after` and not later than `until`; InfiniteFuture when none
  // does any more.
  absl::Time NextStart(absl::Time after, absl::Time until = absl::InfiniteFuture()) const;
  // When IsOpen changes, later than `after`; InfiniteFuture when it never does again, or not for
  // kMaxChainedWindows windows.
  absl::Time NextChange(absl::Time after) const;

 private:
  bool IsOn(absl::CivilDay day) const;
  // The starts of windows on a local day, in order.
  std::vector<absl::Time> StartsOn(absl::CivilDay day) const;
  // What a clock that shows `local` stands for, zero to two instants.
  void AppendStarts(absl::CivilMinute local, std::vector<absl::Time>* starts) const;
  absl::Time EndOf(absl::Time window_start) const;
};

}  // namespace muster::scaling::rules
