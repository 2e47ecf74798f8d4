// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/replay/timestamp.h"

#include "gtest/gtest.h"

namespace muster::scaling::replay {
namespace {

absl::Time Utc(int year, int month, int day, int hour = 0, int minute = 0, int second = 0) {
  return absl::FromCivil(absl::CivilSecond(year, month, day, hour, minute, second),
                         absl::UTCTimeZone());
}

TEST(TimestampTest, ReadsDateAndTimeWithSpaceOrT) {
  EXPECT_EQ(ParseTimestamp("1998-06-30 00:01:02"), Utc(1998, 6, 30, 0, 1, 2));
  EXPECT_EQ(ParseTimestamp("1998-06-30T00:01:02"), Utc(1998, 6, 30, 0, 1, 2));
  EXPECT_EQ(ParseTimestamp(" 1998-06-30T00:01 "), Utc(1998, 6, 30, 0, 1));
  EXPECT_EQ(ParseTimestamp("2024-02-29"), Utc(2024, 2, 29));
}

TEST(TimestampTest, ReadsFractionsOfAnyLength) {
  EXPECT_EQ(ParseTimestamp("2023-11-16 18:17:03.9799600"),
            Utc(2023, 11, 16, 18, 17, 3) + absl::Nanoseconds(979'960'000));
  EXPECT_EQ(ParseTimestamp("2023-11-16 18:17:03.1234567899"),
            Utc(2023, 11, 16, 18, 17, 3) + absl::Nanoseconds(123'456'789));
}

TEST(TimestampTest, ReadsZones) {
  EXPECT_EQ(ParseTimestamp("2024-01-01T12:00:00Z"), Utc(2024, 1, 1, 12));
  EXPECT_EQ(ParseTimestamp("2024-01-01T12:00:00+01:30"), Utc(2024, 1, 1, 10, 30));
  EXPECT_EQ(ParseTimestamp("2024-01-01T12:00:00.5-0800"),
            Utc(2024, 1, 1, 20) + absl::Milliseconds(500));
  EXPECT_EQ(ParseTimestamp("2024-01-01T12:00:00+02"), Utc(2024, 1, 1, 10));
}

TEST(TimestampTest, ReadsSeconds) {
  EXPECT_EQ(ParseTimestamp("0"), absl::UnixEpoch());
  EXPECT_EQ(ParseTimestamp("1700000000.25"),
            absl::FromUnixSeconds(1'700'000'000) + absl::Milliseconds(250));
}

TEST(TimestampTest, RefusesWhatIsNoTime) {
  for (const char* text : {"",
                           "-",
                           "-5",
                           "now",
                           "12:00",
                           "1e5",
                           "5.",
                           "nan",
                           "inf",
                           "2024-02-30",
                           "2023-02-29",
                           "2024-13-01",
                           "2024-1-1",
                           "2024-01-01x",
                           "2024-01-01T",
                           "2024-01-01T24:00:00",
                           "2024-01-01T12:60",
                           "2024-01-01T12:00:61",
                           "2024-01-01T12:00:00.",
                           "2024-01-01T12:00:00+1",
                           "2024-01-01T12:00:00+01:",
                           "2024-01-01T12:00:00Zx",
                           "99999999999999999999"}) {
    EXPECT_FALSE(ParseTimestamp(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace muster::scaling::replay
