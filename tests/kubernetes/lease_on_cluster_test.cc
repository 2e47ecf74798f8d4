#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/fake_clock.h"
#include "muster/kubernetes/leader_lease.h"
#include "tests/kubernetes/test_cluster.h"

namespace muster::kubernetes_test {
namespace {

using kubernetes::LeaderLease;

// Time is ours, the cluster is real.
class LeaseOnClusterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasCluster()) GTEST_SKIP() << "MUSTER_TEST_KUBECONFIG names no cluster";
    cluster_ = std::make_unique<TestCluster>();
  }

  std::unique_ptr<LeaderLease> NewLease(const std::string& identity) {
    return std::make_unique<LeaderLease>(
        cluster_->admin(),
        kubernetes::LeaderLeaseOptions{
            {cluster_->name_space(), "leader"}, identity, absl::Seconds(4)},
        &clock_);
  }
  bool Holds(LeaderLease* lease) {
    const auto holds = lease->Hold();
    EXPECT_TRUE(holds.ok()) << holds.status();
    return holds.value_or(false);
  }

  base::FakeClock clock_;
  std::unique_ptr<TestCluster> cluster_;
};

TEST_F(LeaseOnClusterTest, OneHoldsItAndTheOtherTakesOverWhenItIsNotRenewed) {
  const auto a = NewLease("a"), b = NewLease("b");
  EXPECT_TRUE(Holds(a.get()));
  EXPECT_FALSE(Holds(b.get()));
  const int64_t first = *a->Token();
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(absl::Seconds(3));
    EXPECT_TRUE(Holds(a.get()));
    EXPECT_FALSE(Holds(b.get()));
  }
  EXPECT_EQ(a->Token(), first);
  clock_.Advance(absl::Seconds(4));
  EXPECT_EQ(a->Token(), std::nullopt);
  EXPECT_TRUE(Holds(b.get()));
  EXPECT_GT(*b->Token(), first);
  EXPECT_FALSE(Holds(a.get()));
}

TEST_F(LeaseOnClusterTest, IsTakenAtOnceWhenItIsReleased) {
  const auto a = NewLease("a"), b = NewLease("b");
  EXPECT_TRUE(Holds(a.get()));
  const int64_t first = *a->Token();
  EXPECT_TRUE(a->Release().ok());
  EXPECT_EQ(a->Token(), std::nullopt);
  EXPECT_TRUE(a->Release().ok());
  EXPECT_TRUE(Holds(b.get()));
  EXPECT_EQ(b->Token(), first + 1);
  EXPECT_TRUE(b->Release().ok());
  EXPECT_TRUE(Holds(b.get()));
  EXPECT_EQ(b->Token(), first + 2);
}

TEST_F(LeaseOnClusterTest, GoesToExactlyOneOfManyHoweverTheyRace) {
  std::vector<std::unique_ptr<LeaderLease>> leases;
  for (int i = 0; i < 8; ++i) leases.push_back(NewLease(absl::StrCat("agent-", i)));
  int64_t last = 0;
  for (int round = 0; round < 5; ++round) {
    std::vector<std::thread> threads;
    for (const auto& lease : leases) threads.emplace_back([this, &lease] { Holds(lease.get()); });
    for (std::thread& thread : threads) thread.join();
    int holders = 0;
    for (const auto& lease : leases) {
      if (!lease->Token().has_value()) continue;
      ++holders;
      EXPECT_GT(*lease->Token(), last);
      last = *lease->Token();
      EXPECT_TRUE(lease->Release().ok());
    }
    EXPECT_EQ(holders, 1) << "round " << round;
  }
}

TEST_F(LeaseOnClusterTest, IsReadAsItWasWritten) {
  const kubernetes::LeaseName name{cluster_->name_space(), "leader"};
  EXPECT_EQ(ReadLease(cluster_->admin(), name).status().code(), absl::StatusCode::kNotFound);
  const auto a = NewLease("a");
  EXPECT_TRUE(Holds(a.get()));
  const auto record = ReadLease(cluster_->admin(), name);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->holder, "a");
  EXPECT_EQ(record->transitions, 1);
  EXPECT_EQ(record->duration, absl::Seconds(4));
  EXPECT_EQ(record->renewed, "2011-11-11T00:00:00.000000Z");
}

}  // namespace
}  // namespace muster::kubernetes_test
