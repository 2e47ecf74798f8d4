#include "muster/base/time_zone.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace muster::base {
namespace {

using ::testing::HasSubstr;

TEST(TimeZoneTest, RefusesNamesThatAreNoneOrMeanAnotherZoneOnEachMachine) {
  for (const char* name : {"Mars/Olympus", "localtime", "/etc/localtime", "../zone", "UTC+2", ""}) {
    const absl::Status status = FindTimeZone(name).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << name << ": " << status;
    EXPECT_THAT(status.message(), HasSubstr("such as Europe/Berlin")) << name;
  }
  EXPECT_TRUE(FindTimeZone("UTC").ok());
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
