// SPDX-License-Identifier: Apache-2.0
#include "muster/actuator/kubernetes/kubernetes_actuator.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/actuator/kubernetes/pod_cache.h"
#include "muster/base/retry.h"
#include "muster/kubernetes/limits.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/kubernetes/scripted_server.h"

namespace muster::actuator::kubernetes {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

muster::kubernetes::Pod Running(const std::string& name,
                                std::optional<std::string> cost = std::nullopt) {
  muster::kubernetes::Pod pod;
  pod.name = name;
  pod.phase = "Running";
  pod.ready = true;
  pod.deletion_cost = std::move(cost);
  return pod;
}

// Formats costs that are set and cleared: "a:-2 b:-".
std::string Costs(const std::vector<muster::kubernetes::Pod>& pods,
                  const std::vector<std::string>& wishes, int shrink_by) {
  std::string text;
  for (const CostChange& change : ChooseCosts(pods, wishes, shrink_by)) {
    absl::StrAppend(&text, text.empty() ? "" : " ", change.pod, ":");
    absl::StrAppend(&text, change.cost.has_value() ? absl::StrCat(*change.cost) : "-");
  }
  return text;
}

TEST(ChooseCostsTest, MarksAsManyAsGoInTheOrderOfTheWish) {
  const std::vector<muster::kubernetes::Pod> pods = {Running("a"), Running("b"), Running("c")};
  EXPECT_EQ(Costs(pods, {"c", "a", "b"}, 2), "a:-1 c:-2");
  EXPECT_EQ(Costs(pods, {"c", "a", "b"}, 5), "a:-2 b:-1 c:-3");
  EXPECT_EQ(Costs(pods, {}, 2), "");
  EXPECT_EQ(Costs(pods, {"a"}, 0), "");
  EXPECT_EQ(Costs(pods, {"a"}, -1), "");
}

TEST(ChooseCostsTest, ClearsTheCostsOfAllOthersFirst) {
  const std::vector<muster::kubernetes::Pod> pods = {Running("a"), Running("b", "-1"),
                                                     Running("c", "9"), Running("d", "-1")};
  EXPECT_EQ(Costs(pods, {"a"}, 1), "b:- c:- d:- a:-1");
}

TEST(ChooseCostsTest, ChangesNothingThatIsAsItShouldBe) {
  EXPECT_EQ(Costs({Running("a", "-1"), Running("b")}, {"a"}, 1), "");
}

// The order changes as replicas get work and become idle.
TEST(ChooseCostsTest, KeepsTheMarksOfThoseThatStillGo) {
  const std::vector<muster::kubernetes::Pod> pods = {Running("a", "-3"), Running("b", "-2"),
                                                     Running("c", "-1"), Running("d")};
  EXPECT_EQ(Costs(pods, {"c", "b", "d", "a"}, 3), "a:- d:-1");
  EXPECT_EQ(Costs({Running("a", "9"), Running("b", "x")}, {"a", "b"}, 2), "a:-2 b:-1");
}

TEST(ChooseCostsTest, SkipsWishesThatCannotGo) {
  std::vector<muster::kubernetes::Pod> pods = {Running("a"), Running("b"), Running("over", "-1"),
                                               Running("going", "-1")};
  pods[2].phase = "Succeeded";
  pods[3].deleted = true;
  EXPECT_EQ(Costs(pods, {"over", "going", "none", "", "b", "b", "a"}, 1), "b:-1");
  EXPECT_EQ(Costs(pods, {"b", "b", "a"}, 2), "a:-1 b:-2");
}

TEST(ChooseCostsTest, MarksNoMoreThanItsBound) {
  std::vector<muster::kubernetes::Pod> pods;
  std::vector<std::string> wishes;
  for (int i = 0; i < 3 * kMaxMarks; ++i) {
    pods.push_back(Running(absl::StrCat("p-", i)));
    wishes.push_back(pods.back().name);
  }
  EXPECT_THAT(ChooseCosts(pods, wishes, 3 * kMaxMarks), SizeIs(kMaxMarks));
}

TEST(TroubleOfTest, NamesOnePodThatCannotStartAndCountsTheOthers) {
  std::vector<muster::kubernetes::Pod> pods = {Running("a"), Running("b"), Running("c")};
  EXPECT_EQ(TroubleOf(pods), "");
  pods[1].trouble = "Unschedulable: 0/1 nodes are available";
  EXPECT_EQ(TroubleOf(pods), "pod b cannot start: Unschedulable: 0/1 nodes are available");
  pods[2].trouble = "Unschedulable: 0/1 nodes are available";
  EXPECT_EQ(TroubleOf(pods),
            "pod b and 1 more cannot start: Unschedulable: 0/1 nodes are available");
  pods[1].phase = "Failed";
  EXPECT_EQ(TroubleOf(pods), "pod c cannot start: Unschedulable: 0/1 nodes are available");
}

TEST(ReplicasOfTest, TellsWhatEachPodIs) {
  std::vector<muster::kubernetes::Pod> pods = {
      Running("ready"), Running("starting"), Running("going"), Running("over"), Running("failed")};
  pods[0].started = absl::FromUnixSeconds(7);
  pods[1].ready = false;
  pods[2].deleted = true;
  pods[3].phase = "Succeeded";
  pods[4].phase = "Failed";
  const std::vector<actuator::Replica> replicas = ReplicasOf(pods);
  ASSERT_THAT(replicas, SizeIs(3));
  EXPECT_EQ(replicas[0].name, "ready");
  EXPECT_EQ(replicas[0].instance, "ready");
  EXPECT_EQ(replicas[0].started, absl::FromUnixSeconds(7));
  EXPECT_EQ(replicas[0].state, actuator::ReplicaState::kReady);
  EXPECT_EQ(replicas[1].state, actuator::ReplicaState::kStarting);
  EXPECT_EQ(replicas[2].state, actuator::ReplicaState::kDraining);
}

using muster::kubernetes::WorkloadKind;
using muster::kubernetes::testing::Respond;
using muster::kubernetes::testing::ScriptedAnswer;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string ScaleOf(int replicas, const std::string& version = "1") {
  return json({{"metadata", {{"resourceVersion", version}}},
               {"spec", {{"replicas", replicas}}},
               {"status", {{"selector", "app=x"}}}})
      .dump();
}

std::string PodsNamed(const std::vector<std::string>& names) {
  json items = json::array();
  for (const std::string& name : names) items.push_back({{"metadata", {{"name", name}}}});
  return json({{"items", items}, {"metadata", {{"resourceVersion", "1"}}}}).dump();
}

// Cases that need a misbehaving server; tests/kubernetes covers the others on a real server.
class KubernetesActuatorTest : public ::testing::Test {
 protected:
  static Options MakeOptions() {
    Options options;
    options.targets = {{"billing", {WorkloadKind::kDeployment, "", "processor"}},
                       {"mail", {WorkloadKind::kStatefulSet, "post", "mailer"}}};
    options.watches_pods = false;
    return options;
  }
  actuator::Order To(int replicas) const {
    actuator::Order order;
    order.target = "billing";
    order.replicas = replicas;
    order.fencing_token = 5;
    return order;
  }
  actuator::Order WhileLeading(int replicas) const {
    actuator::Order order = To(replicas);
    order.not_after = clock_.Monotonic() + kLead;
    return order;
  }
  ScriptedAnswer AfterTheLead(ScriptedAnswer answer) {
    answer.before = [this] { clock_.Advance(kLead); };
    return answer;
  }
  absl::Status Refusal(const actuator::Order& order) { return actuator_.Apply(order).status(); }

  static constexpr absl::Duration kLead = absl::Seconds(2);

  base::FakeClock clock_;
  muster::kubernetes::testing::ScriptedServer server_;
  std::unique_ptr<muster::kubernetes::Client> client_ =
      server_.NewClient(&clock_, {.max_attempts = 1});
  KubernetesActuator actuator_{client_.get(), MakeOptions(), &clock_};
};

TEST_F(KubernetesActuatorTest, ReadsAgainAndTriesAgainWhenTheScaleChangedMeanwhile) {
  for (const char* version : {"1", "2"}) {
    server_.Expect(Respond(200, ScaleOf(1, version)));
    server_.Expect(Respond(409, R"({"message": "the object has been modified"})"));
  }
  server_.Expect(Respond(200, ScaleOf(2, "3")));
  server_.Expect(Respond(200, "{}"));
  const auto outcome = actuator_.Apply(To(4));
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->before, 2);
  EXPECT_EQ(outcome->after, 4);
  const auto requests = server_.requests();
  ASSERT_THAT(requests, SizeIs(6));
  const json sent = json::parse(requests[5].body);
  EXPECT_EQ(sent["metadata"]["resourceVersion"], "3");
  EXPECT_EQ(sent["spec"]["replicas"], 4);
}

TEST_F(KubernetesActuatorTest, GivesUpAScaleThatChangesAgainAndAgain) {
  for (int i = 0; i < muster::kubernetes::kMaxConflicts; ++i) {
    server_.Expect(Respond(200, ScaleOf(1)));
    server_.Expect(Respond(409, "{}"));
  }
  const absl::Status status = Refusal(To(4));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("deployment home/processor"));
  EXPECT_THAT(server_.requests(), SizeIs(2 * muster::kubernetes::kMaxConflicts));
}

TEST_F(KubernetesActuatorTest, HandsOnHowLongItIsAskedToStayAway) {
  server_.Expect(Respond(429, "{}", "Retry-After: 30\r\n"));
  const absl::Status status = Refusal(To(4));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(base::RetryAfter(status), absl::Seconds(30));
}

// The agent was stopped after its read, and goes on after its successor has written.
TEST_F(KubernetesActuatorTest, DoesNotReadAgainWhenTheLeadRanOutMeanwhile) {
  server_.Expect(Respond(200, ScaleOf(1, "1")));
  server_.Expect(AfterTheLead(Respond(409, R"({"message": "the object has been modified"})")));
  server_.Expect(Respond(200, ScaleOf(2, "2")));
  server_.Expect(Respond(200, "{}"));
  EXPECT_EQ(Refusal(WhileLeading(4)).code(), absl::StatusCode::kAborted);
  EXPECT_THAT(server_.requests(), SizeIs(2));
}

TEST_F(KubernetesActuatorTest, WritesNothingWhenTheLeadRanOutWhileItRead) {
  server_.Expect(AfterTheLead(Respond(200, ScaleOf(1))));
  server_.Expect(Respond(200, "{}"));
  const absl::Status status = Refusal(WhileLeading(4));
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the lead may have run out"));
  EXPECT_THAT(server_.requests(), SizeIs(1));
}

TEST_F(KubernetesActuatorTest, MarksNoMorePodsWhenTheLeadRanOut) {
  server_.Expect(Respond(200, ScaleOf(3)));
  server_.Expect(Respond(200, PodsNamed({"a", "b", "c"})));
  server_.Expect(AfterTheLead(Respond(200, "{}")));
  server_.Expect(Respond(200, "{}"));
  actuator::Order order = WhileLeading(1);
  order.let_go_first = {"b", "c"};
  EXPECT_EQ(Refusal(order).code(), absl::StatusCode::kAborted);
  EXPECT_THAT(server_.requests(), SizeIs(3));
}

// Kubernetes would choose the pods to remove, and might choose the busiest ones.
TEST_F(KubernetesActuatorTest, DoesNotShrinkWhenItCannotMarkWhoShouldGo) {
  server_.Expect(Respond(200, ScaleOf(3)));
  server_.Expect(Respond(200, PodsNamed({"a", "b", "c"})));
  server_.Expect(Respond(403, "{}"));
  actuator::Order order = To(2);
  order.let_go_first = {"b"};
  const absl::Status status = Refusal(order);
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()), HasSubstr("verb 'patch' on resource 'pods'"));
  EXPECT_THAT(server_.requests(), SizeIs(3));
}

TEST_F(KubernetesActuatorTest, ShrinksThoughAPodThatItMarksHasGone) {
  server_.Expect(Respond(200, ScaleOf(3)));
  server_.Expect(Respond(200, PodsNamed({"a", "b", "c"})));
  server_.Expect(Respond(404, "{}"));
  server_.Expect(Respond(200, "{}"));
  actuator::Order order = To(2);
  order.let_go_first = {"b"};
  EXPECT_TRUE(actuator_.Apply(order).ok());
}

TEST_F(KubernetesActuatorTest, SaysThatAStatefulSetChoosesByItself) {
  server_.Expect(Respond(200, ScaleOf(3)));
  server_.Expect(Respond(200, "{}"));
  actuator::Order order = To(1);
  order.target = "mail";
  order.let_go_first = {"mailer-0"};
  const auto outcome = actuator_.Apply(order);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->detail,
            "statefulset post/mailer from 3 to 1 replicas; a StatefulSet lets its highest ordinals "
            "go, not those that were chosen");
  EXPECT_EQ(server_.requests()[1].line,
            "PUT /apis/apps/v1/namespaces/post/statefulsets/mailer/scale");
}

TEST_F(KubernetesActuatorTest, WritesNothingWhereNothingChanges) {
  server_.Expect(Respond(200, ScaleOf(3)));
  const auto outcome = actuator_.Apply(To(3));
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->after, 3);
  EXPECT_THAT(server_.requests(), SizeIs(1));
}

TEST_F(KubernetesActuatorTest, KnowsTheTargetsThatItWasToldLast) {
  actuator_.SetTargets({{"new", {WorkloadKind::kDeployment, "n", "d"}}});
  EXPECT_EQ(actuator_.Observe("billing").status().code(), absl::StatusCode::kNotFound);
  server_.Expect(Respond(200, ScaleOf(2)));
  server_.Expect(Respond(200, PodsNamed({"d-1"})));
  const auto state = actuator_.Observe("new");
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->wanted, 2);
  EXPECT_THAT(state->replicas, SizeIs(1));
  EXPECT_EQ(server_.requests()[0].line, "GET /apis/apps/v1/namespaces/n/deployments/d/scale");
}

TEST_F(KubernetesActuatorTest, TakesAnAbsurdScaleForALargeOne) {
  server_.Expect(Respond(200, R"({"metadata": {"resourceVersion": "1"},
                                  "spec": {"replicas": 99999999999999},
                                  "status": {"selector": "app=x"}})"));
  server_.Expect(Respond(200, PodsNamed({})));
  EXPECT_EQ(actuator_.Observe("billing")->wanted, std::numeric_limits<int>::max());
}

}  // namespace

}  // namespace muster::actuator::kubernetes
