#include "muster/bus/nats/event_codec.h"

#include <variant>

#include "gtest/gtest.h"
#include "muster/base/hex.h"
#include "muster/bus/work_detected.h"
#include "muster/v1/trigger.pb.h"

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
  EXPECT_EQ(std::get<bus::CloudQueueWorkDetectedTriggerEvent>(decoded->payload).payload_size, 64);
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
  const bus::InterRoleCommunicationEvent counted{"c", bus::BatchCountedEvent{7}};
  EXPECT_EQ(SubjectOf(counted), "muster.event.batch_counted");
  EXPECT_EQ(std::get<bus::BatchCountedEvent>(pass(counted)).batch, 7);
  const bus::InterRoleCommunicationEvent cancelled{"i", bus::BatchCancelledEvent{8}};
  EXPECT_EQ(SubjectOf(cancelled), "muster.event.batch_cancelled");
  EXPECT_EQ(std::get<bus::BatchCancelledEvent>(pass(cancelled)).batch, 8);
  const bus::InterRoleCommunicationEvent acknowledged{"p", bus::CancelAcknowledgedEvent{8}};
  EXPECT_EQ(std::get<bus::CancelAcknowledgedEvent>(pass(acknowledged)).batch, 8);
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
