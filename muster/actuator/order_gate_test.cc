#include "muster/actuator/order_gate.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::actuator {
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

TEST(OrderGateTest, LetsEqualAndHigherTokensIn) {
  OrderGate gate;
  for (const int64_t token :
       {int64_t{0}, int64_t{3}, int64_t{3}, int64_t{4}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_TRUE(gate.Admit(WithToken(token)).ok()) << token;
  }
}

TEST(OrderGateTest, RefusesALowerTokenAndNamesBoth) {
  OrderGate gate;
  ASSERT_TRUE(gate.Admit(WithToken(5)).ok());
  const absl::Status status = gate.Admit(WithToken(4));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'d-7' for target 'billing'"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("token 4 is lower than 5"));
  EXPECT_TRUE(gate.Admit(WithToken(5)).ok());
}

TEST(OrderGateTest, RefusesFewerThanNoneWithoutHeedingTheToken) {
  OrderGate gate;
  Order order = WithToken(9);
  order.replicas = -1;
  EXPECT_EQ(gate.Admit(order).code(), absl::StatusCode::kInvalidArgument);
  order = WithToken(9);
  order.tasks = -1;
  EXPECT_EQ(gate.Admit(order).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(gate.Admit(WithToken(1)).ok());
}

}  // namespace
}  // namespace muster::actuator
