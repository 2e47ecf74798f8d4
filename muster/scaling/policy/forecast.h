// SPDX-License-Identifier: Apache-2.0

// SeasonalForecast: forecasts the work of an hour from the same hour of earlier days and weeks, by
// Holt-Winters smoothing with two seasons. Policies use it only to keep idle replicas, never to
// start any.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace muster::scaling::policy {

// Not thread-safe. Deterministic; its memory is one week of quarters of an hour.
class SeasonalForecast {
 public:
  // `ever`: all items that arrived until now. Call it often: a quarter of an hour without a call is
  // left out, and so is one in which the clock steps back. After more than a week without calls, or
  // a larger step back, learning starts anew.
  void See(absl::Time now, int64_t ever);

  // The rate, in items per second, that at most one of ten such quarters of an hour exceeds, from
  // `now` until `ahead` later. nullopt until two whole weeks were seen, because a single week may
  // not be typical.
  std::optional<double> UpperRate(absl::Time now, absl::Duration ahead) const;

 private:
  static constexpr int kOfADay = 96;
  static constexpr int kOfAWeek = 7 * kOfADay;

  void Learn(int64_t quarter, double rate);
  double Expect(int64_t quarter) const;
  void Restart(int64_t quarter, int64_t ever);

  double level_ = 0;
  std::array<double, kOfADay> daily_ = {};      // above or below the level
  std::array<double, kOfAWeek> weekly_ = {};    // what remains after level and day
  std::array<double, kOfADay> deviation_ = {};  // mean absolute error, by hour of the day
  int64_t learned_ = 0;                         // quarters of an hour
  std::optional<int64_t> quarter_;              // the quarter of an hour in progress
  int64_t ever_at_start_ = 0;                   // all items when that quarter began
  bool seen_from_start_ = false;  // whether See was called at that quarter's beginning
};

}  // namespace muster::scaling::policy
