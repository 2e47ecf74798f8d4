// SPDX-License-Identifier: Apache-2.0
#include "muster/base/quantity.h"

#include <limits>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/base/test_seed.h"

namespace muster::base {
namespace {

using ::testing::HasSubstr;

TEST(BytesTest, ReadsBothFamiliesOfUnits) {
  EXPECT_EQ(*ParseBytes("512"), 512);
  EXPECT_EQ(*ParseBytes("64B"), 64);
  EXPECT_EQ(*ParseBytes("256KiB"), 256 * 1024);
  EXPECT_EQ(*ParseBytes("1.5GiB"), 3 * 512 * 1024 * 1024LL);
  EXPECT_EQ(*ParseBytes("10MB"), 10'000'000);
  EXPECT_EQ(*ParseBytes("0"), 0);
}

TEST(BytesTest, RefusesWhatIsNotAWholeSize) {
  for (const char* text : {"", "KiB", "-1", "+1", "1 KiB", "1kib", "1K", "0.3B", "1e3", "1KiB1",
                           ".5KiB", "1KiB ", "0x10"}) {
    EXPECT_EQ(ParseBytes(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_EQ(ParseBytes("9000000TiB").status().code(), absl::StatusCode::kOutOfRange);
}

TEST(BytesTest, ShowsSizesExactly) {
  EXPECT_EQ(BytesToString(0), "0B");
  EXPECT_EQ(BytesToString(1000), "1000B");
  EXPECT_EQ(BytesToString(256 * 1024), "256KiB");
  EXPECT_EQ(BytesToString(int64_t{1} << 50), "1024TiB");
}

TEST(DurationTest, ReadsUnitsFromLargeToSmall) {
  EXPECT_EQ(*ParseDuration("30s"), absl::Seconds(30));
  EXPECT_EQ(*ParseDuration("5m"), absl::Minutes(5));
  EXPECT_EQ(*ParseDuration("7d"), absl::Hours(7 * 24));
  EXPECT_EQ(*ParseDuration("1h30m"), absl::Minutes(90));
  EXPECT_EQ(*ParseDuration("1.5h"), absl::Minutes(90));
  EXPECT_EQ(*ParseDuration("250ms"), absl::Milliseconds(250));
  EXPECT_EQ(*ParseDuration("1us1ns"), absl::Nanoseconds(1001));
  EXPECT_EQ(*ParseDuration("0"), absl::ZeroDuration());
}

TEST(DurationTest, RefusesWhatIsNotADuration) {
  for (const char* text : {"", "5", "s", "-5s", "+5s", "5 s", "5s ", "30m1h", "1s1s", "1w", "inf",
                           "0.1ns", "1e3s", "1h30"}) {
    EXPECT_EQ(ParseDuration(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_EQ(ParseDuration("200000d").status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(ParseDuration("106751d106751h99999999999999m").status().code(),
            absl::StatusCode::kOutOfRange);
}

TEST(DurationTest, SaysWhatIsWrong) {
  EXPECT_THAT(std::string(ParseDuration("5").status().message()),
              HasSubstr("'5' is not a duration such as 30s: it needs units"));
}

TEST(DurationTest, ShowsWhatIsNotReadBack) {
  EXPECT_EQ(DurationToString(absl::ZeroDuration()), "0s");
  EXPECT_EQ(DurationToString(-absl::Seconds(90)), "-1m30s");
  EXPECT_EQ(DurationToString(absl::InfiniteDuration()), "inf");
  EXPECT_EQ(DurationToString(-absl::InfiniteDuration()), "-inf");
  EXPECT_EQ(DurationToString(absl::Nanoseconds(1) / 2), "0s");
}

TEST(QuantityPropertyTest, ReadsBackWhatItShows) {
  const uint32_t seed = testing::TestSeed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 5000; ++i) {
    const auto value = static_cast<int64_t>(random() >> (1 + random() % 63));
    ASSERT_EQ(*ParseBytes(BytesToString(value)), value);
    ASSERT_EQ(*ParseDuration(DurationToString(absl::Nanoseconds(value))), absl::Nanoseconds(value));
  }
}

}  // namespace
}  // namespace muster::base
