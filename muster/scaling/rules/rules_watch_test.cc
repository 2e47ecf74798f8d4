// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/rules/rules_watch.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::scaling::rules {
namespace {

using ::testing::HasSubstr;
using Seen = RulesWatch::Seen;

std::string WithMax(int max) {
  return absl::StrCat("targets: {t: {kind: process, name: p, queues: [q], max: ", max, "}}\n");
}

class RulesWatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Write(WithMax(5));
    auto watch = RulesWatch::Open(path_, absl::Seconds(2), &clock_);
    ASSERT_TRUE(watch.ok()) << watch.status();
    watch_ = *std::move(watch);
  }

  void Write(const std::string& text) { std::ofstream(path_) << text; }
  Seen Poll() {
    clock_.Advance(absl::Seconds(2));
    return watch_->Poll();
  }
  int Max() const { return watch_->active_rules().state().rules->targets[0].range.max; }
  int64_t Refusals() const { return watch_->active_rules().state().refusals; }
  std::string Refusal() const {
    return std::string(watch_->active_rules().state().refusal.message());
  }

  const os::TempDir dir_;
  const std::string path_ = dir_ / "rules.yaml";
  base::FakeClock clock_;
  std::unique_ptr<RulesWatch> watch_;
};

TEST_F(RulesWatchTest, TakesSoundRulesUp) {
  EXPECT_EQ(Poll(), Seen::kNothingNew);
  const auto before = watch_->active_rules().state();
  Write(WithMax(7));
  EXPECT_EQ(Poll(), Seen::kNewRules);
  EXPECT_EQ(Max(), 7);
  EXPECT_EQ(watch_->active_rules().state().revision, before.revision + 1);
  EXPECT_EQ(before.rules->targets[0].range.max, 5);  // earlier readers keep the old rules
  EXPECT_EQ(Poll(), Seen::kNothingNew);
}

TEST_F(RulesWatchTest, KeepsTheLastGoodRulesAndSaysWhyOnce) {
  Write("targets: {}\n");
  EXPECT_EQ(Poll(), Seen::kRefused);
  EXPECT_EQ(Poll(), Seen::kNothingNew);
  EXPECT_EQ(Max(), 5);
  EXPECT_EQ(Refusals(), 1);
  EXPECT_EQ(
      Refusal(),
      absl::StrCat(path_, ":1:10: targets: must be a map of 1 to 100 entries, not a map of 0"));
  Write("targets: [\n");
  EXPECT_EQ(Poll(), Seen::kRefused);
  EXPECT_EQ(Refusals(), 2);
  Write(WithMax(5));
  EXPECT_EQ(Poll(), Seen::kNewRules);
  EXPECT_EQ(Refusal(), "");
  EXPECT_EQ(Refusals(), 2);
}

TEST_F(RulesWatchTest, KeepsTheLastGoodRulesWhileTheFileIsAway) {
  std::filesystem::remove(path_);
  EXPECT_EQ(Poll(), Seen::kRefused);
  EXPECT_EQ(Poll(), Seen::kNothingNew);
  EXPECT_EQ(Max(), 5);
  EXPECT_THAT(Refusal(), HasSubstr("does not exist"));
  Write(WithMax(5));
  EXPECT_EQ(Poll(), Seen::kNewRules);
  EXPECT_EQ(Refusal(), "");
}

TEST_F(RulesWatchTest, SeesAChangeThatKeptTheTimeOfTheOldFile) {
  const auto time = std::filesystem::last_write_time(path_);
  Write(WithMax(6));  // as many bytes as before
  std::filesystem::last_write_time(path_, time);
  EXPECT_EQ(Poll(), Seen::kNewRules);
  EXPECT_EQ(Max(), 6);
}

TEST_F(RulesWatchTest, LooksAtTheFileOncePerPeriod) {
  Write(WithMax(7));
  clock_.Advance(absl::Milliseconds(1999));
  EXPECT_EQ(watch_->Poll(), Seen::kNothingNew);
  clock_.StepWallClock(absl::Hours(5));
  EXPECT_EQ(watch_->Poll(), Seen::kNothingNew);
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_EQ(watch_->Poll(), Seen::kNewRules);
}

TEST_F(RulesWatchTest, DoesNotStartWithRulesThatAreBadOrMissing) {
  Write("mode: act\n");
  EXPECT_EQ(RulesWatch::Open(path_, absl::Seconds(2), &clock_).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RulesWatch::Open(dir_ / "none", absl::Seconds(2), &clock_).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace muster::scaling::rules
