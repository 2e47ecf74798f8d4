// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/actuator/kubernetes/kubernetes_actuator.h"
#include "muster/kubernetes/workload.h"
#include "tests/conformance/actuator/actuator_conformance.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/kubernetes/test_cluster.h"

namespace muster::kubernetes_test {
namespace {

using actuator::Order;
using actuator::ReplicaState;
using actuator::kubernetes::KubernetesActuator;
using kubernetes::WorkloadKind;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAreArray;

// An agent with the rights of the documented Role, and its two targets.
class Agent {
 public:
  explicit Agent(TestCluster* cluster, WorkloadKind kind = WorkloadKind::kDeployment,
                 absl::string_view lacks = "", absl::string_view resource = "")
      : client_(
            kubernetes::Client::Open(cluster->AgentAccess({"processor", "mailer"}, lacks, resource),
                                     base::RealClock())
                .value()),
        actuator_(client_.get(), MakeOptions(cluster, kind), base::RealClock()) {}

  KubernetesActuator* operator->() { return &actuator_; }
  KubernetesActuator* get() { return &actuator_; }

 private:
  static actuator::kubernetes::Options MakeOptions(TestCluster* cluster, WorkloadKind kind) {
    actuator::kubernetes::Options options;
    options.targets = {{"billing", {kind, "", "processor"}}, {"mail", {kind, "", "mailer"}}};
    return options;
  }

  const std::unique_ptr<kubernetes::Client> client_;
  KubernetesActuator actuator_;
};

// A role takes effect a moment after its binding.
bool AwaitRole(Agent& agent) {
  return Eventually([&] { return agent->Observe("billing").ok() && agent->Observe("mail").ok(); });
}

std::vector<std::string> Staying(Agent& agent) {
  std::vector<std::string> names;
  const auto state = agent->Observe("billing");
  EXPECT_TRUE(state.ok()) << state.status();
  if (!state.ok()) return names;
  for (const actuator::Replica& replica : state->replicas) {
    if (replica.state != ReplicaState::kDraining) names.push_back(replica.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Order BillingTo(int replicas, int64_t token = 1) {
  Order order;
  order.target = "billing";
  order.replicas = replicas;
  order.fencing_token = token;
  return order;
}

class ActuatorOnClusterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasCluster()) GTEST_SKIP() << "MUSTER_TEST_KUBECONFIG names no cluster";
    cluster_ = std::make_unique<TestCluster>();
    processor_ = cluster_->MakeWorkload(WorkloadKind::kDeployment, "processor");
    cluster_->MakeWorkload(WorkloadKind::kDeployment, "mailer");
  }

  int Told() { return ReadScale(cluster_->admin(), processor_)->replicas; }
  ReplicaState StateOf(Agent& agent, const std::string& name) {
    const auto state = agent->Observe("billing");
    EXPECT_TRUE(state.ok()) << state.status();
    if (!state.ok()) return ReplicaState::kParked;
    for (const actuator::Replica& replica : state->replicas) {
      if (replica.name == name) return replica.state;
    }
    return ReplicaState::kParked;  // no pod is ever parked
  }

  std::unique_ptr<TestCluster> cluster_;
  kubernetes::Workload processor_;
};

TEST_F(ActuatorOnClusterTest, GrowsByAHundredInOneActionAndLetsJustTheNamedGo) {
  Agent agent(cluster_.get());
  ASSERT_TRUE(AwaitRole(agent));
  ASSERT_TRUE(agent->Apply(BillingTo(100)).ok());
  ASSERT_TRUE(Eventually([&] { return Staying(agent).size() == 100; }));
  const std::vector<std::string> all = Staying(agent);
  Order order = BillingTo(40);
  order.let_go_first.assign(all.begin(), all.begin() + 60);
  ASSERT_TRUE(agent->Apply(order).ok());
  ASSERT_TRUE(Eventually([&] { return Staying(agent).size() == 40; }));
  EXPECT_THAT(Staying(agent), UnorderedElementsAreArray(std::vector(all.begin() + 60, all.end())));
}

// An interrupted order, or a well-meaning person, may leave such costs behind.
TEST_F(ActuatorOnClusterTest, RemovesTheCostsThatPodsHaveFromBefore) {
  Agent agent(cluster_.get());
  ASSERT_TRUE(AwaitRole(agent));
  ASSERT_TRUE(agent->Apply(BillingTo(3)).ok());
  ASSERT_TRUE(Eventually([&] { return Staying(agent).size() == 3; }));
  const std::vector<std::string> names = Staying(agent);
  ASSERT_TRUE(SetDeletionCost(cluster_->admin(), cluster_->name_space(), names[0], -1000).ok());
  Order order = BillingTo(2);
  order.let_go_first = {names[2]};
  ASSERT_TRUE(agent->Apply(order).ok());
  ASSERT_TRUE(Eventually([&] { return Staying(agent).size() == 2; }));
  EXPECT_THAT(Staying(agent), UnorderedElementsAreArray({names[0], names[1]}));
}

TEST_F(ActuatorOnClusterTest, FollowsItsPodsFromStartingToGone) {
  Agent agent(cluster_.get());
  ASSERT_TRUE(AwaitRole(agent));
  ASSERT_TRUE(agent->Apply(BillingTo(2)).ok());
  ASSERT_TRUE(Eventually([&] { return Staying(agent).size() == 2; }));
  const std::string name = Staying(agent)[0];
  EXPECT_EQ(StateOf(agent, name), ReplicaState::kStarting);
  cluster_->SetReady(name);
  EXPECT_TRUE(Eventually([&] { return StateOf(agent, name) == ReplicaState::kReady; }));
  // A finalizer keeps the pod while it goes, as a draining container would.
  const nlohmann::json hold = {{"metadata", {{"finalizers", {"muster.test/hold"}}}}};
  ASSERT_TRUE(cluster_->admin()->Patch(cluster_->PodAddress(name), hold).ok());
  ASSERT_TRUE(cluster_->admin()->Delete(cluster_->PodAddress(name)).ok());
  EXPECT_TRUE(Eventually([&] { return StateOf(agent, name) == ReplicaState::kDraining; }));
  const nlohmann::json let_go = {{"metadata", {{"finalizers", nullptr}}}};
  ASSERT_TRUE(cluster_->admin()->Patch(cluster_->PodAddress(name), let_go).ok());
  EXPECT_TRUE(Eventually([&] { return StateOf(agent, name) == ReplicaState::kParked; }));
}

TEST_F(ActuatorOnClusterTest, WritesNoScaleThatHasChangedSinceItWasRead) {
  // The controller of the workload updates its status now and then, which changes the version, too.
  absl::StatusOr<kubernetes::Scale> read;
  ASSERT_TRUE(Eventually([&] {
    read = ReadScale(cluster_->admin(), processor_);
    return read.ok() && WriteScale(cluster_->admin(), processor_, *read, 1).ok();
  }));
  EXPECT_EQ(WriteScale(cluster_->admin(), processor_, *read, 9).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Told(), 1);
}

TEST_F(ActuatorOnClusterTest, GetsThroughThoughOthersWriteTheSameObject) {
  Agent agent(cluster_.get());
  ASSERT_TRUE(AwaitRole(agent));
  std::atomic<bool> is_over = false;
  std::thread other([&] {
    const kubernetes::Address address{kubernetes::kDeployments, cluster_->name_space(), "processor",
                                      ""};
    for (int i = 0; !is_over; ++i) {
      const nlohmann::json note = {{"metadata", {{"annotations", {{"note", absl::StrCat(i)}}}}}};
      EXPECT_TRUE(cluster_->admin()->Patch(address, note).ok());
    }
  });
  int done = 0;
  for (int i = 1; i <= 10; ++i) {
    const absl::Status status = agent->Apply(BillingTo(i % 3)).status();
    EXPECT_TRUE(status.ok() || absl::IsUnavailable(status)) << status;
    done += status.ok() ? 1 : 0;
  }
  is_over = true;
  other.join();
  EXPECT_GT(done, 0);
  EXPECT_TRUE(agent->Apply(BillingTo(2)).ok());
  EXPECT_EQ(Told(), 2);
}

TEST_F(ActuatorOnClusterTest, NamesEachVerbThatItsRoleLacks) {
  ASSERT_TRUE(
      cluster_->admin()
          ->Update(ScaleAddress(processor_),
                   {{"metadata", {{"name", "processor"}, {"namespace", cluster_->name_space()}}},
                    {"spec", {{"replicas", 2}}}})
          .ok());
  const std::pair<const char*, const char*> lacks[] = {
      {"get", "deployments/scale"},
      {"update", "deployments/scale"},
      {"list", "pods"},
      {"patch", "pods"},
  };
  for (const auto& [verb, resource] : lacks) {
    Agent agent(cluster_.get(), WorkloadKind::kDeployment, verb, resource);
    const std::string named = absl::StrCat("verb '", verb, "' on resource '", resource, "'");
    std::string last;
    EXPECT_TRUE(Eventually([&] {
      const auto pods = ListPods(cluster_->admin(), cluster_->name_space(), "app=processor");
      if (!pods.ok() || pods->size() != 2) return false;
      // Picks a pod that an earlier attempt has not marked.
      const bool is_marked = (*pods)[0].deletion_cost.has_value();
      Order order = BillingTo(1);
      order.let_go_first = {(*pods)[is_marked ? 1 : 0].name};
      const absl::Status status = agent->Apply(order).status();
      last = status.ToString();
      return absl::IsPermissionDenied(status) && last.find(named) != std::string::npos;
    })) << named
        << ": " << last;
    EXPECT_EQ(Told(), 2) << named;
  }
}

TEST_F(ActuatorOnClusterTest, MayActOnNoOtherWorkloadThanItsRoleNames) {
  cluster_->MakeWorkload(WorkloadKind::kDeployment, "foreign");
  Agent agent(cluster_.get());
  ASSERT_TRUE(AwaitRole(agent));
  agent->SetTargets({{"billing", {WorkloadKind::kDeployment, "", "foreign"}}});
  const absl::Status status = agent->Apply(BillingTo(1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()), HasSubstr("deployments/scale 'foreign'"));
}

TEST_F(ActuatorOnClusterTest, ListsPodsWhereItMayNotWatchThem) {
  const base::LogCapture log;
  Agent agent(cluster_.get(), WorkloadKind::kDeployment, "watch", "pods");
  ASSERT_TRUE(AwaitRole(agent));
  ASSERT_TRUE(agent->Apply(BillingTo(2)).ok());
  EXPECT_TRUE(Eventually([&] { return Staying(agent).size() == 2; }));
  EXPECT_TRUE(Eventually([&] {
    const auto lines = log.lines();
    return std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
      return line.find("verb 'watch' on resource 'pods'") != std::string::npos;
    });
  }));
}

TEST_F(ActuatorOnClusterTest, SaysThatATargetsDeploymentIsNotThere) {
  Agent agent(cluster_.get());
  ASSERT_TRUE(AwaitRole(agent));
  ASSERT_TRUE(cluster_->admin()
                  ->Delete({kubernetes::kDeployments, cluster_->name_space(), "processor", ""})
                  .ok());
  EXPECT_TRUE(Eventually([&] { return absl::IsNotFound(agent->Observe("billing").status()); }));
  EXPECT_EQ(agent->Apply(BillingTo(1)).status().code(), absl::StatusCode::kNotFound);
}

// The former leader does not know, or ignores, that it has lost the lead. Its actuator has never
// seen the later token.
TEST_F(ActuatorOnClusterTest, NoOrderOfTheOneBeforeOverwritesALaterOne) {
  Agent agents[] = {Agent(cluster_.get()), Agent(cluster_.get())};
  ASSERT_TRUE(AwaitRole(agents[0]) && AwaitRole(agents[1]));
  base::Clock* const clock = base::RealClock();
  for (int round = 0; round < 10; ++round) {
    const int before = round % 2, after = 1 - before;
    Order old = BillingTo(1, 2 * round + 1);
    old.not_after = clock->Monotonic() + absl::Milliseconds(100);
    std::jthread stubborn([&agents, before, old](const std::stop_token& stop) {
      while (!stop.stop_requested()) agents[before]->Apply(old).status().IgnoreError();
    });
    ASSERT_TRUE(Eventually([&] { return clock->Monotonic() >= old.not_after; }));
    // This order changes the number in every case.
    const Order order = BillingTo(round + 2, 2 * round + 2);
    ASSERT_TRUE(Eventually([&] { return agents[after]->Apply(order).ok(); }));
    for (int look = 0; look < 20; ++look) EXPECT_EQ(Told(), round + 2);
  }
}

}  // namespace
}  // namespace muster::kubernetes_test

namespace muster::actuator::conformance {
namespace {

using kubernetes_test::Agent;
using kubernetes_test::TestCluster;

class ClusterStage final : public Stage {
 public:
  explicit ClusterStage(muster::kubernetes::WorkloadKind kind)
      : workloads_{{"billing", cluster_.MakeWorkload(kind, "processor")},
                   {"mail", cluster_.MakeWorkload(kind, "mailer")}},
        agent_(&cluster_, kind) {
    EXPECT_TRUE(AwaitRole(agent_));
  }

  Actuator* actuator() override { return agent_.get(); }
  std::string target() override { return "billing"; }
  std::string other_target() override { return "mail"; }
  int Told(const std::string& target) override {
    return ReadScale(cluster_.admin(), workloads_.at(target))->replicas;
  }
  bool Await(const std::string& target, int replicas) override {
    return kubernetes_test::Eventually([&] {
      const auto state = agent_->Observe(target);
      return state.ok() && static_cast<int>(state->replicas.size()) == replicas;
    });
  }

 private:
  TestCluster cluster_;
  std::map<std::string, muster::kubernetes::Workload> workloads_;
  Agent agent_;
};

Platform OnCluster(muster::kubernetes::WorkloadKind kind, bool chooses) {
  return Platform({.chooses = chooses}, [kind]() -> std::unique_ptr<Stage> {
    if (!kubernetes_test::HasCluster()) return nullptr;
    return std::make_unique<ClusterStage>(kind);
  });
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Deployment, ActuatorConformance,
                         ::testing::Values(OnCluster(muster::kubernetes::WorkloadKind::kDeployment,
                                                     true)));
INSTANTIATE_TEST_SUITE_P(StatefulSet, ActuatorConformance,
                         ::testing::Values(OnCluster(muster::kubernetes::WorkloadKind::kStatefulSet,
                                                     false)));

}  // namespace muster::actuator::conformance
