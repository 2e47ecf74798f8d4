// A handler server that is killed.
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/base/victim.h"
#include "tests/fakes/handler/grpc/grpc_fixture.h"

namespace muster::handler::grpc {
namespace {

using ::testing::HasSubstr;

// Says its address, and each item that it takes; answers none.
const base::testing::RegisteredProcess handler_server("handler", [](const std::string&) {
  TestHandlers service([](Talk& talk) {
    talk.Begin();
    while (auto request = talk.Next()) base::testing::Send(request->item().item());
    return ::grpc::Status::OK;
  });
  rpc::ServerOptions options;
  options.addresses = {"localhost:0"};
  const auto server =
      rpc::Server::Start(options, {{v1::HandlerService::service_full_name(), &service}}).value();
  base::testing::Send(server->addresses().front());
  base::testing::AwaitKill();
});

// gRPC calls that Unavailable, too, but no handler said so: the item may be what killed it.
TEST_F(GrpcHandlerTest, TriesAnItemAgainAndChargesItWhenTheServerDiesWithIt) {
  base::testing::KillableProcess process("handler", "");
  options_.address = process.Receive().value();
  std::future<handler::Outcome> outcome = ProcessBeside();
  EXPECT_EQ(process.Receive(), "1/7");
  process.Kill();
  const handler::Outcome charged = outcome.get();
  EXPECT_EQ(charged.kind, Kind::kRetry);
  EXPECT_THAT(charged.why, HasSubstr("cannot be reached"));
}

}  // namespace
}  // namespace muster::handler::grpc
