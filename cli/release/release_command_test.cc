// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/proto_time.h"
#include "muster/bus/local/local_buses.h"
#include "muster/bus/roster.h"
#include "muster/release/releases.h"
#include "muster/rpc/channel.h"
#include "nlohmann/json.hpp"
#include "services/initiator/api/release_service.h"
#include "tests/fakes/cli/client_fixture.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

// An initiator that serves releases, and hears the heartbeats of processors.
class ReleaseCommandTest : public ClientTest {
 protected:
  ReleaseCommandTest() {
    rpc::ServerOptions options;
    options.addresses = {"localhost:0"};
    server_ =
        rpc::Server::Start(options, {{v1::ReleaseService::service_full_name(), &service_}}).value();
  }

  Done RunRelease(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "release");
    arguments.insert(arguments.end(), {"--server", server_->addresses().front()});
    return Run(std::move(arguments));
  }
  // A heartbeat of processor `name`, parked now for `release`.
  v1::Heartbeat Parked(const std::string& name, const std::string& release, int64_t epoch) {
    v1::Heartbeat heartbeat;
    heartbeat.mutable_instance()->set_role(v1::ROLE_PROCESSOR);
    heartbeat.mutable_instance()->set_instance(name);
    heartbeat.set_sequence(1);
    heartbeat.mutable_standby()->set_release(release);
    heartbeat.mutable_standby()->set_epoch(epoch);
    *heartbeat.mutable_standby()->mutable_parked() = base::ToProto(clock_.Now());
    return heartbeat;
  }
  void Leaves(v1::Heartbeat heartbeat) {
    heartbeat.set_sequence(2);
    *heartbeat.mutable_standby()->mutable_left() = base::ToProto(clock_.Now());
    roster_.OnHeartbeat(heartbeat);
  }

  sync::testing::MemorySyncStore store_;
  bus::local::LocalTriggerBus bus_;
  bus::Roster roster_{&clock_};
  release::Releases releases_{&store_, &bus_, "initiator-1", &clock_};
  initiator::api::ReleaseService service_{&releases_, &roster_};
  std::unique_ptr<rpc::Server> server_;
};

TEST_F(ReleaseCommandTest, ReleasesAndSaysHowManyWereParked) {
  roster_.OnHeartbeat(Parked("p-1", "go", 1));
  roster_.OnHeartbeat(Parked("p-2", "other", 1));
  const Done done = RunRelease({"go"});
  EXPECT_EQ(done.code, kOk) << done.err;
  EXPECT_EQ(done.out, "release go: epoch 1 released 2011-11-11T00:00:00.000Z; 1 was parked\n");
  EXPECT_TRUE(releases_.Get("go")->is_open());
}

TEST_F(ReleaseCommandTest, ArmsItAgain) {
  EXPECT_EQ(RunRelease({"go"}).code, kOk);
  EXPECT_EQ(RunRelease({"go", "--arm"}).out, "release go: epoch 2 armed; 0 left; 0 parked\n");
  EXPECT_FALSE(releases_.Get("go")->is_open());
}

TEST_F(ReleaseCommandTest, ShowsWhoIsParkedAndWhoLeftAndWhenTheLastOneDid) {
  const v1::Heartbeat one = Parked("p-1", "go", 1), two = Parked("p-2", "go", 1),
                      stuck = Parked("p-3", "go", 1);
  for (const v1::Heartbeat& heartbeat : {one, two, stuck}) roster_.OnHeartbeat(heartbeat);
  EXPECT_EQ(RunRelease({"go"}).code, kOk);
  clock_.Advance(absl::Milliseconds(5));
  Leaves(one);
  clock_.Advance(absl::Milliseconds(7));
  Leaves(two);
  const v1::Heartbeat late = Parked("p-4", "go", 1);
  clock_.Advance(absl::Seconds(1));
  Leaves(late);  // it did not wait
  const Done done = RunRelease({"go", "--status"});
  EXPECT_THAT(done.out, HasSubstr("released 2011-11-11T00:00:00.000Z; 3 left, the last after 12ms; "
                                  "1 parked\n"));
  EXPECT_THAT(done.out, ContainsRegex("INSTANCE +STATE +EPOCH +PARKED +LEFT +AFTER\n"));
  EXPECT_THAT(done.out, ContainsRegex("p-1 +left +1 .* +5ms\n"));
  EXPECT_THAT(done.out, ContainsRegex("p-3 +parked +1 .* - +-\n"));
  EXPECT_THAT(done.out, ContainsRegex("p-4 +left +1 .* -\n"));
  clock_.Advance(absl::Minutes(2));  // all of them have died
  EXPECT_THAT(RunRelease({"go", "--status"}).out, HasSubstr("; 0 left; 0 parked\n"));
}

TEST_F(ReleaseCommandTest, ShowsItForPrograms) {
  const v1::Heartbeat one = Parked("p-1", "go", 1);
  roster_.OnHeartbeat(one);
  const auto before = nlohmann::json::parse(RunRelease({"go", "--status", "-o", "json"}).out);
  EXPECT_EQ(before["armed_epoch"], 1);
  EXPECT_EQ(before["released_epoch"], 0);
  EXPECT_TRUE(before["released"].is_null());
  EXPECT_TRUE(before["last_left_after_seconds"].is_null());
  EXPECT_EQ(before["workers"][0]["state"], "parked");
  EXPECT_EQ(RunRelease({"go", "-o", "yaml"}).code, kOk);
  clock_.Advance(absl::Milliseconds(250));
  Leaves(one);
  const auto after = nlohmann::json::parse(RunRelease({"go", "--status", "-o", "json"}).out);
  EXPECT_EQ(after["workers_left"], 1);
  EXPECT_EQ(after["last_left_after_seconds"], 0.25);
  EXPECT_EQ(after["workers"][0]["left_after_seconds"], 0.25);
}

TEST_F(ReleaseCommandTest, RefusesWhatMakesNoSense) {
  EXPECT_EQ(RunRelease({"go", "--status", "--arm"}).code, kUsage);
  EXPECT_EQ(Run({"release"}).code, kUsage);
  const Done bad = RunRelease({"a b"});
  EXPECT_EQ(bad.code, kError);
  EXPECT_THAT(bad.err, HasSubstr("'a b' is no name of a release"));
  EXPECT_THAT(Run({"release", "go"}).err, HasSubstr("--server"));
  store_.Overwrite(release::kReleasesKey, "\xff\xff");
  EXPECT_EQ(RunRelease({"go", "--status"}).code, kDamaged);
}

TEST_F(ReleaseCommandTest, AnEpochThatIsNamedBoundsTheCall) {
  v1::ReleaseRequest request;
  request.set_name("go");
  request.set_epoch(2);
  const auto stub = v1::ReleaseService::NewStub(rpc::OpenChannel(server_->addresses()[0]).value());
  const auto release = [&] {
    rpc::CallContext context(absl::Minutes(1));
    v1::ReleaseResponse response;
    return rpc::FromGrpc(stub->Release(&context, request, &response)).code();
  };
  EXPECT_EQ(release(), absl::StatusCode::kFailedPrecondition);
  request.set_epoch(0);
  EXPECT_EQ(release(), absl::StatusCode::kInvalidArgument);
  request.set_epoch(1);
  EXPECT_EQ(release(), absl::StatusCode::kOk);
}

}  // namespace
}  // namespace muster::cli
