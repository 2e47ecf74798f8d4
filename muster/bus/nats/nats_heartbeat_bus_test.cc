// SPDX-License-Identifier: Apache-2.0

// Runs on each server that NatsServer::Programs names.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/bus/heartbeat_bus.h"
#include "muster/bus/nats/nats_buses.h"
#include "tests/conformance/bus/heartbeat_bus_conformance.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/nats/nats_server.h"

namespace muster::bus::conformance {
namespace {

// A bus with its own server and connection, which it must not outlive.
class HeartbeatBusWithServer final : public HeartbeatBus {
 public:
  explicit HeartbeatBusWithServer(const std::string& program)
      : server_(program),
        connection_(muster::nats::Connection::Open(server_.url(), {}).value()),
        bus_(std::make_unique<bus::nats::NatsHeartbeatBus>(connection_.get())) {}

  absl::Status Publish(const v1::Heartbeat& heartbeat) override { return bus_->Publish(heartbeat); }
  absl::StatusOr<std::unique_ptr<Subscription>> Subscribe(Subscriber subscriber) override {
    return bus_->Subscribe(std::move(subscriber));
  }

 private:
  muster::nats::testing::NatsServer server_;
  const std::unique_ptr<muster::nats::Connection> connection_;
  const std::unique_ptr<bus::nats::NatsHeartbeatBus> bus_;
};

std::vector<HeartbeatBusEngine> HeartbeatEngines() {
  std::vector<HeartbeatBusEngine> engines;
  for (const std::string& program : muster::nats::testing::NatsServer::Programs()) {
    engines.emplace_back([program] { return std::make_unique<HeartbeatBusWithServer>(program); });
  }
  return engines;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Nats, HeartbeatBusConformance, ::testing::ValuesIn(HeartbeatEngines()));

}  // namespace muster::bus::conformance

namespace muster::bus::nats {
namespace {

using bus::conformance::From;
using bus::conformance::HeartbeatRecorder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The connection and the bus of one of several processes.
struct HeartbeatProcess {
  explicit HeartbeatProcess(const std::string& url, const std::string& installation = "")
      : connection(muster::nats::Connection::Open(url, {}).value()),
        bus(connection.get(), installation) {}

  const std::unique_ptr<muster::nats::Connection> connection;
  NatsHeartbeatBus bus;
};

class NatsHeartbeatBusTest : public ::testing::TestWithParam<std::string> {
 protected:
  muster::nats::testing::NatsServer server_{GetParam()};
};

TEST_P(NatsHeartbeatBusTest, ReachesEveryProcess) {
  HeartbeatProcess sender(server_.url()), first(server_.url()), second(server_.url());
  HeartbeatRecorder a, b;
  const auto of_a = first.bus.Subscribe(a.Subscriber()).value();
  const auto of_b = second.bus.Subscribe(b.Subscriber()).value();
  ASSERT_TRUE(sender.bus.Publish(From("p")).ok());
  a.Await("p");
  b.Await("p");
}

TEST_P(NatsHeartbeatBusTest, HearsNoInstanceOfAnotherInstallation) {
  HeartbeatProcess ours(server_.url(), "local/muster");
  HeartbeatRecorder ear;
  const auto subscription = ours.bus.Subscribe(ear.Subscriber()).value();
  for (const char* other : {"acme/muster", "local/acme", "acme/acme"}) {
    HeartbeatProcess theirs(server_.url(), other);
    ASSERT_TRUE(theirs.bus.Publish(From(other)).ok());
  }
  HeartbeatProcess another_of_ours(server_.url(), "local/muster");
  ASSERT_TRUE(another_of_ours.bus.Publish(From("ours")).ok());
  EXPECT_EQ(ear.Await("ours").instance().installation(), "local/muster");
  EXPECT_THAT(ear.heard(), ElementsAre("ours"));
  EXPECT_EQ(ours.bus.malformed(), 0);
}

// One service of an installation is upgraded before the others.
TEST_P(NatsHeartbeatBusTest, AnEarlierMusterThatNamesNoInstallationHearsAndIsHeard) {
  HeartbeatProcess earlier(server_.url()), upgraded(server_.url(), "local/muster");
  HeartbeatRecorder a, b;
  const auto of_a = earlier.bus.Subscribe(a.Subscriber()).value();
  const auto of_b = upgraded.bus.Subscribe(b.Subscriber()).value();
  ASSERT_TRUE(earlier.bus.Publish(From("earlier")).ok());
  ASSERT_TRUE(upgraded.bus.Publish(From("upgraded")).ok());
  for (HeartbeatRecorder* ear : {&a, &b}) {
    ear->Await("earlier");
    ear->Await("upgraded");
  }
}

TEST_P(NatsHeartbeatBusTest, NamesRoleAndInstanceInTheSubject) {
  HeartbeatProcess process(server_.url());
  base::Mutex mu;
  base::CondVar changed;
  std::vector<std::string> subjects;
  const auto subscription = process.connection
                                ->Subscribe("muster.heartbeat.*.*",
                                            [&](const muster::nats::Incoming& message) {
                                              base::MutexLock lock(&mu);
                                              subjects.push_back(message.subject);
                                              changed.NotifyAll();
                                            })
                                .value();
  v1::Heartbeat agent = From("no token.*");
  agent.mutable_instance()->set_role(v1::ROLE_SCALING_AGENT);
  ASSERT_TRUE(process.bus.Publish(From("p-1")).ok());
  ASSERT_TRUE(process.bus.Publish(agent).ok());
  base::MutexLock lock(&mu);
  while (subjects.size() < 2) changed.Wait(&mu);
  EXPECT_THAT(subjects, ElementsAre("muster.heartbeat.processor.p-1",
                                    "muster.heartbeat.scaling_agent.no=20token=2E=2A"));
}

TEST_P(NatsHeartbeatBusTest, IgnoresWhatIsNoHeartbeatAndSaysSoOnce) {
  HeartbeatProcess process(server_.url());
  const base::LogCapture log(base::kWarning);
  HeartbeatRecorder ear;
  const auto subscription = process.bus.Subscribe(ear.Subscriber()).value();
  const std::string too_long(bus::kMaxHeartbeatBytes + 1, '\0');
  for (const std::string& bytes : {std::string(), std::string("\xff noise"), too_long}) {
    ASSERT_TRUE(
        process.connection->Publish({.subject = "muster.heartbeat.x.y", .data = bytes}).ok());
  }
  ASSERT_TRUE(process.bus.Publish(From("real")).ok());
  ear.Await("real");
  EXPECT_THAT(ear.heard(), ElementsAre("real"));
  EXPECT_EQ(process.bus.malformed(), 3);
  EXPECT_THAT(log.lines(), ElementsAre(HasSubstr("muster.heartbeat.x.y")));
}

TEST_P(NatsHeartbeatBusTest, RefusesAHeartbeatThatIsTooLong) {
  HeartbeatProcess process(server_.url());
  v1::Heartbeat heartbeat = From("p");
  heartbeat.add_jobs()->set_job(std::string(bus::kMaxHeartbeatBytes, 'j'));
  EXPECT_TRUE(absl::IsInvalidArgument(process.bus.Publish(heartbeat)));
}

TEST_P(NatsHeartbeatBusTest, OneThatIsFullLosesAJobForTheNameOfTheInstallation) {
  HeartbeatProcess process(server_.url(), "local/muster");
  HeartbeatRecorder ear;
  const auto subscription = process.bus.Subscribe(ear.Subscriber()).value();
  v1::Heartbeat full = From("full");
  full.add_jobs()->set_job("first");
  std::string* const last = full.add_jobs()->mutable_job();
  while (full.ByteSizeLong() < bus::kMaxHeartbeatBytes) last->push_back('j');
  ASSERT_TRUE(process.bus.Publish(full).ok());
  const v1::Heartbeat heard = ear.Await("full");
  ASSERT_EQ(heard.jobs_size(), 1);
  EXPECT_EQ(heard.jobs(0).job(), "first");
}

TEST_P(NatsHeartbeatBusTest, LosesHeartbeatsWithoutAServerAndIsHeardAgainAfterwards) {
  HeartbeatProcess process(server_.url());
  HeartbeatRecorder ear;
  const auto subscription = process.bus.Subscribe(ear.Subscriber()).value();
  EXPECT_TRUE(process.bus.CanReceive());
  server_.Kill();
  const absl::Status lost = process.bus.Publish(From("lost"));
  EXPECT_TRUE(absl::IsUnavailable(lost)) << lost;
  EXPECT_FALSE(process.bus.CanReceive());
  server_.Restart();
  while (!process.bus.Publish(From("back")).ok()) {
  }
  ear.Await("back");
  EXPECT_TRUE(process.bus.CanReceive());
}

TEST_P(NatsHeartbeatBusTest, HearsNobodyWhileItsServerHangs) {
  HeartbeatProcess process(server_.url());
  EXPECT_TRUE(process.bus.CanReceive());
  server_.Freeze();
  EXPECT_TRUE(process.connection->connected()) << "as far as nats.c knows";
  EXPECT_FALSE(process.bus.CanReceive());
  server_.Thaw();
  while (!process.bus.CanReceive()) {
  }
}

INSTANTIATE_TEST_SUITE_P(Servers, NatsHeartbeatBusTest,
                         ::testing::ValuesIn(muster::nats::testing::NatsServer::Programs()),
                         [](const auto& server) { return absl::StrCat("Server", server.index); });

}  // namespace
}  // namespace muster::bus::nats
