#include "muster/scaling/rules/cron.h"

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::scaling::rules {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

CronFields Parsed(absl::string_view text) {
  const absl::StatusOr<CronFields> fields = ParseCron(text);
  EXPECT_TRUE(fields.ok()) << fields.status();
  return fields.value_or(CronFields());
}

std::string MistakeIn(absl::string_view text) {
  return std::string(ParseCron(text).status().message());
}

template <typename Bits>
std::vector<int> Set(const Bits& bits) {
  std::vector<int> set;
  for (size_t i = 0; i < bits.size(); ++i) {
    if (bits[i]) set.push_back(static_cast<int>(i));
  }
  return set;
}

// Days of October 2026, which begins on a Thursday.
std::vector<int> DaysOfOctober(absl::string_view text) {
  const CronFields fields = Parsed(text);
  std::vector<int> days;
  for (int day = 1; day <= 31; ++day) {
    if (fields.IsOn(absl::CivilDay(2026, 10, day))) days.push_back(day);
  }
  return days;
}

TEST(CronTest, ReadsNumbersListsRangesAndSteps) {
  const CronFields fields = Parsed("55 8-10,20 1,15-17 */5 0-6/3");
  EXPECT_THAT(Set(fields.minutes), ElementsAre(55));
  EXPECT_THAT(Set(fields.hours), ElementsAre(8, 9, 10, 20));
  EXPECT_THAT(Set(fields.days), ElementsAre(1, 15, 16, 17));
  EXPECT_THAT(Set(fields.months), ElementsAre(1, 6, 11));
  EXPECT_THAT(Set(fields.weekdays), ElementsAre(0, 3, 6));
  EXPECT_THAT(Set(Parsed("*/20 * * * *").minutes), ElementsAre(0, 20, 40));
  EXPECT_THAT(Set(Parsed("10-59/25 * * * *").minutes), ElementsAre(10, 35));
}

TEST(CronTest, ReadsNamesOfMonthsAndWeekdays) {
  const CronFields fields = Parsed("0 0 * jan,Nov-DEC mon-FRI");
  EXPECT_THAT(Set(fields.months), ElementsAre(1, 11, 12));
  EXPECT_THAT(Set(fields.weekdays), ElementsAre(1, 2, 3, 4, 5));
}

TEST(CronTest, KnowsSundayAsZeroAndAsSeven) {
  EXPECT_THAT(Set(Parsed("0 0 * * 0").weekdays), ElementsAre(0));
  EXPECT_THAT(Set(Parsed("0 0 * * 7").weekdays), ElementsAre(0));
  EXPECT_THAT(Set(Parsed("0 0 * * 5-7").weekdays), ElementsAre(0, 5, 6));
}

TEST(CronTest, TakesADayThatFitsEitherFieldWhenBothAreGiven) {
  EXPECT_THAT(DaysOfOctober("0 0 13 * 5"), ElementsAre(2, 9, 13, 16, 23, 30));
}

TEST(CronTest, TakesADayThatFitsBothFieldsWhenOneBeginsWithAStar) {
  EXPECT_THAT(DaysOfOctober("0 0 13 * *"), ElementsAre(13));
  EXPECT_THAT(DaysOfOctober("0 0 * * 5"), ElementsAre(2, 9, 16, 23, 30));
  EXPECT_THAT(DaysOfOctober("0 0 */10 * 3"), ElementsAre(21));  // of 1, 11, 21, 31
  EXPECT_THAT(DaysOfOctober("0 0 1 11 *"), IsEmpty());
}

TEST(CronTest, FollowsTheClockWhenMinuteOrHourBeginWithAStar) {
  EXPECT_TRUE(Parsed("* 8 * * *").follows_clock);
  EXPECT_TRUE(Parsed("30 */2 * * *").follows_clock);
  EXPECT_FALSE(Parsed("30 1-3 * * *").follows_clock);
}

TEST(CronTest, NamesTheFieldOfAMistake) {
  EXPECT_THAT(MistakeIn("0 0 * *"), HasSubstr("has 4 fields, not 5"));
  EXPECT_THAT(MistakeIn("60 0 * * *"), HasSubstr("the minute '60'"));
  EXPECT_THAT(MistakeIn("0 24 * * *"), HasSubstr("the hour '24'"));
  EXPECT_THAT(MistakeIn("0 0 0 * *"), HasSubstr("the day of the month '0'"));
  EXPECT_THAT(MistakeIn("0 0 * 13 *"), HasSubstr("the month '13'"));
  EXPECT_THAT(MistakeIn("0 0 * * 8"), HasSubstr("the day of the week '8'"));
  EXPECT_THAT(MistakeIn("0 0 * * mun"), HasSubstr("'mun'"));
  EXPECT_THAT(MistakeIn("9-5 0 * * *"), HasSubstr("begins after it ends"));
  EXPECT_THAT(MistakeIn("5/10 0 * * *"), HasSubstr("has a step without a range"));
  EXPECT_THAT(MistakeIn("*/0 0 * * *"), HasSubstr("no number above 0"));
  EXPECT_THAT(MistakeIn("1,,2 0 * * *"), HasSubstr("the minute ''"));
  EXPECT_THAT(MistakeIn("-5 0 * * *"), HasSubstr("the minute '-5'"));
  EXPECT_THAT(MistakeIn("99999999999999999999 0 * * *"), HasSubstr("the minute"));
  EXPECT_THAT(MistakeIn("@daily"), HasSubstr("has 1 fields"));
}

}  // namespace
}  // namespace muster::scaling::rules
