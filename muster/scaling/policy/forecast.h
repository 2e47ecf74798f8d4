// SeasonalForecast: how much work the same hour of the day and of the week brings, by Holt-Winters
// smoothing with two seasons. It may only keep idle replicas: it starts none.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace muster::scaling::policy {

// Not thread-safe. Deterministic; its memory is one week of quarters of an hour.
class SeasonalForecast {
 public:
  // `ever`: all items that came until now. To be called often; a quarter of an hour that nobody
  // looked at is left out, and after more than a week of them all begins anew.
  void See(absl::Time now, int64_t ever);

  // Items per second that are exceeded in one of ten such quarters of an hour, at most, from `now`
  // until `ahead` later. Nothing before two whole weeks were seen: a week that was seen once may
  // have been any.
  std::optional<double> UpperRate(absl::Time now, absl::Duration ahead) const;

 private:
  static constexpr int kOfADay = 96;
  static constexpr int kOfAWeek = 7 * kOfADay;

  void Learn(int64_t quarter, double rate);
  double Expect(int64_t quarter) const;
  void Restart(int64_t quarter, int64_t ever);

  double level_ = 0;
  std::array<double, kOfADay> daily_ = {};      // above or below the level
  std::array<double, kOfAWeek> weekly_ = {};    // … and what the day does not explain
  std::array<double, kOfADay> deviation_ = {};  // mean absolute error, by hour of the day
  int64_t learned_ = 0;                         // quarters of an hour
  std::optional<int64_t> quarter_;              // the one that has not ended
  int64_t ever_at_start_ = 0;                   // … and the items when it began
  bool seen_from_start_ = false;                // … and whether its beginning was seen
};

}  // namespace muster::scaling::policy
