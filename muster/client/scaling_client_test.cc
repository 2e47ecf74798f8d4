// SPDX-License-Identifier: Apache-2.0
#include "muster/client/scaling_client.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/client/fake_scaling_agent.h"

namespace muster::client {
namespace {

using testing::AgentState;
using testing::FakeAgent;
using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Minutes(2);

class LeadingAgentTest : public ::testing::Test {
 protected:
  LeadingAgentTest() {
    known_ = {one_.address(), two_.address()};
    one_.Tell([](AgentState& state) { state.rules.set_text("one"); });
    two_.Tell([](AgentState& state) { state.rules.set_text("two"); });
  }

  // Returns the name of the agent that answers: its rules hold the name.
  absl::StatusOr<std::string> Rules() {
    const auto rules = leader_.Unary<v1::GetRulesResponse>(&v1::ScalingService::Stub::GetRules,
                                                           v1::GetRulesRequest(), kLong);
    if (!rules.ok()) return rules.status();
    return rules->text();
  }

  FakeAgent one_, two_;
  absl::StatusOr<std::vector<std::string>> known_;
  ScalingLeaderClient leader_{[this] { return known_; }, {}};
};

TEST_F(LeadingAgentTest, AsksTheFirstThatLeads) {
  EXPECT_EQ(Rules().value(), "one");
  EXPECT_EQ(two_.state().calls, 0);
}

TEST_F(LeadingAgentTest, GoesToTheOneThatIsSaidToLead) {
  FakeAgent unheard;
  unheard.Tell([](AgentState& state) { state.rules.set_text("unheard"); });
  one_.StepDown(unheard.address());
  two_.StepDown("");
  EXPECT_EQ(Rules().value(), "unheard");
  EXPECT_EQ(two_.state().calls, 0);
}

TEST_F(LeadingAgentTest, AsksTheOtherWhenOneDoesNotKnowWhoLeads) {
  one_.StepDown("");
  EXPECT_EQ(Rules().value(), "two");
  EXPECT_EQ(Rules().value(), "two");
  EXPECT_EQ(one_.state().calls, 1) << "the one that led last is asked first";
}

TEST_F(LeadingAgentTest, AsksTheOtherWhenOneDoesNotAnswer) {
  EXPECT_EQ(Rules().value(), "one");
  one_.Die();
  EXPECT_EQ(Rules().value(), "two");
}

TEST_F(LeadingAgentTest, FollowsTheLeadThereAndBack) {
  one_.StepDown(two_.address());
  EXPECT_EQ(Rules().value(), "two");
  two_.StepDown(one_.address());
  one_.Tell([](AgentState& state) { state.agent.set_leads(true); });
  EXPECT_EQ(Rules().value(), "one");
}

TEST_F(LeadingAgentTest, GivesUpWhereTheySendItInACircle) {
  one_.StepDown(two_.address());
  two_.StepDown(one_.address());
  const absl::Status status = Rules().status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_EQ(status.message(),
            "no scaling agent that is known leads (asked: 2); one does within seconds");
  EXPECT_EQ(one_.state().calls, 1);
  EXPECT_EQ(two_.state().calls, 1);
}

TEST_F(LeadingAgentTest, TellsOfTheOneThatLeadsAndDoesNotAnswer) {
  one_.StepDown(two_.address());
  two_.Tell([](AgentState& state) { state.trouble = absl::UnavailableError("not known yet"); });
  const absl::Status status = Rules().status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_EQ(status.message(), absl::StrCat("scaling agent ", two_.address(), ": not known yet"));
}

TEST_F(LeadingAgentTest, PassesOnWhatTheLeaderRefuses) {
  one_.StepDown(two_.address());
  two_.Tell([](AgentState& state) { state.trouble = absl::NotFoundError("no such target"); });
  EXPECT_EQ(Rules().status(), absl::NotFoundError("no such target"));
}

TEST_F(LeadingAgentTest, SaysThatNobodyIsKnown) {
  known_->clear();
  EXPECT_EQ(Rules().status(), absl::UnavailableError("no scaling agent is known; start one with "
                                                     "muster-scaling-agent --rules FILE"));
  known_ = absl::PermissionDeniedError("not for you");
  EXPECT_EQ(Rules().status(), absl::PermissionDeniedError("not for you"));
}

TEST_F(LeadingAgentTest, PassesOverWhatIsNoAddress) {
  known_ = {"nonsense", two_.address()};
  EXPECT_EQ(Rules().value(), "two");
  known_ = {"nonsense"};
  EXPECT_TRUE(absl::IsUnavailable(Rules().status()));
  EXPECT_THAT(std::string(Rules().status().message()), HasSubstr("scaling agent nonsense: "));
}

TEST_F(LeadingAgentTest, AsksSixteenAtMost) {
  known_->clear();
  for (int port = 1; port <= 16; ++port) known_->push_back(absl::StrCat("localhost:", port));
  known_->push_back(one_.address());
  EXPECT_TRUE(absl::IsUnavailable(Rules().status()));
  EXPECT_EQ(one_.state().calls, 0);
}

TEST(StartsReplicasTest, WantsAnAgentThatActsByAnActuatorWithReplicas) {
  v1::GetAgentResponse agent;
  agent.set_mode(v1::SCALING_MODE_ACT);
  for (const char* actuator : {"process", "kubernetes"}) {
    agent.set_actuator(actuator);
    EXPECT_TRUE(StartsReplicas(agent)) << actuator;
  }
  agent.set_mode(v1::SCALING_MODE_OBSERVE);
  EXPECT_FALSE(StartsReplicas(agent));
  agent.set_mode(v1::SCALING_MODE_ACT);
  agent.set_actuator("dry-run");
  EXPECT_FALSE(StartsReplicas(agent));
}

}  // namespace
}  // namespace muster::client
