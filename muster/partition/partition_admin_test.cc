// SPDX-License-Identifier: Apache-2.0
#include "muster/partition/partition_admin.h"

#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/text.h"
#include "muster/partition/member_protocol.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::partition {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Time kWall = absl::FromUnixSeconds(1323435000);

// Members whose work drains and stops at once, over a store that an administrator works on, too.
class PartitionAdminTest : public ::testing::Test {
 protected:
  static MemberProtocol NewMember(const std::string& name) {
    return MemberProtocol({.group = "g", .member = name, .partitions = 4}, 1);
  }

  void Run(MemberProtocol* member) {
    Handle(member);
    while (const std::optional<RecordRequest> request = member->Next(now_)) {
      member->OnReply(records_.CarryOut(*request), now_);
      Handle(member);
    }
  }

  void Cycle(MemberProtocol* member) {
    now_ += absl::Seconds(1);
    member->BeginCycle(now_, kWall);
    Run(member);
    Run(member);  // what was freed after the cycle
  }

  void CycleAll(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      Cycle(&a_);
      Cycle(&b_);
    }
  }

  std::string OwnersOf() {
    std::string owners;
    const auto states = admin_.List(*admin_.Describe("g"), 0, 100).value();
    for (const PartitionState& state : states) {
      absl::StrAppend(&owners, state.record.owner);
    }
    return owners;
  }

  int CountOf(const std::string& member) {
    int count = 0;
    for (const char owner : OwnersOf()) count += std::string(1, owner) == member ? 1 : 0;
    return count;
  }

  sync::testing::MemorySyncStore store_;
  SyncRecords records_{&store_, "g"};
  PartitionAdmin admin_{&store_};
  MemberProtocol a_ = NewMember("a");
  MemberProtocol b_ = NewMember("b");
  absl::Duration now_ = absl::Hours(1);

 private:
  static void Handle(MemberProtocol* member) {
    for (;;) {
      const std::vector<WorkEvent> events = member->TakeEvents();
      if (events.empty()) return;
      for (const WorkEvent& event : events) {
        if (event.kind == WorkEvent::Kind::kDraining) member->Drained(event.partition, event.epoch);
        if (event.kind == WorkEvent::Kind::kRevoked) member->Stopped(event.partition, event.epoch);
      }
    }
  }
};

TEST_F(PartitionAdminTest, TellsOfMembersOwnersAndCheckpoints) {
  CycleAll(3);
  CheckpointStore checkpoints(&store_, "g");
  const int64_t epoch =
      a_.Held(0, now_).has_value() ? a_.Held(0, now_)->epoch : b_.Held(0, now_)->epoch;
  ASSERT_TRUE(checkpoints.Save(0, epoch, {.offset = 12, .sequence = 11}).ok());
  const GroupState group = admin_.Describe("g").value();
  EXPECT_EQ(group.partitions, 4);
  EXPECT_THAT(group.members, ElementsAre("a", "b"));
  const std::vector<PartitionState> states = admin_.List(group, 0, 2).value();
  ASSERT_EQ(states.size(), 2u);
  EXPECT_EQ(states[0].checkpoint, (Checkpoint{12, 11}));
  EXPECT_EQ(states[1].checkpoint, std::nullopt);
  EXPECT_EQ(states[0].record.claimed_at_millis, absl::ToUnixMillis(kWall));
  EXPECT_EQ(admin_.List(group, 3, 100)->size(), 1u);
  EXPECT_EQ(admin_.List(group, 4, 100)->size(), 0u);
}

TEST_F(PartitionAdminTest, AMovedPartitionStaysWhereItIsUntilARebalance) {
  CycleAll(3);
  ASSERT_EQ(CountOf("a"), 2);
  const std::string owners = OwnersOf();
  for (int p = 0; p < 4; ++p) ASSERT_TRUE(admin_.Move("g", p, "b").ok());
  CycleAll(5);
  EXPECT_EQ(OwnersOf(), "bbbb");
  EXPECT_EQ(admin_.Rebalance("g").value(), 4);
  CycleAll(5);
  EXPECT_EQ(CountOf("a"), 2);
  EXPECT_EQ(admin_.Rebalance("g").value(), 0);
}

TEST_F(PartitionAdminTest, APinToADeadMemberDoesNotStarveThePartition) {
  CycleAll(3);
  for (int p = 0; p < 4; ++p) ASSERT_TRUE(admin_.Move("g", p, "b").ok());
  CycleAll(5);
  ASSERT_EQ(OwnersOf(), "bbbb");
  // b is dead from here on.
  for (int i = 0; i < 60; ++i) Cycle(&a_);
  EXPECT_EQ(OwnersOf(), "aaaa");
  // It comes back, and gets what was given to it.
  b_ = NewMember("b");
  CycleAll(6);
  EXPECT_EQ(OwnersOf(), "bbbb");
}

TEST_F(PartitionAdminTest, TheOwnerOfAMovedPartitionCommitsUntilItHandsOver) {
  CycleAll(3);
  const int partition = a_.Held(0, now_).has_value() ? 0 : 1;
  MemberProtocol* const owner = a_.Held(partition, now_).has_value() ? &a_ : &b_;
  const bool to_b = owner == &a_;
  ASSERT_TRUE(admin_.Move("g", partition, to_b ? "b" : "a").ok());
  EXPECT_TRUE(owner->Held(partition, now_).has_value());
  Cycle(owner);
  EXPECT_FALSE(owner->Held(partition, now_).has_value());
  Cycle(to_b ? &b_ : &a_);
  EXPECT_TRUE((to_b ? b_ : a_).Held(partition, now_).has_value());
}

TEST_F(PartitionAdminTest, RefusesWhatThereIsNot) {
  EXPECT_TRUE(absl::IsNotFound(admin_.Describe("g").status()));
  EXPECT_TRUE(absl::IsNotFound(admin_.Describe("no group").status()));
  EXPECT_TRUE(absl::IsNotFound(admin_.Rebalance("g").status()));
  CycleAll(2);
  EXPECT_THAT(std::string(admin_.Move("g", 4, "a").message()),
              HasSubstr("partitions 0 to 3, not 4"));
  EXPECT_THAT(std::string(admin_.Move("g", 0, "c").message()), HasSubstr("no member 'c'"));
}

TEST_F(PartitionAdminTest, AWishIsWrittenAgainWhereAnotherWriterWasFirst) {
  CycleAll(2);
  store_.LoseNextWrites(3);
  EXPECT_TRUE(admin_.Move("g", 0, "a").ok());
  store_.LoseNextWrites(PartitionAdmin::kMaxAttempts);
  EXPECT_TRUE(absl::IsAborted(admin_.Move("g", 0, "b")));
}

TEST_F(PartitionAdminTest, ForgetsOnlyAGroupThatNobodyIsIn) {
  GroupRegistry registry(&store_);
  ASSERT_TRUE(registry.Note("g").ok());
  CycleAll(3);
  EXPECT_THAT(std::string(admin_.Forget("g").message()), HasSubstr("has members: a and 1 more"));
  for (MemberProtocol* member : {&a_, &b_}) {
    member->BeginStop(now_);
    Run(member);
    Run(member);
  }
  EXPECT_THAT(*admin_.Groups(), ElementsAre("g"));
  EXPECT_TRUE(admin_.Forget("g").ok());
  EXPECT_THAT(*admin_.Groups(), IsEmpty());
  EXPECT_EQ(store_.Get("partition/g/owners/0")->version, sync::kAbsent);
  EXPECT_TRUE(absl::IsNotFound(admin_.Forget("g")));
}

// The processors of a job were killed, and the job was deleted: nobody was left to remove them.
TEST_F(PartitionAdminTest, ForgetsAGroupWhoseMembersAreAllDead) {
  ASSERT_TRUE(GroupRegistry(&store_).Note("g").ok());
  CycleAll(3);
  const PartitionAdmin::Presences seen = admin_.PresencesIn("g").value();
  EXPECT_EQ(seen.size(), 2u);
  Cycle(&b_);
  EXPECT_THAT(std::string(admin_.Forget("g", seen).message()), HasSubstr("has members: b;"));
  EXPECT_TRUE(admin_.Forget("g", admin_.PresencesIn("g").value()).ok());
  EXPECT_THAT(*admin_.Groups(), IsEmpty());
  for (const char* key : {"owners/0", "members", "member/a", "member/b"}) {
    EXPECT_EQ(store_.Get(absl::StrCat("partition/g/", key))->version, sync::kAbsent) << key;
  }
}

TEST_F(PartitionAdminTest, AGroupOfAnEarlierMusterIsOnlyForgotten) {
  store_.Overwrite("partition/old/members", base::BytesFromHex("1002"));  // 2 partitions
  store_.Overwrite("partition/old/owner/1", "a record of one partition");
  EXPECT_TRUE(absl::IsFailedPrecondition(admin_.Describe("old").status()));
  EXPECT_TRUE(admin_.Forget("old").ok());
  EXPECT_EQ(store_.Get("partition/old/owner/1")->version, sync::kAbsent);
  EXPECT_EQ(store_.Get("partition/old/members")->version, sync::kAbsent);
}

TEST(GroupRegistryTest, KeepsNamesInOrderAndOnce) {
  sync::testing::MemorySyncStore store;
  GroupRegistry registry(&store);
  EXPECT_THAT(*registry.List(), IsEmpty());
  for (const char* group : {"b", "a/x", "b"}) EXPECT_TRUE(registry.Note(group).ok());
  EXPECT_THAT(*registry.List(), ElementsAre("a/x", "b"));
  EXPECT_TRUE(registry.Remove("b").ok());
  EXPECT_TRUE(registry.Remove("b").ok());
  EXPECT_THAT(*registry.List(), ElementsAre("a/x"));
}

TEST(GroupRegistryTest, IsBounded) {
  sync::testing::MemorySyncStore store;
  GroupRegistry registry(&store);
  for (size_t i = 0; i < kMaxGroups; ++i) {
    ASSERT_TRUE(registry.Note(absl::StrCat(std::string(kMaxGroupBytes - 3, 'g'), 100 + i)).ok());
  }
  EXPECT_TRUE(absl::IsResourceExhausted(registry.Note("z")));
}

TEST(GroupRegistryTest, SaysWhichRecordIsDamaged) {
  sync::testing::MemorySyncStore store;
  store.Overwrite("partition/groups", "\xff");
  EXPECT_EQ(GroupRegistry(&store).List().status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace muster::partition
