// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/grpc_log.h"

#include "gmock/gmock.h"
#include "grpc/health/v1/health.pb.h"
#include "grpc/support/log.h"
#include "gtest/gtest.h"
#include "tests/fakes/base/log_capture.h"

namespace muster::rpc {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(GrpcLog, GoesToOurs) {
  gpr_log_verbosity_init();  // gRPC does this at its first use
  PrepareGrpc();
  PrepareGrpc();
  const base::LogCapture log;
  gpr_log(GPR_ERROR, "the handshake of %s failed", "a peer");
  EXPECT_THAT(log.lines(), ElementsAre(AllOf(HasSubstr("level=warning msg=gRPC"),
                                             HasSubstr("the handshake of a peer failed"),
                                             HasSubstr("grpc_log_test.cc:"))));
}

// A command that could not connect wrote the same line five times, before its own words.
TEST(GrpcLog, IsNotRepeated) {
  gpr_log_verbosity_init();
  PrepareGrpc();
  const base::LogCapture log(base::kWarning);
  for (int i = 0; i < 5; ++i) gpr_log(GPR_ERROR, "wrong version number");
  gpr_log(GPR_ERROR, "certificate verify failed");
  EXPECT_THAT(log.lines(), ElementsAre(HasSubstr("wrong version number"),
                                       HasSubstr("certificate verify failed")));
}

// Protobuf wrote a line of its own form for each message that it could not read.
TEST(GrpcLog, HasTheComplaintsOfProtobufOnce) {
  PrepareGrpc();
  const base::LogCapture log(base::kWarning);
  grpc::health::v1::HealthCheckRequest request;
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(request.ParseFromString("\x0a\x01\xff"));
  EXPECT_THAT(log.lines(), ElementsAre(AllOf(HasSubstr("msg=protobuf"), HasSubstr("UTF-8"))));
}

TEST(GrpcLog, SaysAgainWhatGoesOnForAMinute) {
  SaidLines said;
  EXPECT_TRUE(said.IsNew("a", absl::Seconds(5)));
  EXPECT_TRUE(said.IsNew("b", absl::Seconds(5)));
  EXPECT_FALSE(said.IsNew("a", absl::Seconds(64)));
  EXPECT_TRUE(said.IsNew("a", absl::Seconds(65)));
  EXPECT_FALSE(said.IsNew("a", absl::Seconds(66)));
}

}  // namespace
}  // namespace muster::rpc
