// Against each server that NatsServer::Programs names.
#include "muster/bus/nats/nats_trigger_bus.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/bus/work_detected.h"
#include "tests/conformance/bus/trigger_bus_conformance.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/nats/nats_server.h"

namespace muster::bus::conformance {
namespace {

// A bus with a server and a connection of its own.
class BusWithServer final : public TriggerBus {
 public:
  explicit BusWithServer(const std::string& program) : server_(program) {}

  absl::Status Publish(const InterRoleCommunicationEvent& event) override {
    return bus_.Publish(event);
  }
  absl::StatusOr<std::unique_ptr<Subscription>> Subscribe(Subscriber subscriber) override {
    return bus_.Subscribe(std::move(subscriber));
  }

 private:
  muster::nats::testing::NatsServer server_;
  const std::unique_ptr<muster::nats::Connection> connection_ =
      muster::nats::Connection::Open(server_.url(), {}).value();
  bus::nats::NatsTriggerBus bus_{connection_.get()};
};

std::vector<TriggerBusEngine> Engines() {
  std::vector<TriggerBusEngine> engines;
  for (const std::string& program : muster::nats::testing::NatsServer::Programs()) {
    engines.emplace_back([program] { return std::make_unique<BusWithServer>(program); });
  }
  return engines;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Nats, TriggerBusConformance, ::testing::ValuesIn(Engines()));

}  // namespace muster::bus::conformance

namespace muster::bus::nats {
namespace {

using bus::WorkDetected;
using bus::conformance::TriggerRecorder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What one process of several has.
struct Process {
  explicit Process(const std::string& url)
      : connection(muster::nats::Connection::Open(url, {}).value()), bus(connection.get()) {}

  void AwaitConnection() const {
    while (!connection->Flush(absl::Seconds(1)).ok()) {
    }
  }

  const std::unique_ptr<muster::nats::Connection> connection;
  NatsTriggerBus bus;
};

class NatsTriggerBusTest : public ::testing::TestWithParam<std::string> {
 protected:
  muster::nats::testing::NatsServer server_{GetParam()};
};

TEST_P(NatsTriggerBusTest, ReachesEverySubscriberOfEveryProcess) {
  Process publisher(server_.url()), first(server_.url()), second(server_.url());
  TriggerRecorder a, b, c;
  const auto of_a = first.bus.Subscribe(a.Subscriber()).value();
  const auto of_b = first.bus.Subscribe(b.Subscriber()).value();
  const auto of_c = second.bus.Subscribe(c.Subscriber()).value();
  ASSERT_TRUE(publisher.bus.Publish(WorkDetected("me", "acme", "in", 1)).ok());
  for (TriggerRecorder* ear : {&a, &b, &c}) ear->Await("in");
}

TEST_P(NatsTriggerBusTest, IgnoresWhatIsNoEventAndSaysSoOnce) {
  Process process(server_.url());
  const base::LogCapture log(base::kWarning);
  TriggerRecorder ear;
  const auto subscription = process.bus.Subscribe(ear.Subscriber()).value();
  const std::string noise("\0\xff\xfe noise", 9);
  for (const std::string& bytes : {std::string(), std::string("hello"), noise}) {
    ASSERT_TRUE(
        process.connection->Publish({.subject = "muster.trigger.acme.in", .data = bytes}).ok());
  }
  ASSERT_TRUE(process.bus.Publish(WorkDetected("me", "acme", "real", 1)).ok());
  ear.Await("real");
  EXPECT_THAT(ear.heard(), ElementsAre("real"));
  EXPECT_EQ(process.bus.malformed(), 3);
  EXPECT_THAT(log.lines(), ElementsAre(HasSubstr("muster.trigger.acme.in")));
}

TEST_P(NatsTriggerBusTest, CarriesNamesThatNoSubjectCouldHold) {
  Process process(server_.url());
  TriggerRecorder ear;
  const auto subscription = process.bus.Subscribe(ear.Subscriber()).value();
  for (const char* queue : {"", "a.b", "* >", "end"}) {
    ASSERT_TRUE(process.bus.Publish(WorkDetected("me", "an account", queue, 1)).ok()) << queue;
  }
  ear.Await("end");
  EXPECT_THAT(ear.heard(), ElementsAre("", "a.b", "* >", "end"));
}

TEST_P(NatsTriggerBusTest, HearsAgainAfterTheServerWasKilled) {
  Process process(server_.url());
  TriggerRecorder before, meanwhile;
  const auto subscription = process.bus.Subscribe(before.Subscriber()).value();
  server_.Kill();
  const absl::Status lost = process.bus.Publish(WorkDetected("me", "acme", "lost", 1));
  EXPECT_TRUE(absl::IsUnavailable(lost)) << lost;
  const auto subscription_without_server = process.bus.Subscribe(meanwhile.Subscriber()).value();
  server_.Restart();
  process.AwaitConnection();
  ASSERT_TRUE(process.bus.Publish(WorkDetected("me", "acme", "back", 1)).ok());
  before.Await("back");
  meanwhile.Await("back");
}

TEST_P(NatsTriggerBusTest, AFirstSubscriberWithoutAServerHearsOnceItIsBack) {
  Process process(server_.url());
  server_.Kill();
  TriggerRecorder ear;
  const auto subscription = process.bus.Subscribe(ear.Subscriber()).value();
  server_.Restart();
  process.AwaitConnection();
  ASSERT_TRUE(process.bus.Publish(WorkDetected("me", "acme", "back", 1)).ok());
  ear.Await("back");
}

INSTANTIATE_TEST_SUITE_P(Servers, NatsTriggerBusTest,
                         ::testing::ValuesIn(muster::nats::testing::NatsServer::Programs()),
                         [](const auto& server) { return absl::StrCat("Server", server.index); });

}  // namespace
}  // namespace muster::bus::nats
