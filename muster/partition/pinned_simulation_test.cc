// SPDX-License-Identifier: Apache-2.0

// An administrator moves partitions in a group in virtual time, while members come, leave and die.
#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/fakes/base/test_seed.h"
#include "tests/fakes/partition/group_simulator.h"

namespace muster::partition {
namespace {

using testing::GroupSimulator;
using testing::SimulationOptions;

constexpr int kScenarios = 120;

SimulationOptions OptionsOf(int weather, uint32_t seed) {
  std::mt19937 random(seed);
  SimulationOptions options{.partitions = static_cast<int>(random() % 29 + 4), .seed = seed};
  if (weather == 1) options.clock_skew = 0.04;
  if (weather == 2) {
    options.min_latency = absl::Milliseconds(10);
    options.max_latency = absl::Milliseconds(80);
    options.fault_rate = 0.02;
  }
  return options;
}

class PinnedScenario {
 public:
  PinnedScenario(int weather, uint32_t seed)
      : options_(OptionsOf(weather, seed)), random_(seed), simulator_(options_) {}

  void Run() {
    const int members = static_cast<int>(random_() % 5 + 2);
    for (int m = 0; m < members; ++m) Join();
    simulator_.RunFor(absl::Minutes(3));
    Move();
    RunBriefly();
    ChangeTheGroup();
    RunBriefly();
    Move();
    simulator_.RunFor(absl::Minutes(6));
    ExpectPinsAndAnEvenRest();
    simulator_.RemovePins();
    simulator_.RunFor(absl::Minutes(5));
    pins_.clear();
    ExpectPinsAndAnEvenRest();
    EXPECT_TRUE(simulator_.violations().empty()) << simulator_.violations().front();
  }

 private:
  void Join() { simulator_.Join(absl::StrCat("m", next_++)); }
  void RunBriefly() { simulator_.RunFor(absl::Seconds(random_() % 90)); }
  std::string AnyMember() {
    const std::vector<std::string> members = simulator_.Members();
    return members[random_() % members.size()];
  }

  void Move() {
    for (uint32_t n = random_() % 6 + 1; n > 0; --n) {
      const int partition = static_cast<int>(random_()) % options_.partitions;
      const int p = std::max(partition, -partition);
      pins_[p] = AnyMember();
      simulator_.Pin(p, pins_[p]);
    }
  }

  void ChangeTheGroup() {
    switch (random_() % 3) {
      case 0:
        return Join();
      case 1:
        return simulator_.Leave(AnyMember());
      default:
        return simulator_.Crash(AnyMember());
    }
  }

  void ExpectPinsAndAnEvenRest() {
    const std::map<std::string, int> held = simulator_.Held();
    std::map<std::string, int> pinned;
    for (const auto& [partition, member] : pins_) {
      if (!held.contains(member)) continue;  // it died or left: its pins count for nothing
      EXPECT_EQ(simulator_.HolderOf(partition), member) << "partition " << partition;
      ++pinned[member];
    }
    int sum = 0;
    for (const auto& [rich, most] : held) {
      sum += most;
      for (const auto& [poor, least] : held) {
        EXPECT_TRUE(most - least <= 1 || most == pinned[rich])
            << rich << " has " << most << ", " << poor << " has " << least;
      }
    }
    EXPECT_EQ(sum, options_.partitions);
  }

  const SimulationOptions options_;
  std::mt19937 random_;
  GroupSimulator simulator_;
  std::map<int, std::string> pins_;
  int next_ = 0;
};

TEST(PinnedSimulationTest, MovedPartitionsStayAndTheRestIsEvenInAllScenarios) {
  const uint32_t seed = base::testing::TestSeed();
  for (int i = 0; i < base::testing::CaseCount(kScenarios); ++i) {
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", scenario ", i));
    PinnedScenario(i % 3, seed + static_cast<uint32_t>(i)).Run();
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace muster::partition
