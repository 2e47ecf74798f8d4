// SPDX-License-Identifier: Apache-2.0
#include "muster/schedule/calendar.h"

#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/proto_time.h"
#include "tests/fakes/base/test_seed.h"

namespace muster::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::ScheduleSpec Spec(const std::string& cron, const std::string& zone) {
  v1::ScheduleSpec spec;
  spec.set_cron(cron);
  spec.set_time_zone(zone);
  return spec;
}

absl::Time Utc(absl::string_view text) { return ParseMoment(absl::StrCat(text, ":00Z")).value(); }

// The first `count` occurrences after `after`, as UTC.
std::vector<std::string> Occurrences(const std::string& cron, const std::string& zone,
                                     absl::string_view after, int count) {
  const auto calendar = Calendar::Of(Spec(cron, zone));
  EXPECT_TRUE(calendar.ok()) << calendar.status();
  std::vector<std::string> found;
  absl::Time time = Utc(after);
  for (int i = 0; i < count; ++i) {
    time = calendar->Next(time).value();
    found.push_back(absl::FormatTime("%Y-%m-%dT%H:%M", time, absl::UTCTimeZone()));
  }
  return found;
}

TEST(CalendarTest, TheClockOfTheZoneCounts) {
  EXPECT_THAT(Occurrences("0 3 * * 1-5", "Europe/Berlin", "2026-11-26T19:05", 3),
              ElementsAre("2026-11-27T02:00", "2026-11-30T02:00", "2026-12-01T02:00"));
  EXPECT_THAT(Occurrences("0 3 * * *", "", "2026-11-26T19:05", 1), ElementsAre("2026-11-27T03:00"));
  EXPECT_THAT(Occurrences("0 9 * * *", "Asia/Kolkata", "2026-11-26T19:05", 1),
              ElementsAre("2026-11-27T03:30"));
}

// In Berlin the clock goes from 02:00 to 03:00 on 2026-03-29, at 01:00 UTC.
TEST(CalendarTest, AnOccurrenceInASkippedHourComesAtTheFirstMomentAfterTheGap) {
  EXPECT_THAT(Occurrences("30 2 * * *", "Europe/Berlin", "2026-03-27T12:00", 3),
              ElementsAre("2026-03-28T01:30", "2026-03-29T01:00", "2026-03-30T00:30"));
  EXPECT_THAT(Occurrences("0,20,40 2 * * *", "Europe/Berlin", "2026-03-28T12:00", 2),
              ElementsAre("2026-03-29T01:00", "2026-03-30T00:00"));
}

// And from 03:00 back to 02:00 on 2026-10-25, at 01:00 UTC.
TEST(CalendarTest, AnOccurrenceInARepeatedHourComesOnce) {
  EXPECT_THAT(Occurrences("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", 2),
              ElementsAre("2026-10-25T00:30", "2026-10-26T01:30"));
  EXPECT_THAT(Occurrences("0 2,3 * * *", "Europe/Berlin", "2026-10-24T12:00", 3),
              ElementsAre("2026-10-25T00:00", "2026-10-25T02:00", "2026-10-26T01:00"));
}

TEST(CalendarTest, AStarInFrontOfTheMinuteOrHourFollowsTheClock) {
  EXPECT_THAT(
      Occurrences("0 * * * *", "Europe/Berlin", "2026-10-24T23:30", 4),
      ElementsAre("2026-10-25T00:00", "2026-10-25T01:00", "2026-10-25T02:00", "2026-10-25T03:00"));
  EXPECT_THAT(Occurrences("30 * * * *", "Europe/Berlin", "2026-03-28T23:00", 3),
              ElementsAre("2026-03-28T23:30", "2026-03-29T00:30", "2026-03-29T01:30"));
  // On Lord Howe Island the clock goes back by half an hour, at 15:00 UTC.
  EXPECT_THAT(Occurrences("30 * * * *", "Australia/Lord_Howe", "2026-04-04T14:00", 3),
              ElementsAre("2026-04-04T14:30", "2026-04-04T15:00", "2026-04-04T16:00"));
}

absl::CivilMinute FirstOf(absl::string_view cron, absl::CivilMinute from) {
  const auto parsed = ParseCron(cron);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return FirstFrom(*parsed, from);
}

// 2026-11-26 is a Thursday.
constexpr absl::CivilMinute kThursday(2026, 11, 26, 19, 5);

TEST(CalendarTest, HasShorthands) {
  EXPECT_EQ(FirstOf("@hourly", kThursday), absl::CivilMinute(2026, 11, 26, 20, 0));
  EXPECT_EQ(FirstOf("@daily", kThursday), absl::CivilMinute(2026, 11, 27, 0, 0));
  EXPECT_EQ(FirstOf("@weekly", kThursday), absl::CivilMinute(2026, 11, 29, 0, 0));
  EXPECT_EQ(FirstOf("@monthly", kThursday), absl::CivilMinute(2026, 12, 1, 0, 0));
  EXPECT_EQ(FirstOf("@yearly", kThursday), absl::CivilMinute(2027, 1, 1, 0, 0));
  EXPECT_EQ(FirstOf("@annually", kThursday), FirstOf("@yearly", kThursday));
  EXPECT_EQ(FirstOf("@midnight", kThursday), FirstOf("@daily", kThursday));
}

// As in Vixie's cron; many libraries take either day here.
TEST(CalendarTest, ADayFieldThatBeginsWithAStarRestrictsTheOther) {
  EXPECT_EQ(FirstOf("0 0 */2 * MON", kThursday), absl::CivilMinute(2026, 12, 7, 0, 0));
  EXPECT_EQ(FirstOf("0 0 1-31/2 * MON", kThursday), absl::CivilMinute(2026, 11, 27, 0, 0));
}

TEST(CalendarTest, TheRarestDaysAreFound) {
  EXPECT_EQ(FirstOf("0 0 29 2 *", absl::CivilMinute(2096, 3, 1, 0, 0)),
            absl::CivilMinute(2104, 2, 29, 0, 0));
  EXPECT_EQ(FirstOf("0 0 29 2 */7", absl::CivilMinute(2088, 3, 1, 0, 0)),
            absl::CivilMinute(2128, 2, 29, 0, 0));
  EXPECT_EQ(FirstOf("0 0 31 2 SUN", kThursday), absl::CivilMinute(2027, 2, 7, 0, 0));
}

TEST(CalendarTest, WhatIsWrongWithAnExpressionIsNamed) {
  const auto refused = [](absl::string_view cron) {
    return std::string(ParseCron(cron).status().message());
  };
  EXPECT_THAT(refused("0 24 * * *"), HasSubstr("the hour '24' is not *, nor made of numbers"));
  EXPECT_THAT(refused("* * * *"), HasSubstr("has 4 fields, not 5"));
  EXPECT_THAT(refused(""), HasSubstr("has 0 fields, not 5"));
  EXPECT_THAT(refused("@often"), HasSubstr("'@often' is none of '@hourly'"));
  EXPECT_THAT(refused(std::string(300, '*')), HasSubstr("is longer than 256 bytes"));
  EXPECT_THAT(refused("0 0 30 2 *"), HasSubstr("'0 0 30 2 *' never occurs"));
  EXPECT_THAT(refused("0 0 31 4,6,9,11 *"), HasSubstr("never occurs"));
}

// Samoa had no 30 December 2011.
TEST(CalendarTest, OfADayThatAZoneLeavesOutTheFirstMomentAfterItCounts) {
  EXPECT_THAT(Occurrences("15 14 30 12 *", "Pacific/Apia", "2011-12-29T00:00", 2),
              ElementsAre("2011-12-30T10:00", "2012-12-30T00:15"));
}

TEST(CalendarTest, OnceIsOnce) {
  v1::ScheduleSpec spec;
  *spec.mutable_at() = base::ToProto(Utc("2026-12-01T02:00"));
  const auto calendar = Calendar::Of(spec);
  ASSERT_TRUE(calendar.ok());
  EXPECT_EQ(calendar->Next(Utc("2026-11-26T00:00")), Utc("2026-12-01T02:00"));
  EXPECT_EQ(calendar->Next(Utc("2026-12-01T02:00")), std::nullopt);
}

TEST(CalendarTest, AMomentHasAnOffsetOrAZone) {
  EXPECT_EQ(ParseMoment("2026-12-01T03:00:00+01:00").value(), Utc("2026-12-01T02:00"));
  EXPECT_EQ(ParseMoment("2026-12-01T03:00[Europe/Berlin]").value(), Utc("2026-12-01T02:00"));
  EXPECT_EQ(ParseMoment("2026-12-01T03:00:00[UTC]").value(), Utc("2026-12-01T03:00"));
  EXPECT_EQ(ParseMoment("2026-03-29T02:30[Europe/Berlin]").value(), Utc("2026-03-29T01:00"));
  for (const char* wrong : {"", "tomorrow", "2026-12-01T03:00", "2026-12-01T03:00[Europe/Berlin",
                            "2026-13-01T03:00[UTC]", "infinite-future", "2026-12-01[UTC]x"}) {
    EXPECT_EQ(ParseMoment(wrong).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

// They were taken for the last second of the year 9999.
TEST(CalendarTest, AMomentThatNoTimestampHoldsIsRefused) {
  for (const char* text : {"10000-01-01T00:00:00Z", "12026-12-01T03:00[Europe/Berlin]"}) {
    EXPECT_THAT(std::string(ParseMoment(text).status().message()),
                ::testing::HasSubstr("is not within the years 1 to 9999"));
  }
  EXPECT_TRUE(ParseMoment("9999-12-31T23:59:59Z").ok());
}

TEST(CalendarTest, AZoneIsANameAndNoFile) {
  for (const char* wrong : {"Europe/Bärlin", "Atlantis", "../zoneinfo/UTC", "/etc/localtime",
                            ":/etc/localtime", "file:/etc/localtime"}) {
    EXPECT_THAT(FindTimeZone(wrong).status().message(), HasSubstr("no time zone")) << wrong;
  }
  EXPECT_EQ(FindTimeZone("")->name(), "UTC");
}

bool Fits(const scaling::rules::CronFields& cron, absl::CivilMinute minute) {
  return cron.minutes[static_cast<size_t>(minute.minute())] &&
         cron.hours[static_cast<size_t>(minute.hour())] && cron.IsOn(absl::CivilDay(minute));
}

// The naive way: looks at each minute of real time, and at what the clock shows then.
std::set<absl::Time> ScanMinutes(const scaling::rules::CronFields& cron, const absl::TimeZone& zone,
                                 absl::Time from, absl::Time until) {
  std::set<absl::Time> found;
  for (absl::Time time = from + absl::Minutes(1); time <= until; time += absl::Minutes(1)) {
    const absl::CivilMinute now(absl::ToCivilSecond(time, zone));
    const absl::CivilMinute before(absl::ToCivilSecond(time - absl::Minutes(1), zone));
    if (cron.follows_clock) {
      if (Fits(cron, now)) found.insert(time);
      continue;
    }
    const auto info = zone.At(absl::CivilSecond(now));
    const bool again = info.kind == absl::TimeZone::TimeInfo::REPEATED && time != info.pre;
    if (Fits(cron, now) && !again) found.insert(time);
    for (absl::CivilMinute skipped = before + 1; skipped < now; ++skipped) {
      if (Fits(cron, skipped)) found.insert(time);
    }
  }
  return found;
}

// A field that is restricted in one of several ways.
std::string RandomField(std::mt19937* random, int min, int max, int any_in_ten) {
  const auto draw = [random](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(*random);
  };
  if (draw(1, 10) <= any_in_ten) return "*";
  if (draw(1, 4) == 1) return absl::StrCat("*/", draw(1, max / 2 + 1));
  std::vector<std::string> parts;
  for (int part = draw(1, 3); part > 0; --part) {
    const int first = draw(min, max), last = draw(first, max);
    parts.push_back(draw(1, 2) == 1 ? absl::StrCat(first)
                                    : absl::StrCat(first, "-", last, "/", draw(1, 7)));
  }
  return absl::StrJoin(parts, ",");
}

TEST(CalendarTest, AgreesWithAScanOfEachMinute) {
  const uint32_t seed = base::testing::TestSeed();
  SCOPED_TRACE(absl::StrCat("MUSTER_TEST_SEED=", seed));
  std::mt19937 random(seed);
  // Each with what its clock does within ten days: forward, back, by half an hour, at midnight, a
  // day, nothing.
  const std::vector<std::pair<std::string, std::string>> places = {
      {"Europe/Berlin", "2026-03-25T00:00"},
      {"Europe/Berlin", "2026-10-21T00:00"},
      {"America/New_York", "2026-03-04T00:00"},
      {"America/New_York", "2026-10-28T00:00"},
      {"Australia/Lord_Howe", "2026-04-01T00:00"},
      {"Australia/Lord_Howe", "2026-10-01T00:00"},
      {"America/Santiago", "2026-09-02T00:00"},
      {"America/Havana", "2026-10-28T00:00"},
      {"Pacific/Apia", "2011-12-26T00:00"},
      {"Asia/Kathmandu", "2026-02-25T00:00"},
      {"", "2028-02-25T00:00"}};
  int tried = 0;
  for (int i = 0; i < base::testing::CaseCount(150); ++i) {
    const auto& [zone_name, begin] = places[static_cast<size_t>(i) % places.size()];
    const std::string text =
        absl::StrJoin({RandomField(&random, 0, 59, 2), RandomField(&random, 0, 23, 4),
                       RandomField(&random, 1, 31, 7), RandomField(&random, 1, 12, 8),
                       RandomField(&random, 0, 7, 7)},
                      " ");
    const auto cron = ParseCron(text);
    if (!cron.ok()) continue;  // it never occurs
    ++tried;
    SCOPED_TRACE(absl::StrCat("'", text, "' in ", zone_name));
    const auto calendar = Calendar::Of(Spec(text, zone_name));
    ASSERT_TRUE(calendar.ok());
    const absl::Time from = Utc(begin), until = from + absl::Hours(240);
    std::set<absl::Time> found;
    // A schedule is made at any moment.
    for (auto next = calendar->Next(from + absl::Milliseconds(91)); *next <= until;
         next = calendar->Next(*next)) {
      found.insert(*next);
    }
    const auto expected = ScanMinutes(*cron, FindTimeZone(zone_name).value(), from, until);
    ASSERT_EQ(found, expected);
  }
  EXPECT_GT(tried, base::testing::CaseCount(150) * 9 / 10);
}

}  // namespace
}  // namespace muster::schedule
