// SPDX-License-Identifier: Apache-2.0

// Calendar: the occurrences of a schedule, in time. A cron expression is read, and means the clock
// on the wall, as in the rules of scaling (muster/scaling/rules/calendar.h):
//
//   the clock goes forward: an occurrence that the clock leaves out comes at the first moment after
//   the gap, once for all that lie in it
//   the clock goes back: of an occurrence that the clock shows twice, the first one counts
//
// An expression with a * in front of its minute or hour, as */5 * * * *, follows the clock instead:
// it occurs whenever the clock shows a minute that fits, also again, and nothing is added for a
// gap.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/scaling/rules/calendar.h"
#include "muster/v1/schedule.pb.h"

namespace muster::schedule {

// As base::FindTimeZone; empty: UTC.
absl::StatusOr<absl::TimeZone> FindTimeZone(absl::string_view name);

// Five fields, or @hourly, @daily, @midnight, @weekly, @monthly, @yearly or @annually.
// InvalidArgument names the field that is wrong. What never occurs, as on 30 February, is refused,
// too.
absl::StatusOr<scaling::rules::CronFields> ParseCron(absl::string_view text);

// The first minute that fits, from `from` on.
absl::CivilMinute FirstFrom(const scaling::rules::CronFields& cron, absl::CivilMinute from);

// A moment as people write it: RFC 3339 ("2026-12-01T03:00:00+01:00"), or a clock's time and where
// that clock hangs: "2026-12-01T03:00[Europe/Berlin]", seconds if need be. InvalidArgument: it is
// neither.
absl::StatusOr<absl::Time> ParseMoment(absl::string_view text);

// A value; thread-compatible.
class Calendar {
 public:
  // InvalidArgument: `spec` has no cron expression, nor a time, or its zone is unknown here.
  static absl::StatusOr<Calendar> Of(const v1::ScheduleSpec& spec);

  // The first occurrence later than `after`; nullopt: there is none.
  std::optional<absl::Time> Next(absl::Time after) const;

  bool is_once() const { return !cron_.has_value(); }

 private:
  Calendar() = default;

  absl::Time NextByClock(absl::Time after) const;
  absl::Time NextThatIsShown(absl::Time after) const;

  std::optional<scaling::rules::CronFields> cron_;  // nullopt: it occurs at at_
  absl::Time at_;
  absl::TimeZone zone_;
};

}  // namespace muster::schedule
