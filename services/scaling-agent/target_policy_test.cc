// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/target_policy.h"

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/status.h"
#include "muster/os/temp_dir.h"
#include "muster/scaling/policy/deadline_policy.h"
#include "muster/scaling/recording/recording.h"
#include "muster/scaling/recording/recording_replay.h"
#include "muster/scaling/rules/rules_file.h"
#include "services/scaling-agent/limits.h"

namespace muster::scaling_agent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kTarget[] =
    "targets: {billing: {kind: process, name: p, queues: [in], sla: {max: 60s, aim: 20s}, "
    "patience: 0.25, max: 9}}\n";

RulesInForce RulesOf(const std::string& text) {
  auto rules = scaling::rules::ParseRules(text, "rules");
  EXPECT_TRUE(rules.ok()) << rules.status();
  return {std::make_shared<const scaling::rules::Rules>(*std::move(rules)), text, 1};
}

scaling::policy::DeadlineOptions OptionsIn(const std::string& text) {
  const RulesInForce rules = RulesOf(text);
  return OptionsOf(*rules.rules, rules.rules->targets.front());
}

TEST(OptionsOfTest, TheRulesSayWhatIsPromisedAndHowPatiently) {
  const scaling::policy::DeadlineOptions options = OptionsIn(kTarget);
  EXPECT_EQ(options.sla, absl::Minutes(1));
  EXPECT_EQ(options.aim, absl::Seconds(20));
  EXPECT_EQ(options.patience, 0.25);
  EXPECT_FALSE(options.forecast);
  EXPECT_EQ(options.hold, 1);
  EXPECT_EQ(options.on_metric_loss.after, 3);
  EXPECT_TRUE(options.on_metric_loss.keep_current);
}

TEST(OptionsOfTest, AnIdleHoldOfTheRulesTakesThePlaceOfThePolicysOwn) {
  EXPECT_EQ(OptionsIn(absl::StrCat(kTarget, "stabilizer: {idle_hold: 10s}\n")).hold, 0);
  EXPECT_EQ(OptionsIn(absl::StrCat(kTarget, "stabilizer: {idle_hold: auto}\n")).hold, 1);
}

TEST(OptionsOfTest, LostMetricsAreAsTheRulesHaveThem) {
  const auto options =
      OptionsIn(absl::StrCat(kTarget, "on_metric_loss: {after: 7, keep: floor}\n"));
  EXPECT_EQ(options.on_metric_loss.after, 7);
  EXPECT_FALSE(options.on_metric_loss.keep_current);
}

TEST(OptionsOfTest, WithoutAnSlaFiveMinutesArePromised) {
  EXPECT_EQ(OptionsIn("targets: {a: {kind: process, name: p, queues: [in]}}\n").sla,
            absl::Minutes(5));
}

class TargetPolicyTest : public ::testing::Test {
 protected:
  TargetPolicyTest() { Begin(kTarget); }

  void Begin(const std::string& text) {
    const absl::Status begun = policy_.Begin(RulesOf(text));
    EXPECT_TRUE(begun.ok()) << begun;
  }
  void Use(const std::string& text) {
    const absl::Status used = policy_.Use(RulesOf(text));
    EXPECT_TRUE(used.ok()) << used;
  }
  // Passes a second in which `items` wait, and decides.
  scaling::policy::Decision Decide(int items) {
    now_ += absl::Seconds(1);
    scaling::policy::Observation seen;
    seen.now = now_;
    seen.fleet.ready = 1;
    seen.estimates.items_per_second = 10;
    seen.estimates.service_time = absl::Milliseconds(100);
    seen.estimates.cold_start = absl::Seconds(5);
    seen.queues.push_back({"in", now_, items, 0, absl::Seconds(1), items, 0});
    return policy_.Decide(seen);
  }
  std::string path() const { return dir_ / "recording"; }
  // Returns "SAME" when the recording's policy repeats every recorded decision.
  static std::string Replay(const std::string& path) {
    auto reader = scaling::recording::RecordingReader::Open(path);
    if (!reader.ok()) return reader.status().ToString();
    std::unique_ptr<scaling::rules::RuledPolicy> ruled;
    const auto use = [&](const std::string& text) -> absl::Status {
      if (ruled != nullptr) return ruled->Use(RulesOf(text).rules);
      MUSTER_ASSIGN_OR_RETURN(auto deadline,
                              scaling::policy::MakeDeadlinePolicy((*reader)->header().policy));
      MUSTER_ASSIGN_OR_RETURN(ruled, scaling::rules::RuledPolicy::Make(
                                         RulesOf(text).rules, "billing", std::move(deadline)));
      return absl::OkStatus();
    };
    Forward forward{&ruled};
    const auto resume = [&](const scaling::policy::Spending& spent) { ruled->Resume(spent); };
    const auto verdict = scaling::recording::ReplayRecording(reader->get(), &forward, use, resume);
    if (!verdict.ok()) return verdict.status().ToString();
    return absl::StrCat(verdict->first_difference.has_value() ? "OTHER " : "SAME ",
                        verdict->decisions, " ", verdict->announcements);
  }

  struct Forward final : scaling::policy::Policy {
    explicit Forward(std::unique_ptr<scaling::rules::RuledPolicy>* behind) : to(behind) {}
    void Announce(const scaling::policy::Announcement& announcement) override {
      (*to)->Announce(announcement);
    }
    scaling::policy::Decision Decide(const scaling::policy::Observation& seen) override {
      return (*to)->Decide(seen);
    }
    std::unique_ptr<scaling::rules::RuledPolicy>* const to;
  };

  const os::TempDir dir_;
  absl::Time now_ = absl::FromUnixSeconds(1'000'000'000);
  TargetPolicy policy_{"billing", {dir_ / "recording"}};
};

TEST_F(TargetPolicyTest, WhatItRecordsIsDecidedAnewInTheSameWay) {
  Decide(0);
  policy_.Announce({now_ + absl::Milliseconds(500), 3000, 0});
  EXPECT_GT(Decide(3000).replicas, 1);
  Use(absl::StrCat(kTarget,
                   "constraints: [{name: few, rank: 1, target: billing, range: [0, 2]}]\n"));
  EXPECT_EQ(Decide(3000).replicas, 2);
  EXPECT_EQ(policy_.trace().ruling.range_by, "few");
  EXPECT_TRUE(policy_.recording().ok());
  EXPECT_EQ(Replay(path()), "SAME 3 1");
}

TEST_F(TargetPolicyTest, AnotherPromiseBeginsAnewAndWithItAnotherRecording) {
  Decide(100);
  Use("targets: {billing: {kind: process, name: p, queues: [in], sla: {max: 600s}}}\n");
  EXPECT_EQ(policy_.options().sla, absl::Minutes(10));
  Decide(100);
  Decide(100);
  EXPECT_EQ(Replay(path()), "SAME 1 0");
  EXPECT_EQ(Replay(path() + ".2"), "SAME 2 0");
}

// A lead that was lost for some seconds began the hour of a budget anew, so that it was spent
// twice.
TEST_F(TargetPolicyTest, TheHourOfABudgetGoesOnWhenDecidingBeginsAnew) {
  const std::string rules = absl::StrCat(
      kTarget, "constraints: [{name: few, rank: 1, target: billing, budget: 5 replica-min/h}]\n");
  Begin(rules);
  for (int second = 0; second <= 120; ++second) Decide(0);
  EXPECT_NEAR(policy_.trace().budget_spent, 2, 0.02);
  Begin(rules);
  Decide(0);
  EXPECT_NEAR(policy_.trace().budget_spent, 2, 0.04);
  EXPECT_EQ(policy_.trace().budget_cap, 0);  // 3 minutes of a replica, spread over five
  // Nor does another promise begin it anew.
  Use(absl::StrCat(
      "targets: {billing: {kind: process, name: p, queues: [in], sla: {max: 90s}}}\n",
      "constraints: [{name: few, rank: 1, target: billing, budget: 5 replica-min/h}]\n"));
  Decide(0);
  EXPECT_NEAR(policy_.trace().budget_spent, 2, 0.06);
  EXPECT_EQ(Replay(path() + ".3"), "SAME 1 0");
  EXPECT_EQ(Replay(path() + ".4"), "SAME 1 0");
}

TEST_F(TargetPolicyTest, AnAgentThatWaitsToLeadKnowsWhatTheBudgetHasLeft) {
  const std::string rules = absl::StrCat(
      kTarget, "constraints: [{name: few, rank: 1, target: billing, budget: 60 replica-min/h}]\n");
  TargetPolicy waiting("billing", {});
  const absl::Time start = now_;
  for (int second = 0; second <= 300; ++second) waiting.Pay(start + absl::Seconds(second), 4);
  ASSERT_TRUE(waiting.Begin(RulesOf(rules)).ok());
  scaling::policy::Observation seen;
  seen.now = start + absl::Seconds(300);
  waiting.Decide(seen);
  EXPECT_NEAR(waiting.trace().budget_spent, 20, 0.1);
  // A clock that was put back begins it anew.
  waiting.Pay(start - absl::Hours(3), 4);
  ASSERT_TRUE(waiting.Begin(RulesOf(rules)).ok());
  seen.now = start - absl::Hours(3) + absl::Minutes(1);
  waiting.Decide(seen);
  EXPECT_NEAR(waiting.trace().budget_spent, 4, 0.1);
}

TEST_F(TargetPolicyTest, RulesWithoutTheTargetChangeNothing) {
  EXPECT_TRUE(absl::IsNotFound(
      policy_.Use(RulesOf("targets: {other: {kind: process, name: p, queues: [in]}}\n"))));
  EXPECT_EQ(policy_.options().sla, absl::Minutes(1));
  Decide(0);
}

TEST(TargetPolicyRecordingTest, AFolderThatIsNotThereIsTroubleAndNoMore) {
  TargetPolicy policy("billing", {"/nowhere/at/all"});
  ASSERT_TRUE(policy.Begin(RulesOf(kTarget)).ok());
  EXPECT_FALSE(policy.recording().ok());
  scaling::policy::Observation seen;
  seen.now = absl::FromUnixSeconds(1);
  EXPECT_EQ(policy.Decide(seen).replicas, 0);
}

TEST(TargetPolicyRecordingTest, AFullDiskEndsTheRecordingAndNotTheDecisions) {
  ::testing::internal::CaptureStderr();
  TargetPolicy policy("billing", {"/dev/full"});
  ASSERT_TRUE(policy.Begin(RulesOf(kTarget)).ok());
  scaling::policy::Observation seen;
  seen.now = absl::FromUnixSeconds(1'000'000'000);
  seen.estimates.items_per_second = 1;
  for (int i = 0; i < 100; ++i) {
    seen.now += absl::Seconds(1);
    seen.queues = {{"in", seen.now, 3000, 0, absl::Seconds(1), 3000, 0}};
    policy.Announce({seen.now, 30, 0});
    EXPECT_EQ(policy.Decide(seen).replicas, 9);
  }
  EXPECT_TRUE(absl::IsUnavailable(policy.recording()));
  EXPECT_THAT(std::string(policy.recording().message()),
              AllOf(HasSubstr("/dev/full"), HasSubstr("201 of what was seen and told since")));
  const std::string log = ::testing::internal::GetCapturedStderr();
  const size_t warned = log.find("the recording ends here");
  EXPECT_NE(warned, std::string::npos);
  EXPECT_EQ(log.find("the recording ends here", warned + 1), std::string::npos) << "once";
}

TEST_F(TargetPolicyTest, RecordingsBesideEachOtherAreBounded) {
  for (int i = 1; i < kMaxRecordings; ++i) Begin(kTarget);
  EXPECT_TRUE(policy_.recording().ok()) << policy_.recording();
  Begin(kTarget);
  EXPECT_TRUE(absl::IsResourceExhausted(policy_.recording()));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_.path()), {}), kMaxRecordings);
}

}  // namespace
}  // namespace muster::scaling_agent
