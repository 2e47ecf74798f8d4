// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/grpc_log.h"

#include "gmock/gmock.h"
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
  RouteGrpcLog();
  RouteGrpcLog();
  const base::LogCapture log;
  gpr_log(GPR_ERROR, "the handshake of %s failed", "a peer");
  EXPECT_THAT(log.lines(), ElementsAre(AllOf(HasSubstr("level=warning msg=gRPC"),
                                             HasSubstr("the handshake of a peer failed"),
                                             HasSubstr("grpc_log_test.cc:"))));
}

}  // namespace
}  // namespace muster::rpc
