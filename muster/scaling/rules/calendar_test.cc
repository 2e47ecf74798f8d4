// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/rules/calendar.h"

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/base/test_seed.h"

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
  EXPECT_THAT(MistakeIn("0 22-6 * * *"), HasSubstr("over the end it is two ranges: 22-23,0-6"));
  EXPECT_THAT(MistakeIn("0 0 * * fri-mon"),
              HasSubstr("over the end it is two ranges: fri-6,0-mon"));
  EXPECT_THAT(Set(Parsed("0 0 * * fri-6,0-mon").weekdays), ElementsAre(0, 1, 5, 6));
  EXPECT_THAT(MistakeIn("0 0 * * 7-1"), HasSubstr("before other days, Sunday is 0: 0-1"));
  EXPECT_THAT(MistakeIn("5/10 0 * * *"), HasSubstr("has a step without a range"));
  EXPECT_THAT(MistakeIn("*/0 0 * * *"), HasSubstr("no number above 0"));
  EXPECT_THAT(MistakeIn("*/90 * * * *"),
              HasSubstr("the minute '*/90' has a step beyond its 60 values, and so is the minute 0 "
                        "alone: write 0, or a step of up to 60"));
  EXPECT_TRUE(ParseCron("*/60 */24 */31 */12 */7").ok()) << "once in each hour, day, …";
  EXPECT_THAT(MistakeIn("0 */25 * * *"), HasSubstr("the hour '*/25' has a step beyond its 24"));
  EXPECT_THAT(MistakeIn("0 0 * * */8"), HasSubstr("a step beyond its 7 values"));
  EXPECT_TRUE(ParseCron("0 8-18/12 * * *").ok()) << "as cron has it: at 8";
  EXPECT_THAT(MistakeIn("1,,2 0 * * *"), HasSubstr("the minute ''"));
  EXPECT_THAT(MistakeIn("-5 0 * * *"), HasSubstr("the minute '-5'"));
  EXPECT_THAT(MistakeIn("99999999999999999999 0 * * *"), HasSubstr("the minute"));
  EXPECT_THAT(MistakeIn("@daily"), HasSubstr("has 1 field, not 5"));
}

using ::testing::ElementsAre;

absl::TimeZone Zone(const std::string& name) {
  absl::TimeZone zone;
  EXPECT_TRUE(absl::LoadTimeZone(name, &zone)) << name;
  return zone;
}

absl::Time At(absl::string_view rfc3339) {
  absl::Time time;
  std::string error;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, std::string(rfc3339), &time, &error)) << error;
  return time;
}

Calendar Daily(const std::vector<std::string>& days, int hour, int minute,
               std::optional<absl::Duration> lasts, const std::string& zone) {
  DailyStart start;
  for (const std::string& day : days) {
    const auto pattern = ParseDayPattern(day);
    EXPECT_TRUE(pattern.ok()) << pattern.status();
    start.days.push_back(pattern.value_or(Weekdays()));
  }
  start.minute = 60 * hour + minute;
  Calendar calendar;
  calendar.start = start;
  calendar.lasts = lasts;
  calendar.zone = Zone(zone);
  return calendar;
}

Calendar Cron(absl::string_view text, absl::Duration lasts, const std::string& zone) {
  Calendar calendar;
  calendar.start = *ParseCron(text);
  calendar.lasts = lasts;
  calendar.zone = Zone(zone);
  return calendar;
}

// The next `count` windows that begin after `from`, "START/END" in the calendar's own zone.
std::vector<std::string> Windows(const Calendar& calendar, absl::string_view from, int count) {
  std::vector<std::string> windows;
  absl::Time at = At(from);
  for (int i = 0; i < count; ++i) {
    at = calendar.NextStart(at);
    if (at == absl::InfiniteFuture()) break;
    const auto window = calendar.WindowAt(at);
    EXPECT_TRUE(window.has_value()) << at;
    if (!window) break;
    const auto show = [&](absl::Time time) {
      return absl::FormatTime("%Y-%m-%dT%H:%M%Ez", time, calendar.zone);
    };
    windows.push_back(absl::StrCat(show(window->start), "/", show(window->end)));
  }
  return windows;
}

TEST(DayPatternTest, RefusesWhatNoYearHas) {
  for (const char* text :
       {"", "mo", "mon-", "first-0-of-month", "last-29-of-month", "last--1-of-month", "2026-02-29",
        "2026-13-01", "02-30", "2026-1-1", "1-1", "first-2-of-year", "00-00", "mon-fri-sun"}) {
    EXPECT_FALSE(ParseDayPattern(text).ok()) << text;
  }
}

TEST(DayPatternTest, GoesAroundTheWeek) {
  const DayPattern weekend = *ParseDayPattern("sat-mon");
  EXPECT_TRUE(IsOn(weekend, absl::CivilDay(2026, 10, 24)));   // Saturday
  EXPECT_TRUE(IsOn(weekend, absl::CivilDay(2026, 10, 26)));   // Monday
  EXPECT_FALSE(IsOn(weekend, absl::CivilDay(2026, 10, 27)));  // Tuesday
}

TEST(CalendarTest, OpensOnTheLastDaysOfEachMonthWithLeapDays) {
  const Calendar calendar = Daily({"last-2-of-month"}, 8, 0, absl::Hours(8), "Europe/Paris");
  EXPECT_THAT(Windows(calendar, "2028-01-31T12:00:00Z", 4),
              ElementsAre("2028-02-28T08:00+01:00/2028-02-28T16:00+01:00",
                          "2028-02-29T08:00+01:00/2028-02-29T16:00+01:00",
                          "2028-03-30T08:00+02:00/2028-03-30T16:00+02:00",
                          "2028-03-31T08:00+02:00/2028-03-31T16:00+02:00"));
  EXPECT_THAT(Windows(calendar, "2027-01-31T12:00:00Z", 1),
              ElementsAre("2027-02-27T08:00+01:00/2027-02-27T16:00+01:00"));
}

TEST(CalendarTest, OpensOnTheFirstDaysOfEachMonthOnWeekdaysAndOnDates) {
  EXPECT_THAT(Windows(Daily({"first-1-of-month", "wed", "2026-10-03"}, 0, 0, absl::Hours(1), "UTC"),
                      "2026-09-30T12:00:00Z", 4),
              ElementsAre("2026-10-01T00:00+00:00/2026-10-01T01:00+00:00",
                          "2026-10-03T00:00+00:00/2026-10-03T01:00+00:00",
                          "2026-10-07T00:00+00:00/2026-10-07T01:00+00:00",
                          "2026-10-14T00:00+00:00/2026-10-14T01:00+00:00"));
  EXPECT_THAT(Windows(Daily({"12-24"}, 0, 0, absl::Hours(1), "UTC"), "2026-01-01T00:00:00Z", 2),
              ElementsAre("2026-12-24T00:00+00:00/2026-12-24T01:00+00:00",
                          "2027-12-24T00:00+00:00/2027-12-24T01:00+00:00"));
}

TEST(CalendarTest, LastsForTheDayWhenNothingElseIsSaid) {
  EXPECT_THAT(Windows(Daily({}, 22, 30, std::nullopt, "UTC"), "2026-10-01T00:00:00Z", 1),
              ElementsAre("2026-10-01T22:30+00:00/2026-10-02T00:00+00:00"));
  // A day of 23 hours, and one of 25.
  const Calendar sundays = Daily({"sun"}, 0, 0, std::nullopt, "Europe/Paris");
  EXPECT_THAT(Windows(sundays, "2026-03-23T00:00:00Z", 1),
              ElementsAre("2026-03-29T00:00+01:00/2026-03-30T00:00+02:00"));
  EXPECT_THAT(Windows(sundays, "2026-10-19T00:00:00Z", 1),
              ElementsAre("2026-10-25T00:00+02:00/2026-10-26T00:00+01:00"));
}

TEST(CalendarTest, CrossesMidnightAndTheEndOfAMonth) {
  const Calendar nights = Daily({"last-1-of-month"}, 22, 0, absl::Hours(8), "Europe/Paris");
  EXPECT_THAT(Windows(nights, "2026-12-01T00:00:00Z", 1),
              ElementsAre("2026-12-31T22:00+01:00/2027-01-01T06:00+01:00"));
  EXPECT_TRUE(nights.IsOpen(At("2027-01-01T05:59:59+01:00")));
  EXPECT_FALSE(nights.IsOpen(At("2027-01-01T06:00:00+01:00")));
  EXPECT_FALSE(nights.IsOpen(At("2026-12-31T21:59:59+01:00")));
}

TEST(CalendarTest, OpensWhenTheSkippedHourEnds) {
  EXPECT_THAT(Windows(Daily({}, 2, 30, absl::Hours(1), "Europe/Paris"), "2026-03-28T12:00:00Z", 2),
              ElementsAre("2026-03-29T03:00+02:00/2026-03-29T04:00+02:00",
                          "2026-03-30T02:30+02:00/2026-03-30T03:30+02:00"));
  EXPECT_THAT(
      Windows(Cron("30 2 * * *", absl::Hours(1), "America/New_York"), "2026-03-07T12:00:00Z", 1),
      ElementsAre("2026-03-08T03:00-04:00/2026-03-08T04:00-04:00"));
}

TEST(CalendarTest, OpensAtTheFirstComingOfTheHourThatComesTwice) {
  EXPECT_THAT(Windows(Daily({}, 2, 30, absl::Hours(1), "Europe/Paris"), "2026-10-24T12:00:00Z", 2),
              ElementsAre("2026-10-25T02:30+02:00/2026-10-25T02:30+01:00",
                          "2026-10-26T02:30+01:00/2026-10-26T03:30+01:00"));
  EXPECT_THAT(
      Windows(Cron("30 1 * * *", absl::Hours(1), "America/New_York"), "2026-10-31T12:00:00Z", 2),
      ElementsAre("2026-11-01T01:30-04:00/2026-11-01T01:30-05:00",
                  "2026-11-02T01:30-05:00/2026-11-02T02:30-05:00"));
}

TEST(CalendarTest, LastsAsLongAsItSaysHoweverTheClockIsPut) {
  EXPECT_THAT(Windows(Daily({}, 0, 0, absl::Hours(8), "Europe/Paris"), "2026-03-28T12:00:00Z", 1),
              ElementsAre("2026-03-29T00:00+01:00/2026-03-29T09:00+02:00"));
  EXPECT_THAT(
      Windows(Daily({}, 0, 0, absl::Hours(8), "America/New_York"), "2026-10-31T12:00:00Z", 1),
      ElementsAre("2026-11-01T00:00-04:00/2026-11-01T07:00-05:00"));
}

TEST(CalendarTest, FollowsTheClockWithAStarForTheHour) {
  const Calendar calendar = Cron("30 * * * *", absl::Minutes(10), "Europe/Paris");
  EXPECT_THAT(Windows(calendar, "2026-10-24T23:45:00Z", 3),  // 01:45 on the wall
              ElementsAre("2026-10-25T02:30+02:00/2026-10-25T02:40+02:00",
                          "2026-10-25T02:30+01:00/2026-10-25T02:40+01:00",
                          "2026-10-25T03:30+01:00/2026-10-25T03:40+01:00"));
  EXPECT_THAT(Windows(calendar, "2026-03-29T00:45:00Z", 1),
              ElementsAre("2026-03-29T03:30+02:00/2026-03-29T03:40+02:00"));
}

TEST(CalendarTest, OpensByCronOnReleaseMornings) {
  const Calendar calendar = Cron("55 8 * * 1-5", absl::Minutes(15), "UTC");
  EXPECT_TRUE(calendar.IsOpen(At("2026-11-20T09:09:59Z")));  // Friday
  EXPECT_FALSE(calendar.IsOpen(At("2026-11-20T09:10:00Z")));
  EXPECT_FALSE(calendar.IsOpen(At("2026-11-21T09:00:00Z")));
  EXPECT_EQ(calendar.NextChange(At("2026-11-20T09:00:00Z")), At("2026-11-20T09:10:00Z"));
  EXPECT_EQ(calendar.NextChange(At("2026-11-20T09:10:00Z")), At("2026-11-23T08:55:00Z"));
}

TEST(CalendarTest, ChangesOnlyWhenAChainOfWindowsEnds) {
  const Calendar overlapping = Cron("0,10,20 8 * * *", absl::Minutes(15), "UTC");
  EXPECT_EQ(overlapping.NextChange(At("2026-11-20T08:00:00Z")), At("2026-11-20T08:35:00Z"));
  const Calendar always = Daily({}, 0, 0, std::nullopt, "Europe/Paris");
  EXPECT_EQ(always.NextChange(At("2026-11-20T08:00:00Z")), absl::InfiniteFuture());
  EXPECT_TRUE(always.IsOpen(At("2026-10-25T01:30:00Z")));
}

TEST(CalendarTest, FindsTheNextLeapDayAcrossACenturyThatHasNone) {
  const Calendar calendar = Cron("0 0 29 2 *", absl::Hours(1), "UTC");
  EXPECT_EQ(calendar.NextStart(At("2096-03-01T00:00:00Z")), At("2104-02-29T00:00:00Z"));
}

TEST(CalendarTest, NeverOpensAgainAfterItsLastDate) {
  const Calendar calendar = Daily({"2026-12-24"}, 8, 0, absl::Hours(1), "UTC");
  EXPECT_EQ(calendar.NextStart(At("2026-12-24T08:00:00Z")), absl::InfiniteFuture());
  EXPECT_EQ(calendar.NextChange(At("2026-12-25T00:00:00Z")), absl::InfiniteFuture());
}

// Returns whether a window opens at this minute, by the time that wall clocks show.
bool OpensAt(const Calendar& calendar, absl::Time minute) {
  const auto& cron = std::get<CronFields>(calendar.start);
  const absl::CivilSecond local = absl::ToCivilSecond(minute, calendar.zone);
  const auto fits = [&](absl::CivilSecond shown) {
    return cron.IsOn(absl::CivilDay(shown)) && cron.hours[static_cast<size_t>(shown.hour())] &&
           cron.minutes[static_cast<size_t>(shown.minute())];
  };
  if (cron.follows_clock) return fits(local);
  const absl::CivilSecond before =
      absl::ToCivilSecond(minute - absl::Minutes(1), calendar.zone) + 60;
  // Checks the minutes that clocks have just skipped, and ignores those that they show for the
  // second time.
  for (absl::CivilSecond skipped = before; skipped < local; skipped += 60) {
    if (fits(skipped)) return true;
  }
  const bool is_second = calendar.zone.At(local).kind == absl::TimeZone::TimeInfo::REPEATED &&
                         calendar.zone.At(local).post == minute;
  return !is_second && fits(local);
}

TEST(CalendarPropertyTest, AgreesWithAClockThatIsReadEachMinute) {
  const uint64_t seed = base::testing::TestSeed();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  const char* const crons[] = {"30 2 * * *",   "*/20 * * * *", "0 1-3 * * 0",   "15 */3 25-31 * *",
                               "59 1,2 * * *", "0 0 29 * 0",   "5 * * 3,10 6,0"};
  const char* const starts[] = {"2026-03-28T00:00:00Z", "2026-10-24T00:00:00Z",
                                "2026-03-07T00:00:00Z", "2026-10-31T00:00:00Z"};
  for (int round = 0; round < 12; ++round) {
    const char* const cron = crons[random() % 7];
    const Calendar calendar = Cron(cron, absl::Minutes(1 + random() % 200),
                                   random() % 2 == 0 ? "Europe/Paris" : "America/New_York");
    SCOPED_TRACE(absl::StrCat(cron, " in ", calendar.zone.name()));
    const absl::Time from = At(starts[random() % 4]);
    absl::Time last_start = absl::InfinitePast();
    for (absl::Time at = from - absl::Hours(5); at < from + absl::Hours(48);
         at += absl::Minutes(1)) {
      if (OpensAt(calendar, at)) last_start = at;
      if (at < from) continue;
      ASSERT_EQ(calendar.IsOpen(at), at < last_start + *calendar.lasts) << at;
    }
  }
}

TEST(CalendarPropertyTest, ChangesWhenItSaysAndNotBefore) {
  const uint64_t seed = base::testing::TestSeed();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  const Calendar calendars[] = {
      Cron("0 2,14 * * 1-5", absl::Hours(5), "Europe/Paris"),
      Daily({"last-2-of-month", "wed"}, 23, 15, absl::Hours(3), "America/New_York"),
      Daily({"first-2-of-month"}, 0, 0, std::nullopt, "Europe/Paris")};
  for (const Calendar& calendar : calendars) {
    for (int i = 0; i < 200; ++i) {
      const absl::Time at = At("2026-01-01T00:00:00Z") + absl::Minutes(random() % 525'600);
      const absl::Time change = calendar.NextChange(at);
      const bool is_open = calendar.IsOpen(at);
      ASSERT_GT(change, at);
      ASSERT_NE(calendar.IsOpen(change), is_open) << at << " " << change;
      for (int probe = 0; probe < 20; ++probe) {
        const double share = static_cast<double>(random() % 1000) / 1000;
        ASSERT_EQ(calendar.IsOpen(at + share * (change - at)), is_open);
      }
    }
  }
}

}  // namespace

}  // namespace muster::scaling::rules
