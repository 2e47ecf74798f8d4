#include "muster/rpc/grpc_log.h"

#include "gmock/gmock.h"
#include "grpc/support/log.h"
#include "gtest/gtest.h"
#include "tests/fakes/base/log_capture.h"

namespace muster::rpc {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

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

TEST(GrpcLog, IsADetailWhileItsCallerTellsOfFailures) {
  gpr_log_verbosity_init();
  RouteGrpcLog();
  const base::LogCapture log;
  {
    const ScopedGrpcDebugLog quiet;
    gpr_log(GPR_ERROR, "no address was added");
  }
  gpr_log(GPR_ERROR, "the handshake failed");
  EXPECT_THAT(log.lines(),
              Not(Contains(AllOf(HasSubstr("level=warning"), HasSubstr("no address was added")))));
  EXPECT_THAT(log.lines(),
              Contains(AllOf(HasSubstr("level=warning"), HasSubstr("the handshake failed"))));
}

}  // namespace
}  // namespace muster::rpc
