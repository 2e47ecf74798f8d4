// SPDX-License-Identifier: Apache-2.0
#include "muster/stream/processor/replay.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/partition/checkpoint_store.h"
#include "muster/partition/member_protocol.h"
#include "muster/partition/partition_admin.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/stream/memory_event_stream_store.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::stream::processor {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ReplayTest : public ::testing::Test {
 protected:
  ReplayTest() {
    EXPECT_TRUE(events_.Create("homes", {.partitions = 3}).ok());
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(events_.Append("homes", 2, {{.body = "x"}}).ok());
  }

  base::FakeClock clock_;
  testing::MemoryEventStreamStore events_{&clock_};
  sync::testing::MemorySyncStore sync_;
  partition::PartitionAdmin admin_{&sync_};
};

// As of a name that is misspelt.
TEST_F(ReplayTest, OfAGroupThatNobodyHasJoinedIsListedAndForgotten) {
  EXPECT_EQ(Replay({&events_, &sync_}, "homes", "stroe", 2, 5).value(), 5);
  EXPECT_THAT(admin_.Groups().value(), ElementsAre("homes/stroe"));
  const partition::GroupState group = admin_.Describe("homes/stroe").value();
  EXPECT_EQ(group.partitions, 3);
  EXPECT_THAT(group.members, IsEmpty());
  EXPECT_EQ(admin_.List(group, 2, 1).value().front().checkpoint->offset, 5);
  ASSERT_TRUE(admin_.Forget("homes/stroe").ok());
  EXPECT_THAT(admin_.Groups().value(), IsEmpty());
  EXPECT_EQ(partition::CheckpointStore(&sync_, "homes/stroe").Load(2).value(), std::nullopt);
}

TEST_F(ReplayTest, TheFirstMemberJoinsAGroupThatWasReplayedBefore) {
  ASSERT_TRUE(Replay({&events_, &sync_}, "homes", "store", 2, 5).ok());
  partition::SyncRecords records(&sync_, "homes/store");
  partition::MemberProtocol member({.group = "homes/store", .member = "a", .partitions = 3}, 1);
  member.BeginCycle(absl::Seconds(1));
  while (const auto request = member.Next(absl::Seconds(1))) {
    member.OnReply(records.CarryOut(*request), absl::Seconds(1));
  }
  EXPECT_THAT(admin_.Describe("homes/store").value().members, ElementsAre("a"));
  ASSERT_TRUE(Replay({&events_, &sync_}, "homes", "store", 2, 7).ok());
  EXPECT_THAT(admin_.Describe("homes/store").value().members, ElementsAre("a"));
}

TEST_F(ReplayTest, ThatIsRefusedIntroducesNoGroup) {
  EXPECT_TRUE(absl::IsOutOfRange(Replay({&events_, &sync_}, "homes", "store", 2, 50).status()));
  EXPECT_TRUE(absl::IsNotFound(Replay({&events_, &sync_}, "homes", "store", 3, 1).status()));
  EXPECT_THAT(admin_.Groups().value(), IsEmpty());
}

}  // namespace
}  // namespace muster::stream::processor
