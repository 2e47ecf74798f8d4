// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/policy/forecast.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace muster::scaling::policy {
namespace {

const absl::Time kMonday = absl::FromUnixSeconds(4 * 24 * 3600);  // 5 January 1970

// 100 items a second from 9 to 17 on working days, else 4.
double OfficeHours(absl::Time time) {
  const int64_t second = absl::ToUnixSeconds(time) - absl::ToUnixSeconds(kMonday);
  const int64_t hour = second / 3600 % 24, day = second / (24 * 3600) % 7;
  return day < 5 && hour >= 9 && hour < 17 ? 100 : 4;
}

class SeasonalForecastTest : public ::testing::Test {
 protected:
  void Live(absl::Duration time) {
    for (const absl::Time end = now_ + time; now_ < end; now_ += absl::Minutes(5)) {
      forecast_.See(now_, static_cast<int64_t>(ever_));
      ever_ += OfficeHours(now_) * 300;
    }
  }

  double Upper(absl::Duration from_monday) const {
    return forecast_.UpperRate(now_ + from_monday, absl::Seconds(30)).value_or(-1);
  }

  absl::Time now_ = kMonday;
  double ever_ = 0;
  SeasonalForecast forecast_;
};

constexpr absl::Duration kWeek = absl::Hours(24 * 7);

TEST_F(SeasonalForecastTest, SaysNothingBeforeTwoWholeWeeks) {
  Live(2 * kWeek - absl::Hours(1));
  EXPECT_FALSE(forecast_.UpperRate(now_, absl::Minutes(1)).has_value());
  Live(absl::Hours(3));
  EXPECT_TRUE(forecast_.UpperRate(now_, absl::Minutes(1)).has_value());
}

TEST_F(SeasonalForecastTest, KnowsTheHoursAndTheDays) {
  Live(6 * kWeek);
  EXPECT_GT(Upper(absl::Hours(12)), 100);
  EXPECT_LT(Upper(absl::Hours(12)), 150);
  EXPECT_LT(Upper(absl::Hours(3)), 12);
  EXPECT_LT(Upper(absl::Hours(24 * 5 + 12)), 40) << "a Saturday";
}

TEST_F(SeasonalForecastTest, LooksAheadIntoTheNextHour) {
  Live(6 * kWeek);
  const absl::Time before_nine = now_ + absl::Hours(9) - absl::Minutes(10);
  EXPECT_LT(*forecast_.UpperRate(before_nine, absl::Minutes(1)), 30);
  EXPECT_GT(*forecast_.UpperRate(before_nine, absl::Minutes(20)), 70);
}

TEST_F(SeasonalForecastTest, BeginsAnewAfterMoreThanAWeekOfNothing) {
  Live(3 * kWeek);
  now_ += kWeek + absl::Hours(1);
  Live(absl::Hours(1));
  EXPECT_FALSE(forecast_.UpperRate(now_, absl::Minutes(1)).has_value());
}

TEST_F(SeasonalForecastTest, LeavesOutHoursThatNobodyLookedAt) {
  Live(4 * kWeek);
  const double before = Upper(absl::Hours(12));
  now_ += absl::Hours(24);
  ever_ += 1e9;  // arrived at unknown times during the gap
  Live(absl::Hours(24 * 6));
  EXPECT_NEAR(Upper(absl::Hours(12)), before, 10);
}

// Two seconds too many, put right just after a quarter of an hour has begun, cost no two weeks.
TEST_F(SeasonalForecastTest, KeepsWhatItLearnedWhenTheClockStepsBack) {
  Live(4 * kWeek);
  forecast_.See(now_, static_cast<int64_t>(ever_));
  const absl::Duration noon = absl::Hours(12) + absl::Minutes(1);
  const double before = Upper(noon);
  now_ -= absl::Seconds(2);
  forecast_.See(now_, static_cast<int64_t>(ever_));
  EXPECT_DOUBLE_EQ(Upper(noon), before);
  now_ += absl::Seconds(2);
  Live(kWeek);
  EXPECT_NEAR(Upper(noon), before, 10);
  now_ -= kWeek + absl::Hours(1);
  Live(absl::Hours(1));
  EXPECT_FALSE(forecast_.UpperRate(now_, absl::Minutes(1)).has_value());
}

TEST_F(SeasonalForecastTest, IsFiniteWhateverItIsTold) {
  for (int quarter = 0; quarter < 3 * 672; ++quarter) {
    forecast_.See(now_, quarter % 2 == 0 ? 0 : std::numeric_limits<int64_t>::max());
    now_ += absl::Minutes(15);
  }
  const std::optional<double> rate = forecast_.UpperRate(now_, absl::InfiniteDuration());
  ASSERT_TRUE(rate.has_value());
  EXPECT_TRUE(std::isfinite(*rate));
  EXPECT_GE(*rate, 0);
}

}  // namespace
}  // namespace muster::scaling::policy
