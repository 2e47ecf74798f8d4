// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/actuator/kubernetes/kubernetes_actuator.h"
#include "muster/actuator/kubernetes/pod_cache.h"
#include "muster/base/mutex.h"
#include "muster/kubernetes/object_watch.h"
#include "muster/kubernetes/workload.h"
#include "tests/kubernetes/relay.h"
#include "tests/kubernetes/test_cluster.h"

namespace muster::kubernetes_test {
namespace {

using kubernetes::WorkloadKind;

constexpr absl::string_view kLoopback = "https://127.0.0.1:";

// Counts the reports that it receives.
class Counts final : public kubernetes::WatchListener {
 public:
  void OnAll(const std::vector<nlohmann::json>& objects) override {
    base::MutexLock lock(&mu_);
    ++lists_;
    names_.clear();
    for (const auto& object : objects) names_.insert(kubernetes::PodOf(object).name);
  }
  void OnChanged(const nlohmann::json& object) override {
    base::MutexLock lock(&mu_);
    names_.insert(kubernetes::PodOf(object).name);
  }
  void OnGone(const nlohmann::json& object) override {
    base::MutexLock lock(&mu_);
    names_.erase(kubernetes::PodOf(object).name);
  }
  void OnCurrent() override {}
  void OnTrouble(const absl::Status& why) override {
    base::MutexLock lock(&mu_);
    ++troubles_;
  }

  int lists() const {
    base::MutexLock lock(&mu_);
    return lists_;
  }
  int troubles() const {
    base::MutexLock lock(&mu_);
    return troubles_;
  }
  int pods() const {
    base::MutexLock lock(&mu_);
    return static_cast<int>(names_.size());
  }

 private:
  mutable base::Mutex mu_;
  std::set<std::string> names_ ABSL_GUARDED_BY(mu_);
  int lists_ ABSL_GUARDED_BY(mu_) = 0;
  int troubles_ ABSL_GUARDED_BY(mu_) = 0;
};

// A real API server behind a connection that breaks.
class FaultsOnClusterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasCluster()) GTEST_SKIP() << "MUSTER_TEST_KUBECONFIG names no cluster";
    cluster_ = std::make_unique<TestCluster>();
    kubernetes::Access access = cluster_->admin_access();
    int port = 0;
    if (!absl::StartsWith(access.server, kLoopback) ||
        !absl::SimpleAtoi(access.server.substr(kLoopback.size()), &port)) {
      GTEST_SKIP() << "its server is not on 127.0.0.1";
    }
    relay_ = std::make_unique<Relay>(port);
    access.server = absl::StrCat(std::string(kLoopback), relay_->port());
    client_ = kubernetes::Client::Open(access, base::RealClock(),
                                       {.attempt_limit = absl::Seconds(1), .max_attempts = 1})
                  .value();
    processor_ = cluster_->MakeWorkload(WorkloadKind::kDeployment, "processor");
  }

  actuator::kubernetes::Options MakeOptions() const {
    actuator::kubernetes::Options options;
    options.targets = {{"billing", processor_}};
    return options;
  }
  // Goes directly to the server, past the relay.
  void SetScale(int replicas) {
    EXPECT_TRUE(Eventually([&] {
      const auto scale = ReadScale(cluster_->admin(), processor_);
      return scale.ok() && WriteScale(cluster_->admin(), processor_, *scale, replicas).ok();
    }));
  }

  std::unique_ptr<TestCluster> cluster_;
  std::unique_ptr<Relay> relay_;
  std::unique_ptr<kubernetes::Client> client_;
  kubernetes::Workload processor_;
};

TEST_F(FaultsOnClusterTest, AWatchGoesOnWhereItWasCutWithoutAnotherList) {
  Counts counts;
  kubernetes::ObjectWatch watch(client_.get(), {kubernetes::kPods, cluster_->name_space(), "", ""},
                                "app=processor", &counts, base::RealClock());
  std::jthread thread([&](const std::stop_token& stop) { watch.Run(stop); });
  for (int pods = 1; pods <= 4; ++pods) {
    SetScale(pods);
    EXPECT_TRUE(Eventually([&] { return counts.pods() == pods; })) << pods;
    const int troubles = counts.troubles();
    relay_->Cut();
    EXPECT_TRUE(Eventually([&] { return counts.troubles() > troubles; })) << pods;
  }
  // The watch also reports the pods that went while the connection was cut.
  SetScale(0);
  EXPECT_TRUE(Eventually([&] { return counts.pods() == 0; }));
  EXPECT_EQ(counts.lists(), 1);
}

TEST_F(FaultsOnClusterTest, AServerThatHangsIsUnavailableUntilItIsBack) {
  actuator::kubernetes::KubernetesActuator actuator(client_.get(), MakeOptions(),
                                                    base::RealClock());
  ASSERT_TRUE(actuator.Observe("billing").ok());
  relay_->Block();
  EXPECT_EQ(actuator.Observe("billing").status().code(), absl::StatusCode::kUnavailable);
  actuator::Order order;
  order.target = "billing";
  order.replicas = 2;
  EXPECT_EQ(actuator.Apply(order).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReadScale(cluster_->admin(), processor_)->replicas, 0);
  relay_->Unblock();
  EXPECT_TRUE(Eventually([&] { return actuator.Apply(order).ok(); }));
  EXPECT_TRUE(Eventually([&] {
    const auto state = actuator.Observe("billing");
    return state.ok() && state->replicas.size() == 2;
  }));
}

// The watch's thread waits in the middle of a request that will never be answered.
TEST_F(FaultsOnClusterTest, AWatchOfAServerThatHangsEndsAtOnce) {
  auto pods = std::make_unique<actuator::kubernetes::PodCache>(
      client_.get(), cluster_->name_space(), "app=processor", base::RealClock());
  EXPECT_TRUE(Eventually([&] { return pods->Current().has_value(); }));
  relay_->Block();
  pods.reset();
}

}  // namespace
}  // namespace muster::kubernetes_test
