// SPDX-License-Identifier: Apache-2.0

// Runs on each server that NatsServer::Programs names.

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/text.h"
#include "muster/bus/nats/nats_buses.h"
#include "muster/bus/trigger_bus.h"
#include "muster/v1/trigger.pb.h"
#include "tests/conformance/bus/trigger_bus_conformance.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/nats/nats_server.h"

namespace muster::bus::nats {

namespace {

using bus::WorkDetected;

TEST(EventCodecTest, WritesTheBytesThatEveryReleaseReads) {
  const auto event = WorkDetected("initiator-7", "acme", "retail-in", 64);
  const std::string golden = base::BytesFromHex(
      "0a0b696e69746961746f722d37"
      "12130a0461636d651209726574"
      "61696c2d696e1840");
  EXPECT_EQ(EncodeEvent(event), golden);
  const auto decoded = DecodeEvent(golden);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->from, "initiator-7");
  EXPECT_TRUE(IsFor(*decoded, "acme", "retail-in"));
  EXPECT_EQ(std::get<bus::CloudQueueWorkDetectedTriggerEvent>(decoded->payload).messages, 64);
}

TEST(EventCodecTest, CarriesWhatAWorkerMustHaveForTheMessages) {
  auto event = WorkDetected("processor-7", "acme", "retail-in", 64);
  std::get<bus::CloudQueueWorkDetectedTriggerEvent>(event.payload).wanted = "v1";
  const std::string golden = base::BytesFromHex(
      "0a0b70726f636573736f722d37"
      "12170a0461636d651209726574"
      "61696c2d696e184022027631");
  EXPECT_EQ(EncodeEvent(event), golden);
  const auto decoded = DecodeEvent(golden);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(std::get<bus::CloudQueueWorkDetectedTriggerEvent>(decoded->payload).wanted, "v1");
}

TEST(EventCodecTest, ReadsAnEventToWhichANewerMusterHasAddedFields) {
  const std::string newer = base::BytesFromHex("a206036e6577");  // number 100
  const auto decoded = DecodeEvent(EncodeEvent(WorkDetected("i", "acme", "retail-in", 1)) + newer);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_TRUE(IsFor(*decoded, "acme", "retail-in"));
}

TEST(EventCodecTest, PutsAccountAndQueueIntoTheSubject) {
  EXPECT_EQ(SubjectOf(WorkDetected("i", "acme", "retail-in", 1)), "muster.trigger.acme.retail-in");
}

TEST(EventCodecTest, KeepsSubjectsApartWhateverTheNamesAre) {
  EXPECT_EQ(SubjectOf(WorkDetected("i", "a.b", "c", 1)), "muster.trigger.a=2Eb.c");
  EXPECT_EQ(SubjectOf(WorkDetected("i", "*", "> x", 1)), "muster.trigger.=2A.=3E=20x");
  EXPECT_EQ(SubjectOf(WorkDetected("i", "", "=", 1)), "muster.trigger.=.=3D");
}

TEST(EventCodecTest, CarriesEachKindOfEventOnASubjectOfItsKind) {
  const auto pass = [](const bus::InterRoleCommunicationEvent& event) {
    return DecodeEvent(EncodeEvent(event)).value().payload;
  };
  const bus::InterRoleCommunicationEvent job{"i", bus::JobChangedEvent{"retail"}};
  EXPECT_EQ(SubjectOf(job), "muster.event.job_changed");
  EXPECT_EQ(std::get<bus::JobChangedEvent>(pass(job)).job, "retail");
  const bus::InterRoleCommunicationEvent released{"i", bus::ReleasedEvent{"black.friday", 3}};
  EXPECT_EQ(SubjectOf(released), "muster.release.black=2Efriday");
  EXPECT_EQ(std::get<bus::ReleasedEvent>(pass(released)).release, "black.friday");
  EXPECT_EQ(std::get<bus::ReleasedEvent>(pass(released)).epoch, 3);
  const bus::InterRoleCommunicationEvent counted{"c", bus::BatchCountedEvent{7}};
  EXPECT_EQ(SubjectOf(counted), "muster.event.batch_counted");
  EXPECT_EQ(std::get<bus::BatchCountedEvent>(pass(counted)).batch, 7);
  const bus::InterRoleCommunicationEvent cancelled{"i", bus::BatchCancelledEvent{8}};
  EXPECT_EQ(SubjectOf(cancelled), "muster.event.batch_cancelled");
  EXPECT_EQ(std::get<bus::BatchCancelledEvent>(pass(cancelled)).batch, 8);
  const bus::InterRoleCommunicationEvent acknowledged{"p", bus::CancelAcknowledgedEvent{8}};
  EXPECT_EQ(std::get<bus::CancelAcknowledgedEvent>(pass(acknowledged)).batch, 8);
}

TEST(EventCodecTest, SaysOfWhichInstallationAnEventIsButNotOfATrigger) {
  v1::InterRoleCommunicationEvent event;
  ASSERT_TRUE(event.ParseFromString(EncodeEvent({"i", bus::BatchCountedEvent{7}}, "local/muster")));
  EXPECT_EQ(event.installation(), "local/muster");
  EXPECT_EQ(EncodeEvent(WorkDetected("i", "acme", "in", 1), "local/muster"),
            EncodeEvent(WorkDetected("i", "acme", "in", 1)));
}

TEST(EventCodecTest, RefusesWhatIsNoEvent) {
  v1::InterRoleCommunicationEvent without_payload;
  without_payload.set_from("a newer muster");
  for (const std::string& bytes : {std::string(), std::string("garbage"), std::string("\0\xff", 2),
                                   std::string("\x0a\x7f"), without_payload.SerializeAsString()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeEvent(bytes).status())) << bytes;
  }
}

}  // namespace

}  // namespace muster::bus::nats

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
using ::testing::UnorderedElementsAre;

// The connection and the bus of one of several processes.
struct Process {
  explicit Process(const std::string& url, const std::string& installation = "")
      : connection(muster::nats::Connection::Open(url, {}).value()),
        bus(connection.get(), installation) {}

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

// A server limits by subjects who may release.
TEST_P(NatsTriggerBusTest, AReleaseCountsOnlyOnItsOwnSubject) {
  Process process(server_.url());
  base::Mutex mu;
  base::CondVar changed;
  std::vector<std::string> heard;
  const auto subscription =
      process.bus
          .Subscribe([&](const bus::InterRoleCommunicationEvent& event) {
            const auto* released = std::get_if<bus::ReleasedEvent>(&event.payload);
            base::MutexLock lock(&mu);
            heard.push_back(released == nullptr ? "another event" : released->release);
            changed.NotifyAll();
          })
          .value();
  base::LogCapture log;
  const std::string stolen = EncodeEvent({"me", bus::ReleasedEvent{"stolen", 1}});
  for (const char* subject :
       {"muster.event.job_changed", "muster.trigger.acme.in", "muster.release.other"}) {
    ASSERT_TRUE(
        process.connection->PublishNow({.subject = subject, .data = stolen}, absl::Seconds(5))
            .ok());
  }
  // One that is right comes behind each of them on its way.
  ASSERT_TRUE(process.bus.Publish({"me", bus::JobChangedEvent{"in"}}).ok());
  ASSERT_TRUE(process.bus.Publish(WorkDetected("me", "acme", "in", 1)).ok());
  ASSERT_TRUE(process.bus.Publish({"me", bus::ReleasedEvent{"mine", 1}}).ok());
  base::MutexLock lock(&mu);
  while (heard.size() < 3) changed.Wait(&mu);
  EXPECT_THAT(heard, UnorderedElementsAre("another event", "another event", "mine"));
  EXPECT_EQ(process.bus.malformed(), 3);
}

// Batch 8 of one is not batch 8 of the other. A gateway's queues belong to accounts of its clients.
TEST_P(NatsTriggerBusTest, HearsOfAnotherInstallationOnlyThatWorkWasPut) {
  Process ours(server_.url(), "local/muster"), theirs(server_.url(), "acme/acme");
  base::Mutex mu;
  base::CondVar changed;
  std::vector<std::string> heard;
  const auto subscription =
      ours.bus
          .Subscribe([&](const bus::InterRoleCommunicationEvent& event) {
            base::MutexLock lock(&mu);
            heard.push_back(absl::StrCat(event.from, " ", event.payload.index()));
            changed.NotifyAll();
          })
          .value();
  const bus::InterRoleCommunicationEvent put = WorkDetected("theirs", "acme", "in", 1);
  for (const bus::InterRoleCommunicationEvent& event :
       {bus::InterRoleCommunicationEvent{"theirs", bus::JobChangedEvent{"in"}},
        {"theirs", bus::BatchCountedEvent{8}},
        {"theirs", bus::BatchCancelledEvent{8}},
        {"theirs", bus::CancelAcknowledgedEvent{8}},
        {"theirs", bus::ReleasedEvent{"mine", 1}},
        put}) {
    ASSERT_TRUE(theirs.bus.Publish(event).ok());
  }
  // One that counts comes behind each of them on its way. The second is of an earlier muster.
  Process another_of_ours(server_.url(), "local/muster"), earlier(server_.url());
  const bus::InterRoleCommunicationEvent cancelled{"ours", bus::BatchCancelledEvent{8}};
  const bus::InterRoleCommunicationEvent counted{"earlier", bus::BatchCountedEvent{8}};
  const bus::InterRoleCommunicationEvent released{"ours", bus::ReleasedEvent{"mine", 1}};
  ASSERT_TRUE(another_of_ours.bus.Publish(cancelled).ok());
  ASSERT_TRUE(another_of_ours.bus.Publish(released).ok());
  ASSERT_TRUE(earlier.bus.Publish(counted).ok());
  base::MutexLock lock(&mu);
  while (heard.size() < 4) changed.Wait(&mu);
  const auto as_heard = [](const bus::InterRoleCommunicationEvent& event) {
    return absl::StrCat(event.from, " ", event.payload.index());
  };
  EXPECT_THAT(heard, UnorderedElementsAre(as_heard(put), as_heard(cancelled), as_heard(released),
                                          as_heard(counted)));
  EXPECT_EQ(ours.bus.malformed(), 0);
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
