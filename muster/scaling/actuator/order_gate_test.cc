#include "muster/scaling/actuator/order_gate.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::scaling::actuator {
namespace {

using ::testing::HasSubstr;

Order WithToken(int64_t token) {
  Order order;
  order.target = "billing";
  order.decision = "d-7";
  order.replicas = 1;
  order.fencing_token = token;
  return order;
}

class OrderGateTest : public ::testing::Test {
 protected:
  base::FakeClock clock_;
  OrderGate gate_{&clock_};
};

TEST_F(OrderGateTest, LetsEqualAndHigherTokensIn) {
  for (const int64_t token :
       {int64_t{0}, int64_t{3}, int64_t{3}, int64_t{4}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_TRUE(gate_.Admit(WithToken(token)).ok()) << token;
  }
}

TEST_F(OrderGateTest, RefusesALowerTokenAndNamesBoth) {
  ASSERT_TRUE(gate_.Admit(WithToken(5)).ok());
  const absl::Status status = gate_.Admit(WithToken(4));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'d-7' for target 'billing'"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("token 4 is lower than 5"));
  EXPECT_TRUE(gate_.Admit(WithToken(5)).ok());
}

TEST_F(OrderGateTest, RefusesFewerThanNoneWithoutHeedingTheToken) {
  Order order = WithToken(9);
  order.replicas = -1;
  EXPECT_EQ(gate_.Admit(order).code(), absl::StatusCode::kInvalidArgument);
  order = WithToken(9);
  order.tasks = -1;
  EXPECT_EQ(gate_.Admit(order).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(gate_.Admit(WithToken(1)).ok());
}

TEST_F(OrderGateTest, RefusesFromItsMomentOnWithoutHeedingTheToken) {
  Order order = WithToken(9);
  order.not_after = clock_.Monotonic() + absl::Seconds(2);
  clock_.Advance(absl::Seconds(2));
  const absl::Status status = gate_.Admit(order);
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("'d-7' for target 'billing' comes too late"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the lead may have run out"));
  EXPECT_TRUE(gate_.Admit(WithToken(1)).ok());
  order.not_after += absl::Nanoseconds(1);
  EXPECT_TRUE(gate_.Admit(order).ok());
}

}  // namespace
}  // namespace muster::scaling::actuator
