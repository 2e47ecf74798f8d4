#include "muster/scaling/policy/erlang_c.h"

#include <cmath>

#include "gtest/gtest.h"

namespace muster::scaling::policy {
namespace {

// The textbook's sum, exact for few servers.
double BySum(int servers, double erlangs) {
  double sum = 0, term = 1;
  for (int k = 0; k < servers; ++k) {
    sum += term;
    term *= erlangs / (k + 1);
  }
  const double waiting = term * servers / (servers - erlangs);
  return waiting / (sum + waiting);
}

TEST(ErlangCTest, AgreesWithTheSumForFewServers) {
  for (int servers = 1; servers <= 40; ++servers) {
    for (double share : {0.1, 0.5, 0.9, 0.99}) {
      EXPECT_NEAR(ErlangC(servers, servers * share), BySum(servers, servers * share), 1e-12);
    }
  }
}

TEST(ErlangCTest, IsTheUtilisationForOneServer) { EXPECT_DOUBLE_EQ(ErlangC(1, 0.7), 0.7); }

TEST(ErlangCTest, StaysAProbabilityForTenThousandServers) {
  double last = 0;
  for (double erlangs : {1.0, 5000.0, 9000.0, 9900.0, 9990.0, 9999.9}) {
    const double waiting = ErlangC(10'000, erlangs);
    EXPECT_GE(waiting, last) << erlangs;
    EXPECT_LE(waiting, 1) << erlangs;
    last = waiting;
  }
  EXPECT_GT(last, 0.99);
}

TEST(ErlangCTest, IsCertainWhereTheLoadIsNotBelowTheServers) {
  EXPECT_EQ(ErlangC(10, 10), 1);
  EXPECT_EQ(ErlangC(10, 1e300), 1);
  EXPECT_EQ(ErlangC(10, 0), 0);
  EXPECT_EQ(ErlangC(10, std::nan("")), 0);
}

TEST(ServersForRateTest, IsTheLeastThatKeepsTheRisk) {
  const RateLoad load{10, absl::Seconds(2), absl::Seconds(3), 0.05};
  const auto late = [](int servers) {
    return ErlangC(servers, 20) * std::exp(-(servers - 20.0) * 1 / 2);
  };
  const int servers = ServersForRate(load, 1000);
  EXPECT_LE(late(servers), 0.05);
  EXPECT_GT(late(servers - 1), 0.05);
}

TEST(ServersForRateTest, AsksForMoreWhereNothingMayWait) {
  RateLoad load{10, absl::Seconds(2), absl::Seconds(2), 0.05};
  const int no_wait = ServersForRate(load, 1000);
  load.deadline = absl::Seconds(10);
  EXPECT_GT(no_wait, ServersForRate(load, 1000));
  EXPECT_GT(ServersForRate(load, 1000), 20);
}

TEST(ServersForRateTest, EndsAtTheMost) {
  EXPECT_EQ(ServersForRate({1e9, absl::Seconds(1), absl::Seconds(1), 0.01}, 10'000), 10'000);
  EXPECT_EQ(ServersForRate({0, absl::Seconds(1), absl::Seconds(1), 0.01}, 10), 0);
}

}  // namespace
}  // namespace muster::scaling::policy
