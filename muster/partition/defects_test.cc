// SPDX-License-Identifier: Apache-2.0

// Defects that implementations of this kind have had: for each, a naive version that has it, and
// that ours does not.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "muster/partition/balancer.h"
#include "muster/partition/checkpoint_store.h"
#include "muster/partition/member_protocol.h"
#include "muster/partition/observations.h"
#include "tests/fakes/partition/group_simulator.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::partition {
namespace {

using testing::GroupSimulator;
using testing::RecordMap;

using Counts = std::vector<int>;  // of partitions, by member

int Total(const Counts& counts) {
  int total = 0;
  for (const int count : counts) total += count;
  return total;
}

int Spread(const Counts& counts) {
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  return *most - *least;
}

// What a group makes of `counts` when the last member asks, each owner answers, and it asks again.
Counts BalancedByOurs(const Counts& counts) {
  GroupView view;
  for (size_t m = 0; m < counts.size(); ++m) {
    view.live.push_back(std::string(1, static_cast<char>('a' + m)));
    for (int i = 0; i < counts[m]; ++i) {
      view.partitions.push_back({.record = {.owner = view.live.back(), .epoch = 1}, .known = true});
    }
  }
  for (int round = 0; round < Total(counts); ++round) {
    for (const std::string& member : view.live) {
      view.self = member;
      for (PartitionView& partition : view.partitions) {
        partition.running = partition.record.owner == member;
      }
      const Action action = DecideNext(view, static_cast<uint64_t>(round));
      Ownership& record = view.partitions[static_cast<size_t>(action.partition)].record;
      if (action.kind == Action::Kind::kAsk) record.wanted_by = member;
      if (action.kind == Action::Kind::kRefuse) record.wanted_by.clear();
      if (action.kind == Action::Kind::kGrant) {
        record.owner = record.wanted_by;
        record.wanted_by.clear();
      }
    }
  }
  Counts balanced;
  for (const std::string& member : view.live) {
    balanced.push_back(static_cast<int>(
        std::count_if(view.partitions.begin(), view.partitions.end(),
                      [&](const PartitionView& p) { return p.record.owner == member; })));
  }
  return balanced;
}

// Takes only from owners that have more than the quota and one.
Counts BalancedByTheLargeOnly(Counts counts) {
  const int quota = Total(counts) / static_cast<int>(counts.size());
  for (;;) {
    const auto largest = std::max_element(counts.begin(), counts.end());
    if (*largest <= quota + 1 || counts.back() >= quota) return counts;
    --*largest;
    ++counts.back();
  }
}

TEST(PartitionDefectsTest, ANewcomerDoesNotStarveBesideTwoWithTwoPartitionsEach) {
  EXPECT_EQ(BalancedByTheLargeOnly({2, 2, 0}).back(), 0) << "the defect";
  EXPECT_EQ(BalancedByOurs({2, 2, 0}).back(), 1);
}

// Chooses one victim, and takes what it lacks from it.
Counts BalancedGreedilyFromOne(Counts counts) {
  const int members = static_cast<int>(counts.size());
  const int share = (Total(counts) + members - 1) / members;
  const auto largest = std::max_element(counts.begin(), counts.end());
  const int taken = std::min(share, *largest) - counts.back();
  *largest -= taken;
  counts.back() += taken;
  return counts;
}

TEST(PartitionDefectsTest, GreedyDoesNotTakeMoreThanTheLargestCanSpare) {
  EXPECT_EQ(BalancedGreedilyFromOne({4, 3, 3, 3, 3, 0}), (Counts{1, 3, 3, 3, 3, 3}));
  EXPECT_LE(Spread(BalancedByOurs({4, 3, 3, 3, 3, 0})), 1);
}

bool IsExpiredByMinutes(absl::Duration renewed, absl::Duration now) {
  return absl::ToInt64Minutes(now) - absl::ToInt64Minutes(renewed) > 0;
}

TEST(PartitionDefectsTest, ExpiryIsNotTruncatedToMinutes) {
  const absl::Duration renewed = absl::Minutes(7) - absl::Seconds(1);
  const absl::Duration now = absl::Minutes(7) + absl::Seconds(1);
  EXPECT_TRUE(IsExpiredByMinutes(renewed, now)) << "the defect: after two seconds";
  Observations seen({.group = "g", .member = "b", .partitions = 1});
  seen.SeeMembers({"a", "b"}, renewed);
  seen.SeeOwnership(0, {.owner = "a", .epoch = 1, .renewal = 1}, renewed);
  EXPECT_FALSE(seen.IsClaimable(0, true, now));
  EXPECT_FALSE(seen.IsClaimable(0, true, renewed + absl::Seconds(39)));
  EXPECT_TRUE(seen.IsClaimable(0, true, renewed + absl::Seconds(40)));
}

TEST(PartitionDefectsTest, OfTwoFirstClaimsOneWins) {
  // Both read that there is no record, then both write.
  RecordMap naive;
  int naive_owners = 0;
  for (const char* member : {"a", "b"}) {
    RecordRequest write{.verb = RecordRequest::Verb::kWrite, .name = {.page = 0}};
    write.value.owners = {{.owner = member, .epoch = 1}};
    write.version = naive.Read(write.name).version;  // read anew: as good as no condition
    naive_owners += naive.CarryOut(write).done ? 1 : 0;
  }
  EXPECT_EQ(naive_owners, 2) << "the defect";

  RecordMap records;
  std::vector<MemberProtocol> members;
  for (const char* name : {"a", "b"}) {
    members.emplace_back(MemberOptions{.group = "g", .member = name, .partitions = 1}, 1);
  }
  absl::Duration now = absl::Hours(1);
  for (int cycle = 0; cycle < 4; ++cycle, now += absl::Seconds(3)) {
    for (MemberProtocol& member : members) member.BeginCycle(now);
    // In step, request by request.
    for (bool busy = true; busy;) {
      std::vector<std::optional<RecordRequest>> requests;
      for (MemberProtocol& member : members) requests.push_back(member.Next(now));
      busy = false;
      for (size_t m = 0; m < members.size(); ++m) {
        if (!requests[m].has_value()) continue;
        busy = true;
        members[m].OnReply(records.CarryOut(*requests[m]), now);
      }
    }
  }
  EXPECT_NE(members[0].Held(0, now).has_value(), members[1].Held(0, now).has_value());
}

// How long after a member goes until the others have its partitions.
absl::Duration TakeOverTime(bool relinquishes) {
  GroupSimulator simulator({.partitions = 8});
  for (const char* member : {"a", "b", "c"}) simulator.Join(member);
  simulator.RunFor(absl::Minutes(2));
  const absl::Duration went = simulator.now();
  relinquishes ? simulator.Leave("a") : simulator.Crash("a");
  simulator.RunFor(absl::Minutes(3));
  return simulator.last_move() - went;
}

TEST(PartitionDefectsTest, AMemberThatStopsLetsOthersTakeOverBeforeItsLeaseEnds) {
  EXPECT_GT(TakeOverTime(false), absl::Seconds(28)) << "as one that only goes away";
  EXPECT_LT(TakeOverTime(true), absl::Seconds(20));
}

TEST(PartitionDefectsTest, AnOldOwnerDoesNotMoveACheckpointBack) {
  std::map<int, int64_t> naive;
  naive[0] = 10;  // the new owner's
  naive[0] = 7;   // the old owner's, late
  EXPECT_EQ(naive[0], 7) << "the defect";

  sync::testing::MemorySyncStore store;
  CheckpointStore checkpoints(&store, "g");
  ASSERT_TRUE(checkpoints.Begin(0, 2).ok());
  ASSERT_TRUE(checkpoints.Save(0, 2, {.offset = 10, .sequence = 10}).ok());
  EXPECT_EQ(checkpoints.Save(0, 1, {.offset = 7, .sequence = 7}).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(checkpoints.Begin(0, 2)->offset, 10);
}

// Moves in a group that is even already and in which nothing happens.
int MovesAtRest(absl::Duration lease) {
  GroupSimulator simulator({.partitions = 8, .lease = lease});
  for (const char* member : {"a", "b", "c"}) simulator.Join(member);
  simulator.RunFor(absl::Minutes(2));
  const int before = simulator.moves();
  simulator.RunFor(absl::Minutes(20));
  return simulator.moves() - before;
}

TEST(PartitionDefectsTest, AnIntervalAsLongAsTheLeaseIsRefusedBecauseItThrashes) {
  MemberOptions options{.group = "g", .member = "a"};
  EXPECT_GT(MovesAtRest(options.interval), 0) << "the defect";
  EXPECT_EQ(MovesAtRest(options.lease), 0);
  options.lease = options.interval;
  EXPECT_EQ(Validate(options).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace muster::partition
