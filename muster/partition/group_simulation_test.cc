// SPDX-License-Identifier: Apache-2.0

// 720 scenarios of groups in virtual time: 8 numbers of partitions × 6 of members × 5 stories × 3
// kinds of weather. docs/coordination.md shows the table that it prints.
#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "tests/fakes/base/test_seed.h"
#include "tests/fakes/partition/group_simulator.h"

namespace muster::partition {
namespace {

using testing::GroupSimulator;
using testing::SimulationOptions;

constexpr int kPartitionNumbers[] = {4, 5, 8, 13, 16, 23, 32, 64};
constexpr int kMemberNumbers[] = {1, 2, 3, 5, 8, 12};
enum Story { kStart, kJoin, kLeave, kCrash, kCrashInHandOver, kStories };
constexpr const char* kStoryNames[] = {"start together", "join", "leave", "crash",
                                       "crash in a hand-over"};
enum Weather { kFair, kClocks, kSlow, kWeathers };
constexpr const char* kWeatherNames[] = {"fair", "skewed clocks and a pause",
                                         "slow and failing store"};

// What a row of the table adds up.
struct Row {
  int scenarios = 0;
  int uneven = 0;
  int starved = 0;
  int overlaps = 0;
  int moves = 0;
  int least = 0;
  double worst = 1;                               // moves over the least, of one scenario
  absl::Duration longest = absl::ZeroDuration();  // from the last change to the last move
};

class Scenario {
 public:
  Scenario(int partitions, int page_rows, int members, Story story, Weather weather, uint32_t seed)
      : partitions_(partitions),
        members_(members),
        story_(story),
        weather_(weather),
        name_(absl::StrCat(partitions, " partitions, ", members, " members, ", kStoryNames[story],
                           ", ", kWeatherNames[weather], ", seed ", seed)),
        random_(seed),
        simulator_(OptionsOf(partitions, page_rows, weather, seed)) {}

  void Run(Row* row) {
    StartTogether();
    if (weather_ == kClocks) PauseOne();
    Tell();
    if (weather_ == kSlow) simulator_.StallStore(absl::Seconds(random_() % 15));
    const absl::Duration changed = simulator_.now();
    simulator_.RunFor(absl::Minutes(5));
    Judge(changed, row);
  }

 private:
  static SimulationOptions OptionsOf(int partitions, int page_rows, Weather weather,
                                     uint32_t seed) {
    SimulationOptions options{.partitions = partitions, .page_rows = page_rows, .seed = seed};
    if (weather == kClocks) options.clock_skew = 0.04;
    if (weather == kSlow) {
      options.min_latency = absl::Milliseconds(10);
      options.max_latency = absl::Milliseconds(80);
      options.fault_rate = 0.02;
    }
    return options;
  }

  absl::Duration UpTo(absl::Duration most) {
    return most * std::uniform_real_distribution<double>(0, 1)(random_);
  }

  void StartTogether() {
    for (int m = 0; m < members_; ++m) {
      simulator_.Join(absl::StrCat("m", next_++));
      simulator_.RunFor(UpTo(absl::Milliseconds(200)));
    }
    simulator_.RunFor(absl::Minutes(3));
  }

  std::string AnyMember() {
    const std::vector<std::string> members = simulator_.Members();
    return members[random_() % members.size()];
  }

  void PauseOne() {
    simulator_.Pause(AnyMember(), UpTo(absl::Seconds(60)));
    simulator_.RunFor(absl::Minutes(4));
  }

  void JoinSome() {
    for (uint32_t n = random_() % 3 + 1; n > 0; --n) {
      simulator_.Join(absl::StrCat("m", next_++));
      simulator_.RunFor(UpTo(absl::Seconds(20)));
    }
  }

  void Tell() {
    switch (story_) {
      case kStart:
      case kStories:
        return;
      case kJoin:
        return JoinSome();
      case kLeave:
        if (members_ == 1) simulator_.Join(absl::StrCat("m", next_++));
        simulator_.RunFor(UpTo(absl::Seconds(90)));
        return simulator_.Leave(AnyMember());
      case kCrash:
        if (members_ == 1) simulator_.Join(absl::StrCat("m", next_++));
        simulator_.RunFor(UpTo(absl::Seconds(90)));
        return simulator_.Crash(AnyMember());
      case kCrashInHandOver:
        return CrashInHandOver();
    }
  }

  // A newcomer asks; when an owner has agreed, one of the two dies.
  void CrashInHandOver() {
    simulator_.Join(absl::StrCat("m", next_++));
    simulator_.RunUntil([this] { return !simulator_.HandOver().first.empty(); }, absl::Minutes(2));
    const auto [owner, newcomer] = simulator_.HandOver();
    simulator_.Crash(owner.empty() ? AnyMember() : random_() % 2 == 0 ? owner : newcomer);
  }

  void Judge(absl::Duration changed, Row* row) {
    const std::map<std::string, int> held = simulator_.Held();
    int sum = 0, least = partitions_, most = 0;
    for (const auto& [_, count] : held) {
      sum += count;
      least = std::min(least, count);
      most = std::max(most, count);
    }
    const bool even = sum == partitions_ && most - least <= 1;
    const bool starved = least == 0 && static_cast<size_t>(partitions_) >= held.size();
    const auto count = absl::StrJoin(held, " ", absl::PairFormatter("="));
    EXPECT_TRUE(even) << name_ << ": " << count;
    EXPECT_FALSE(starved) << name_ << ": " << count;
    EXPECT_TRUE(simulator_.violations().empty())
        << name_ << ": " << simulator_.violations().front();
    ++row->scenarios;
    row->uneven += even ? 0 : 1;
    row->starved += starved ? 1 : 0;
    row->overlaps += static_cast<int>(simulator_.violations().size());
    row->moves += simulator_.moves();
    row->least += simulator_.least_moves();
    const double ratio = simulator_.moves() / static_cast<double>(simulator_.least_moves());
    EXPECT_GE(simulator_.moves(), simulator_.least_moves()) << name_;
    if (ratio > 1.15) std::printf("%.3f %s\n", ratio, name_.c_str());
    row->worst = std::max(row->worst, ratio);
    if (simulator_.last_move() > changed) {
      row->longest = std::max(row->longest, simulator_.last_move() - changed);
    }
  }

  const int partitions_;
  const int members_;
  const Story story_;
  const Weather weather_;
  const std::string name_;
  std::mt19937 random_;
  GroupSimulator simulator_;
  int next_ = 0;
};

void Print(const std::string& name, const Row& row) {
  std::printf("| %-48s | %9d | %6d | %7d | %8d | %6d | %6d | %5.3f | %5.3f | %7.1f s |\n",
              name.c_str(), row.scenarios, row.uneven, row.starved, row.overlaps, row.moves,
              row.least, row.moves / static_cast<double>(row.least), row.worst,
              absl::ToDoubleSeconds(row.longest));
}

// How many partitions share a record: one each, some, or all.
class GroupScenariosTest : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(PageRows, GroupScenariosTest, ::testing::Values(1, 8, kPageRows));

TEST_P(GroupScenariosTest, EvenSpreadFewMovesAndNeverTwoHoldersInAllScenarios) {
  const uint32_t seed = base::testing::TestSeed();
  std::printf("seed %u, %d partitions to a page\n", seed, GetParam());
  constexpr int kAll = 720;
  int next = 0;
  Row all;
  for (int story = 0; story < kStories; ++story) {
    for (int weather = 0; weather < kWeathers; ++weather) {
      Row row;
      uint32_t number = 0;
      for (const int partitions : kPartitionNumbers) {
        for (const int members : kMemberNumbers) {
          const uint32_t own_seed =
              seed + 1000 * static_cast<uint32_t>(kWeathers * story + weather) + number++;
          if (next++ % (kAll / base::testing::CaseCount(kAll)) != 0) continue;
          Scenario(partitions, GetParam(), members, static_cast<Story>(story),
                   static_cast<Weather>(weather), own_seed)
              .Run(&row);
        }
      }
      Print(absl::StrCat(kStoryNames[story], "; ", kWeatherNames[weather]), row);
      // A tenth of a row, as under a sanitizer, is too few for an average.
      if (base::testing::CaseCount(kAll) == kAll) {
        EXPECT_LE(row.moves, 1.15 * row.least) << kStoryNames[story] << kWeatherNames[weather];
      }
      all.scenarios += row.scenarios;
      all.uneven += row.uneven;
      all.starved += row.starved;
      all.overlaps += row.overlaps;
      all.moves += row.moves;
      all.least += row.least;
      all.worst = std::max(all.worst, row.worst);
      all.longest = std::max(all.longest, row.longest);
    }
  }
  Print("all", all);
  EXPECT_EQ(all.scenarios, base::testing::CaseCount(kAll));
  EXPECT_LE(all.moves, 1.15 * all.least);
}

// The limit of the promise, and the proof that the simulator notices a breach: clocks that differ
// by more than a tenth let a suspended owner believe in its lease after others have waited it out.
TEST(GroupSimulationTest, ClocksThatDifferByMoreThanATenthMayLetTwoHoldOnePartition) {
  size_t violations = 0;
  for (uint32_t seed = 0; seed < 10; ++seed) {
    GroupSimulator simulator({.partitions = 8, .seed = seed, .clock_skew = 0.3});
    for (const char* member : {"a", "b", "c"}) simulator.Join(member);
    simulator.RunFor(absl::Minutes(2));
    for (const char* member : {"a", "b", "c"}) {
      simulator.Pause(member, absl::Minutes(2));
      simulator.RunFor(absl::Minutes(4));
    }
    violations += simulator.violations().size();
  }
  EXPECT_GT(violations, 0u);
}

// One partition a cycle: it takes longer, and moves no more.
TEST(GroupSimulationTest, TheBalancedStrategyMovesOnePartitionACycle) {
  GroupSimulator simulator(
      {.partitions = 16, .strategy = Strategy::kBalanced, .seed = base::testing::TestSeed()});
  simulator.Join("a");
  simulator.Join("b");
  simulator.RunFor(absl::Seconds(15));
  EXPECT_LE(simulator.moves(), 8);
  simulator.RunFor(absl::Minutes(4));
  EXPECT_EQ(simulator.Held(), (std::map<std::string, int>{{"a", 8}, {"b", 8}}));
  simulator.Join("c");
  simulator.RunFor(absl::Minutes(4));
  for (const auto& [_, count] : simulator.Held()) EXPECT_GE(count, 5);
  EXPECT_EQ(simulator.moves(), 16 + 5);
  EXPECT_TRUE(simulator.violations().empty());
}

// With every member owning something, a cycle costs the same however many members there are.
TEST(GroupSimulationTest, TheNumberOfMembersDoesNotMakeACycleDearer) {
  std::map<int, double> requests_per_member;
  for (const int members : {2, 16}) {
    GroupSimulator simulator({.partitions = 32, .page_rows = 4, .seed = base::testing::TestSeed()});
    for (int m = 0; m < members; ++m) simulator.Join(absl::StrCat("m", m));
    simulator.RunFor(absl::Minutes(3));
    const int64_t before = simulator.requests();
    simulator.RunFor(absl::Minutes(10));
    requests_per_member[members] =
        static_cast<double>(simulator.requests() - before) / members / 60;
  }
  std::printf("requests a cycle: 2 members %.1f, 16 members %.1f\n", requests_per_member[2],
              requests_per_member[16]);
  EXPECT_LT(requests_per_member[16], requests_per_member[2]);
  EXPECT_LT(requests_per_member[2], 3 + 2 * 8 + 1);
}

// Pages bound what a cycle costs, also where every member owns some partitions of each page.
TEST(GroupSimulationTest, ACycleOfALargeGroupCostsAtMostTwoRequestsAPage) {
  constexpr int kPartitions = 2000;
  constexpr int kMembers = 40;
  GroupSimulator simulator({.partitions = kPartitions, .seed = base::testing::TestSeed()});
  for (int m = 0; m < kMembers; ++m) simulator.Join(absl::StrCat("m", 100 + m));
  simulator.RunFor(absl::Minutes(1));
  EXPECT_EQ(simulator.moves(), kPartitions) << "members that start together move nothing";
  // A newcomer takes one partition of each: it owns some of every page.
  simulator.Join("newcomer");
  simulator.RunFor(absl::Minutes(2));
  for (const auto& [member, count] : simulator.Held()) {
    EXPECT_GE(count, kPartitions / (kMembers + 1)) << member;
    EXPECT_LE(count, kPartitions / (kMembers + 1) + 1) << member;
  }
  EXPECT_EQ(simulator.moves(), simulator.least_moves());
  EXPECT_TRUE(simulator.violations().empty());
  const int64_t before = simulator.requests();
  simulator.RunFor(absl::Minutes(5));
  const double requests = static_cast<double>(simulator.requests() - before) / (kMembers + 1) / 30;
  std::printf("requests a cycle: %.1f, for %d pages\n", requests, PagesOf(kPartitions));
  EXPECT_LT(requests, 3 + 2 * PagesOf(kPartitions) + 1);
}

}  // namespace
}  // namespace muster::partition
