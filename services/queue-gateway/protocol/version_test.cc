#include "services/queue-gateway/protocol/version.h"

#include "gtest/gtest.h"

namespace muster::queue_gateway::protocol {
namespace {

absl::Time Day(int year, int month, int day) {
  return absl::FromCivil(absl::CivilDay(year, month, day), absl::UTCTimeZone());
}

TEST(VersionTest, KnowsThePublishedOnes) {
  EXPECT_TRUE(IsKnownVersion("2009-09-19", Day(2026, 1, 1)));
  EXPECT_TRUE(IsKnownVersion("2025-11-05", Day(2026, 1, 1)));
  EXPECT_FALSE(IsKnownVersion("2009-09-20", Day(2026, 1, 1)));
  EXPECT_FALSE(IsKnownVersion("", Day(2026, 1, 1)));
}

// A gateway of today must serve the SDK of next year.
TEST(VersionTest, TakesNewerOnesOnceTheirDayHasCome) {
  EXPECT_TRUE(IsKnownVersion("2026-02-06", Day(2026, 2, 6)));
  EXPECT_FALSE(IsKnownVersion("2026-02-06", Day(2026, 2, 5)));
  EXPECT_FALSE(IsKnownVersion("2026-02-30", Day(2027, 1, 1)));
  EXPECT_FALSE(IsKnownVersion("2026-2-6", Day(2027, 1, 1)));
  EXPECT_FALSE(IsKnownVersion("latest", Day(2027, 1, 1)));
}

}  // namespace
}  // namespace muster::queue_gateway::protocol
