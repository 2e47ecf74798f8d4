#include "muster/scaling/rules/calendar.h"

#include <algorithm>

#include "muster/scaling/rules/limits.h"

namespace muster::scaling::rules {

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
    // Windows are of one length: if the last one is over, all are.
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
