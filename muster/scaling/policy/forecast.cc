// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/policy/forecast.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace muster::scaling::policy {
namespace {

constexpr int64_t kQuarterSeconds = int64_t{15} * 60;

// The weight of one quarter of an hour in each average: the level forgets in a day, a time of day
// in about five days, a time of week in about three weeks.
constexpr double kLevelShare = 0.01;
constexpr double kDailyShare = 0.2;
constexpr double kWeeklyShare = 0.35;

// 90 % of a normal distribution lie below this many mean absolute deviations.
constexpr double kNinetyPercent = 1.2816 * 1.2533;

int64_t QuarterOf(absl::Time time) {
  const int64_t seconds = absl::ToUnixSeconds(time);
  return seconds / kQuarterSeconds - (seconds % kQuarterSeconds < 0 ? 1 : 0);
}

size_t Place(int64_t quarter, int season) {
  return static_cast<size_t>(((quarter % season) + season) % season);
}

}  // namespace

void SeasonalForecast::Restart(int64_t quarter, int64_t ever) {
  *this = SeasonalForecast();
  quarter_ = quarter;
  ever_at_start_ = ever;
}

void SeasonalForecast::See(absl::Time now, int64_t ever) {
  const int64_t quarter = QuarterOf(now);
  if (!quarter_.has_value() || std::abs(quarter - *quarter_) > kOfAWeek) {
    Restart(quarter, ever);
    return;
  }
  if (quarter == *quarter_) return;
  const bool next = quarter == *quarter_ + 1;
  if (next && seen_from_start_) {
    const auto items = static_cast<double>(std::max<int64_t>(0, ever - ever_at_start_));
    Learn(*quarter_, items / kQuarterSeconds);
  }
  quarter_ = quarter;
  ever_at_start_ = ever;
  seen_from_start_ = next;
}

double SeasonalForecast::Expect(int64_t quarter) const {
  return level_ + daily_[Place(quarter, kOfADay)] + weekly_[Place(quarter, kOfAWeek)];
}

// Works on square roots of rates. Counts vary with the square root of their size, so this makes the
// errors of quiet and of busy hours comparable.
void SeasonalForecast::Learn(int64_t quarter, double rate) {
  const double root = std::sqrt(rate);
  double& daily = daily_[Place(quarter, kOfADay)];
  double& weekly = weekly_[Place(quarter, kOfAWeek)];
  double& deviation = deviation_[Place(quarter, kOfADay)];
  // There is no expectation during the first week, so there is no error either.
  if (learned_ >= kOfAWeek) {
    deviation += kDailyShare * (std::abs(root - Expect(quarter)) - deviation);
  }
  ++learned_;
  level_ +=
      std::max(kLevelShare, 1.0 / static_cast<double>(learned_)) * (root - daily - weekly - level_);
  daily += kDailyShare * (root - level_ - weekly - daily);
  weekly += kWeeklyShare * (root - level_ - daily - weekly);
}

std::optional<double> SeasonalForecast::UpperRate(absl::Time now, absl::Duration ahead) const {
  if (learned_ < int64_t{2} * kOfAWeek) return std::nullopt;
  const int64_t first = QuarterOf(now);
  const int64_t last = std::min(QuarterOf(now + ahead), first + kOfAWeek);
  double most = 0;
  for (int64_t quarter = first; quarter <= last; ++quarter) {
    const double deviation = deviation_[Place(quarter, kOfADay)];
    most = std::max(most, Expect(quarter) + kNinetyPercent * deviation);
  }
  return most * most;
}

}  // namespace muster::scaling::policy
