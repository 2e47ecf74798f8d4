// SPDX-License-Identifier: Apache-2.0
#include "muster/base/time_zone.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace muster::base {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(TimeZoneTest, RefusesNamesThatAreNoneOrMeanAnotherZoneOnEachMachine) {
  for (const char* name : {"Mars/Olympus", "localtime", "/etc/localtime", "../zone", "UTC+2", ""}) {
    const absl::Status status = FindTimeZone(name).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << name << ": " << status;
    EXPECT_THAT(status.message(), HasSubstr("such as Europe/Berlin")) << name;
  }
  EXPECT_TRUE(FindTimeZone("UTC").ok());
}

TEST(TimeZoneTest, SaysWhichNameWasProbablyMeant) {
  const auto message = [](const char* name) {
    return std::string(FindTimeZone(name).status().message());
  };
  EXPECT_THAT(message("europe/berlin"), HasSubstr("; did you mean 'Europe/Berlin'?"));
  EXPECT_THAT(message("AMERICA/NEW_YORK"), HasSubstr("; did you mean 'America/New_York'?"));
  EXPECT_THAT(message("utc"), HasSubstr("; did you mean 'UTC'?"));
  EXPECT_THAT(message("UTC+2"), HasSubstr("name of this one is 'Etc/GMT-2', with the other sign"));
  EXPECT_THAT(message("GMT-05"), HasSubstr("'Etc/GMT+5'"));
  EXPECT_THAT(message("Mars/Olympus"), EndsWith("of the system's tzdata"));
  EXPECT_THAT(message("UTC+99"), EndsWith("of the system's tzdata"));
}

// The zone that the message offers has to be one.
TEST(TimeZoneDeathTest, TakesTheZoneThatItOffersWhereThereIsNoZoneData) {
  EXPECT_EXIT(
      {
        setenv("TZDIR", "/nonexistent", 1);
        std::exit(FindTimeZone("UTC").ok() ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

// A slim image has none, and must not blame the name. In a process of its own: zones are cached.
TEST(TimeZoneDeathTest, SaysThatTheMachineHasNoZoneData) {
  EXPECT_EXIT(
      {
        setenv("TZDIR", "/nonexistent", 1);
        const absl::Status status = FindTimeZone("Asia/Tokyo").status();
        std::exit(absl::IsFailedPrecondition(status) &&
                          status.message().find("tzdata") != absl::string_view::npos
                      ? 0
                      : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace muster::base
