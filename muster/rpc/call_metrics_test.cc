// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/v1/job_service.grpc.pb.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/rpc/rpc_fixture.h"
#include "tests/fakes/telemetry/shown.h"

namespace muster::rpc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using CallMetricsTest = RpcTest;

TEST_F(CallMetricsTest, MeasuresCallsByMethodAndCode) {
  telemetry::Registry registry;
  ServerOptions options;
  options.metrics = &registry;
  queues_.answer = absl::NotFoundError("no such queue");
  queues_.answered_so = 1;
  Start(options);
  const auto channel = Connect();
  EXPECT_FALSE(GetStats(channel).ok());
  EXPECT_TRUE(GetStats(channel).ok());
  EXPECT_TRUE(GetStats(channel).ok());
  const std::string calls =
      "rpc_server_call_duration_seconds_count{method=\"muster.v1.QueueService/"
      "GetQueueStats\",code=";
  const auto count = [&](const char* code) {
    return telemetry::Shown(registry, absl::StrCat(calls, "\"", code, "\"}"));
  };
  while (count("OK") != 2) base::LetOthersRun();  // measured after the answer is sent
  EXPECT_EQ(count("NOT_FOUND"), 1);
  EXPECT_EQ(count("CANCELLED"), std::nullopt) << "calls that never came are none";
}

// A client may name any method: such names must not become labels.
TEST_F(CallMetricsTest, MeasuresCallsOfUnknownServicesAsOthers) {
  telemetry::Registry registry;
  ServerOptions options;
  options.metrics = &registry;
  options.otherwise = [] { return absl::UnavailableError("not yet"); };
  Start(options);
  CallContext context(kLong);
  v1::ListJobsResponse response;
  EXPECT_FALSE(v1::JobService::NewStub(Connect())->ListJobs(&context, {}, &response).ok());
  server_->Drain(absl::ZeroDuration());
  EXPECT_THAT(registry.Scrape(), Not(HasSubstr("JobService")));
}

}  // namespace
}  // namespace muster::rpc
