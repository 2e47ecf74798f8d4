// SPDX-License-Identifier: Apache-2.0

// On a real server on loopback.
#include "services/host/mesh_service.h"

#include <atomic>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/proto_time.h"
#include "muster/bus/heartbeat_sender.h"
#include "muster/bus/local/local_buses.h"
#include "muster/bus/roster.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/bus/mesh_fixture.h"

namespace muster::host {
namespace {

using bus::Heartbeat;
using bus::Instance;
using ::testing::ElementsAre;

class MeshServiceTest : public ::testing::Test {
 protected:
  MeshServiceTest() {
    rpc::ServerOptions options;
    options.addresses = {"localhost:0"};
    server_ =
        rpc::Server::Start(options, {{v1::MeshService::service_full_name(), &service_}}).value();
    stub_ = v1::MeshService::NewStub(rpc::OpenChannel(server_->addresses().front()).value());
  }

  absl::StatusOr<v1::ListInstancesResponse> List(v1::Role role, bool with_load) {
    rpc::CallContext context(absl::Minutes(2));
    v1::ListInstancesRequest request;
    request.set_role(role);
    request.set_with_load(with_load);
    v1::ListInstancesResponse response;
    const grpc::Status status = stub_->ListInstances(&context, request, &response);
    if (!status.ok()) return rpc::FromGrpc(status);
    return response;
  }

  // A bus that can be out of reach.
  class TestBus final : public bus::HeartbeatBus {
   public:
    absl::Status Publish(const v1::Heartbeat&) override { return absl::OkStatus(); }
    absl::StatusOr<std::unique_ptr<Subscription>> Subscribe(Subscriber) override {
      return std::make_unique<Subscription>();
    }
    bool CanReceive() override { return can_receive_; }

    std::atomic<bool> can_receive_{true};
  };

  base::FakeClock clock_;
  bus::Roster roster_{&clock_};
  TestBus bus_;
  MeshService service_{&roster_, &bus_};
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<v1::MeshService::Stub> stub_;
};

TEST_F(MeshServiceTest, ListsInstancesAndTheirLoadsWhenAsked) {
  v1::Heartbeat heartbeat = Heartbeat(v1::ROLE_PROCESSOR, "p", 7);
  heartbeat.mutable_instance()->set_address("localhost:7701");
  heartbeat.add_jobs()->set_job("retail");
  roster_.OnHeartbeat(heartbeat);
  roster_.OnHeartbeat(Heartbeat(v1::ROLE_CONTROLLER, "c", 1));
  const auto all = List(v1::ROLE_UNSPECIFIED, false);
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->instances_size(), 2);
  EXPECT_EQ(all->instances(0).info().address(), "localhost:7701");
  EXPECT_EQ(base::FromProto(all->instances(0).last_heartbeat()), clock_.Now());
  EXPECT_FALSE(all->instances(0).has_heartbeat());
  const auto processors = List(v1::ROLE_PROCESSOR, true);
  ASSERT_EQ(processors->instances_size(), 1);
  EXPECT_EQ(processors->instances(0).heartbeat().jobs(0).job(), "retail");
}

TEST_F(MeshServiceTest, SaysWhoIsLeaving) {
  roster_.OnHeartbeat(Heartbeat(v1::ROLE_PROCESSOR, "p", 1));
  clock_.Advance(4 * bus::kHeartbeatInterval);
  EXPECT_TRUE(List(v1::ROLE_PROCESSOR, false)->instances(0).leaving());
}

TEST_F(MeshServiceTest, SaysThatItHearsNobodyWithoutAConnection) {
  roster_.OnHeartbeat(Heartbeat(v1::ROLE_PROCESSOR, "p", 1));
  EXPECT_FALSE(List(v1::ROLE_UNSPECIFIED, false)->disconnected());
  bus_.can_receive_ = false;
  const auto last_known = List(v1::ROLE_UNSPECIFIED, false);
  EXPECT_TRUE(last_known->disconnected());
  EXPECT_EQ(last_known->instances_size(), 1);
}

TEST_F(MeshServiceTest, RefusesARoleThatThereIsNot) {
  const absl::Status status = List(static_cast<v1::Role>(99), false).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(rpc::Violations(status).at(0).field, "role");
}

TEST_F(MeshServiceTest, LeavesLoadsOutThatNoAnswerHasRoomFor) {
  for (size_t i = 0; i <= bus::kMaxLoadBytes / 60'000; ++i) {
    v1::Heartbeat heartbeat = Heartbeat(v1::ROLE_PROCESSOR, absl::StrCat("p", i), 1);
    heartbeat.add_jobs()->set_job(std::string(60'000, 'j'));
    roster_.OnHeartbeat(heartbeat);
  }
  const auto all = List(v1::ROLE_UNSPECIFIED, true);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_GT(all->instances_size(), 10);
  EXPECT_FALSE(all->instances(0).has_heartbeat());
}

// The parts are connected as in a service's main().
TEST_F(MeshServiceTest, TheInstanceThatAnswersIsAmongThoseThatItHears) {
  bus::local::LocalHeartbeatBus bus;
  const auto subscription =
      bus.Subscribe([this](const v1::Heartbeat& heartbeat) { roster_.OnHeartbeat(heartbeat); })
          .value();
  bus::HeartbeatSender self(Instance(v1::ROLE_INITIATOR, "self"), nullptr, &bus, &roster_, &clock_);
  bus::HeartbeatSender other(Instance(v1::ROLE_PROCESSOR, "other"), nullptr, &bus, nullptr,
                             &clock_);
  self.Start();
  other.Start();
  clock_.AwaitSleepers(2);
  EXPECT_EQ(List(v1::ROLE_UNSPECIFIED, false)->instances_size(), 2);
  other.Leave();
  EXPECT_TRUE(List(v1::ROLE_PROCESSOR, false)->instances(0).leaving());
  self.Leave();
}

}  // namespace
}  // namespace muster::host
