// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/leader_record.h"

#include <limits>

#include "gtest/gtest.h"
#include "services/scaling-agent/limits.h"

namespace muster::scaling_agent {
namespace {

TEST(LeaderRecordTest, IsWrittenAsEver) {
  const LeaderRecord record{"agent-1", "10.0.0.7:7703", 4, 17, absl::Seconds(3)};
  EXPECT_EQ(Encode(record),
            R"({"version":1,"holder":"agent-1","address":"10.0.0.7:7703","token":4,"beat":17,)"
            R"("duration_ms":3000})");
  EXPECT_EQ(*DecodeLeaderRecord(Encode(record)), record);
}

TEST(LeaderRecordTest, NoDurationMakesOthersWaitForEver) {
  LeaderRecord record{"a", "", 1, 1, absl::Hours(24 * 365)};
  EXPECT_EQ(DecodeLeaderRecord(Encode(record))->duration, kMaxLeaseDuration);
  record.duration = -absl::Seconds(1);
  EXPECT_EQ(DecodeLeaderRecord(Encode(record))->duration, absl::ZeroDuration());
}

TEST(LeaderRecordTest, ATokenWithoutASuccessorIsRefused) {
  LeaderRecord record{"a", "", std::numeric_limits<int64_t>::max(), 1, absl::Seconds(3)};
  EXPECT_TRUE(absl::IsDataLoss(DecodeLeaderRecord(Encode(record)).status()));
  --record.token;
  EXPECT_TRUE(DecodeLeaderRecord(Encode(record)).ok());
}

}  // namespace
}  // namespace muster::scaling_agent
