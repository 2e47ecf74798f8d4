// SPDX-License-Identifier: Apache-2.0
#include "muster/kubernetes/workload.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/kubernetes/scripted_server.h"

namespace muster::kubernetes {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::Respond;
using ::testing::SizeIs;

TEST(PodOfTest, ReadsWhatMattersOfAPod) {
  const Pod pod = PodOf(json::parse(R"({
    "metadata": {"name": "processor-1", "creationTimestamp": "2026-01-02T03:04:05Z",
                 "annotations": {"controller.kubernetes.io/pod-deletion-cost": "-7"}},
    "status": {"phase": "Running", "startTime": "2026-01-02T03:04:06Z",
               "conditions": [{"type": "Initialized", "status": "True"},
                              {"type": "Ready", "status": "True"}]}})"));
  EXPECT_EQ(pod.name, "processor-1");
  EXPECT_EQ(pod.phase, "Running");
  EXPECT_TRUE(pod.ready);
  EXPECT_FALSE(pod.deleted);
  EXPECT_EQ(pod.started, absl::FromUnixSeconds(1767323045));
  EXPECT_EQ(pod.deletion_cost, "-7");
}

TEST(PodOfTest, TakesWhatIsMissingOrStrangeForNothing) {
  for (
      const char* text :
      {"{}", "[]", "null", R"({"metadata": 7, "status": []})",
       R"({"metadata": {"name": 7, "annotations": {"controller.kubernetes.io/pod-deletion-cost": 1},
                        "creationTimestamp": "yesterday"},
            "status": {"conditions": [7, {"type": "Ready"}]}})"}) {
    const Pod pod = PodOf(json::parse(text));
    EXPECT_EQ(pod.name, "") << text;
    EXPECT_FALSE(pod.ready) << text;
    EXPECT_EQ(pod.started, absl::InfinitePast()) << text;
    EXPECT_FALSE(pod.deletion_cost.has_value()) << text;
  }
}

// What a node of Kubernetes 1.36 says of a pod whose container is `state`.
std::string TroubleWith(const std::string& state, const std::string& conditions = "[]") {
  const std::string container = R"({"name": "processor", "state": )" + state + "}";
  return PodOf(json::parse(R"({"status": {"phase": "Pending", "conditions": )" + conditions +
                           R"(, "containerStatuses": [)" + container + "]}}"))
      .trouble;
}

TEST(PodOfTest, SaysWhyAPodDoesNotStart) {
  EXPECT_EQ(TroubleWith(R"({"waiting": {"reason": "ImagePullBackOff",
                                         "message": "Back-off pulling image \"acme/bill:7\""}})"),
            "container processor: ImagePullBackOff: Back-off pulling image \"acme/bill:7\"");
  EXPECT_EQ(TroubleWith(R"({"waiting": {"reason": "CrashLoopBackOff"}})"),
            "container processor: CrashLoopBackOff");
  EXPECT_EQ(TroubleWith(R"({"waiting": {"reason": "ContainerCreating"}})",
                        R"([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                              "message": "0/1 nodes are available: 1 Insufficient cpu."}])"),
            "Unschedulable: 0/1 nodes are available: 1 Insufficient cpu.");
}

TEST(PodOfTest, FindsNothingWrongWithAUsualStart) {
  for (const char* state :
       {R"({"waiting": {"reason": "ContainerCreating"}})",
        R"({"waiting": {"reason": "PodInitializing"}})", R"({"running": {}})", "{}", "7"}) {
    EXPECT_EQ(TroubleWith(state, R"([{"type": "PodScheduled", "status": "True"},
                                      {"type": "Ready", "status": "False"}])"),
              "")
        << state;
  }
}

TEST(PodOfTest, SaysSinceWhenAPodWaitsToStart) {
  const Pod pod = PodOf(json::parse(
      R"({"metadata": {"creationTimestamp": "2026-01-02T03:04:05Z", "deletionTimestamp": "x"}})"));
  EXPECT_EQ(pod.started, absl::FromUnixSeconds(1767323045));
  EXPECT_TRUE(pod.deleted);
}

// A cold start includes the wait for a node, and nodes' clocks are off by minutes.
TEST(PodOfTest, CountsAStartFromWhenThePodWasMadeAndByNoClockOfANode) {
  for (const char* started : {"2026-01-02T03:09:05Z", "2026-01-02T02:59:05Z"}) {
    const Pod pod = PodOf(json{{"metadata", {{"creationTimestamp", "2026-01-02T03:04:05Z"}}},
                               {"status", {{"startTime", started}}}});
    EXPECT_EQ(pod.started, absl::FromUnixSeconds(1767323045)) << started;
  }
}

class PodListTest : public ::testing::Test {
 protected:
  void ExpectPage(const std::string& name, const std::string& next) {
    const json page = {{"metadata", {{"resourceVersion", "9"}, {"continue", next}}},
                       {"items", {{{"metadata", {{"name", name}}}}}}};
    server_.Expect(Respond(200, page.dump()));
  }

  base::FakeClock clock_;
  testing::ScriptedServer server_;
  std::unique_ptr<Client> client_ = server_.NewClient(&clock_, {.max_attempts = 1});
};

TEST_F(PodListTest, ReadsPageAfterPage) {
  ExpectPage("p-1", "a+b/c=");
  ExpectPage("p-2", "");
  const auto pods = ListPods(client_.get(), "home", "app=x,tier in (a,b)");
  ASSERT_TRUE(pods.ok()) << pods.status();
  ASSERT_THAT(*pods, SizeIs(2));
  EXPECT_EQ((*pods)[1].name, "p-2");
  EXPECT_THAT(server_.requests()[0].line,
              HasSubstr("?limit=200&labelSelector=app%3Dx%2Ctier%20in%20%28a%2Cb%29"));
  EXPECT_THAT(server_.requests()[1].line, HasSubstr("&continue=a%2Bb%2Fc%3D"));
}

TEST_F(PodListTest, BeginsAnewWhenTheServerHasForgottenThePage) {
  ExpectPage("old", "next");
  server_.Expect(Respond(410, "{}"));
  ExpectPage("p-1", "");
  const auto pods = ListPods(client_.get(), "home", "app=x");
  ASSERT_TRUE(pods.ok()) << pods.status();
  ASSERT_THAT(*pods, SizeIs(1));
  EXPECT_EQ((*pods)[0].name, "p-1");
}

TEST_F(PodListTest, GivesUpAServerThatForgetsAtOnce) {
  for (int i = 0; i < 10; ++i) server_.Expect(Respond(410, "{}"));
  EXPECT_EQ(ListPods(client_.get(), "home", "app=x").status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(PodListTest, ReadsNoMorePagesThanItsBound) {
  for (int i = 0; i <= kMaxPages; ++i) ExpectPage("p", "more");
  EXPECT_EQ(ListPods(client_.get(), "home", "app=x").status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_THAT(server_.requests(), SizeIs(kMaxPages));
}

TEST_F(PodListTest, RefusesToListThePodsOfOthers) {
  EXPECT_EQ(ListPods(client_.get(), "home", "").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(server_.requests(), SizeIs(0));
}

TEST_F(PodListTest, TakesNoAnswerForAListThatIsNone) {
  server_.Expect(Respond(200, R"({"items": {"a": 1}})"));
  EXPECT_EQ(ListPods(client_.get(), "home", "app=x").status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(PodListTest, MarksAPodThatIsGoneWithoutAnError) {
  server_.Expect(Respond(404, "{}"));
  EXPECT_TRUE(SetDeletionCost(client_.get(), "home", "p-1", -1).ok());
  server_.Expect(Respond(403, "{}"));
  const absl::Status status = SetDeletionCost(client_.get(), "home", "p-1", std::nullopt);
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()), HasSubstr("verb 'patch' on resource 'pods'"));
}

TEST_F(PodListTest, TakesNoScaleWithoutAVersionForAScale) {
  server_.Expect(Respond(200, R"({"spec": {"replicas": 3}})"));
  EXPECT_EQ(ReadScale(client_.get(), {WorkloadKind::kDeployment, "home", "d"}).status().code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace muster::kubernetes
