// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/health.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/queue-gateway/serving_state.h"

namespace muster::queue_gateway {
namespace {

class HealthTest : public ::testing::Test {
 protected:
  std::string Ask(const std::string& target, const std::string& method = "GET") {
    http::Request request;
    request.method = method;
    request.target = target;
    const http::Reply reply = AnswerHealth(request, state_);
    return absl::StrCat(reply.status, " ", reply.body);
  }

  int failures_ = 0;
  ServingState state_{[this] { ++failures_; }};
};

TEST_F(HealthTest, IsAliveAtOnceAndReadyWhenItsStoresAreOpen) {
  EXPECT_EQ(Ask("/healthz"), "200 alive\n");
  EXPECT_EQ(Ask("/readyz"), "503 waiting for its stores\n");
  state_.Open();
  EXPECT_EQ(Ask("/readyz"), "200 ready\n");
  EXPECT_EQ(Ask("/readyz", "HEAD"), "200 ready\n");
}

TEST_F(HealthTest, IsNotReadyWhileItsServerIsAway) {
  state_.Open();
  state_.Connected(false);
  EXPECT_EQ(Ask("/readyz"), "503 without its NATS server\n");
  EXPECT_EQ(Ask("/healthz"), "200 alive\n");
  state_.Connected(true);
  EXPECT_EQ(Ask("/readyz"), "200 ready\n");
}

TEST_F(HealthTest, IsNotReadyOnceItsDiskTakesNothingMore) {
  state_.Open();
  EXPECT_FALSE(state_.only_reads().stop_requested());
  state_.OnlyRead(absl::UnavailableError("the disk is full"));
  state_.OnlyRead(absl::UnavailableError("the disk is full"));
  EXPECT_TRUE(state_.only_reads().stop_requested());
  EXPECT_EQ(Ask("/readyz"), "503 only reads: its disk is full, or fails\n");
  EXPECT_EQ(Ask("/healthz"), "200 alive\n");
  EXPECT_EQ(failures_, 0) << "it goes on";
}

TEST_F(HealthTest, IsNotReadyAgainOnceItDrainsOrFailed) {
  state_.Open();
  state_.Drain();
  EXPECT_EQ(Ask("/readyz"), "503 draining\n");
  state_.Fail(absl::UnavailableError("first"));
  state_.Fail(absl::UnavailableError("second"));
  EXPECT_EQ(Ask("/readyz"), "503 failed\n");
  EXPECT_EQ(failures_, 1);
  EXPECT_EQ(state_.failure()->message(), "first");
}

TEST_F(HealthTest, AnswersNothingElse) {
  EXPECT_EQ(Ask("/devstoreaccount1?comp=list").substr(0, 3), "404");
  EXPECT_EQ(Ask("/readyz", "POST").substr(0, 3), "405");
}

}  // namespace
}  // namespace muster::queue_gateway
