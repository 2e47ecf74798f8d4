// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/circuit_breaker.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/rpc/limits.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::rpc {
namespace {

class CircuitBreakerTest : public ::testing::Test {
 protected:
  static absl::Status TimedOut() { return absl::DeadlineExceededError("no answer"); }

  base::FakeClock clock_;
  CircuitBreaker breaker_{&clock_};
};

TEST_F(CircuitBreakerTest, LetsCallsThroughToAServerThatAnswers) {
  for (const absl::Status& answer :
       {absl::OkStatus(), absl::UnavailableError("away"), absl::NotFoundError("no batch 7")}) {
    ASSERT_TRUE(breaker_.Admit().ok());
    breaker_.Note(answer);
  }
  EXPECT_TRUE(breaker_.Admit().ok());
}

TEST_F(CircuitBreakerTest, SparesCallersAServerThatLetACallTimeOut) {
  ASSERT_TRUE(breaker_.Admit().ok());
  breaker_.Note(TimedOut());
  const absl::Status spared = breaker_.Admit();
  EXPECT_TRUE(absl::IsUnavailable(spared)) << spared;
  EXPECT_THAT(std::string(spared.message()), ::testing::HasSubstr("it let a call time out"));
  clock_.Advance(kBreakerPause - absl::Milliseconds(1));
  EXPECT_FALSE(breaker_.Admit().ok());
}

TEST_F(CircuitBreakerTest, LetsOneCallFindOutWhetherTheServerStillHangs) {
  ASSERT_TRUE(breaker_.Admit().ok());
  breaker_.Note(TimedOut());
  clock_.Advance(kBreakerPause);
  EXPECT_TRUE(breaker_.Admit().ok());
  EXPECT_FALSE(breaker_.Admit().ok()) << "the others wait for what it finds";
  breaker_.Note(TimedOut());
  EXPECT_FALSE(breaker_.Admit().ok());
  clock_.Advance(kBreakerPause);
  EXPECT_TRUE(breaker_.Admit().ok());
  breaker_.Note(absl::NotFoundError("no batch 7"));
  EXPECT_TRUE(breaker_.Admit().ok());
  EXPECT_TRUE(breaker_.Admit().ok());
}

}  // namespace
}  // namespace muster::rpc
