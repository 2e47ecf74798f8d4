// SPDX-License-Identifier: Apache-2.0
#include "services/processor/work_spans.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/item/batch_trace.h"
#include "muster/item/queue_names.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::processor {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Not;
using ::testing::StartsWith;

class Kept final : public telemetry::SpanSink {
 public:
  void Record(telemetry::Span span) override { spans.push_back(std::move(span)); }
  std::vector<telemetry::Span> spans;
};

// "messaging.system=muster".
std::vector<std::string> AttributesOf(const telemetry::Span& span) {
  std::vector<std::string> attributes;
  for (const telemetry::SpanAttribute& attribute : span.attributes) {
    attributes.push_back(
        std::visit([&](const auto& value) { return absl::StrCat(attribute.key, "=", value); },
                   attribute.value));
  }
  return attributes;
}

class WorkSpansTest : public ::testing::Test {
 protected:
  WorkSpansTest() {
    item_.identity.batch = 7;
    item_.identity.trace = item::BeginTrace(1);
    item_.index = 42;
  }

  base::FakeClock clock_;
  Kept kept_;
  WorkSpans spans_{&kept_, &clock_};
  const queue::QueueId queue_ = item::InputQueue("local", "retail", 3);
  item::WorkItem item_;
};

TEST_F(WorkSpansTest, NamesTheItemByOpenTelemetrysConventionsUntilItIsSettled) {
  AttemptSpan attempt(&spans_, &queue_, 2, &item_);
  listener::Settlement settlement;
  settlement.kind = listener::Settlement::Kind::kOk;
  attempt.End(&settlement);
  settlement.on_settled(absl::OkStatus());
  ASSERT_EQ(kept_.spans.size(), 2U);
  for (const telemetry::Span& span : kept_.spans) {
    EXPECT_THAT(
        AttributesOf(span),
        AllOf(Contains("messaging.system=muster"), Contains("messaging.destination.name=retail-in"),
              Contains("messaging.destination.partition.id=3"),
              Contains("messaging.message.id=7/42"),
              Not(Contains(StartsWith("messaging.batch.message_count")))))
        << span.name;
  }
  EXPECT_THAT(AttributesOf(kept_.spans[0]),
              AllOf(Contains("messaging.operation.name=process"),
                    Contains("messaging.operation.type=process"), Contains("muster.attempt=2")));
  EXPECT_THAT(AttributesOf(kept_.spans[1]), AllOf(Contains("messaging.operation.name=settle"),
                                                  Contains("messaging.operation.type=settle")));
}

TEST_F(WorkSpansTest, CountsTheItemsOfAReceiveAndLinksToThem) {
  const queue::Message message;
  std::vector<listener::Delivery> deliveries(1);
  deliveries.front().message = &message;
  deliveries.front().queue = &queue_;
  { AttemptSpan attempt(&spans_, &queue_, 1, &item_); }
  spans_.RecordReceive(deliveries);
  ASSERT_EQ(kept_.spans.size(), 1U);
  EXPECT_THAT(AttributesOf(kept_.spans[0]), AllOf(Contains("messaging.operation.name=receive"),
                                                  Contains("messaging.operation.type=receive"),
                                                  Contains("messaging.batch.message_count=1")));
  EXPECT_EQ(kept_.spans[0].links,
            std::vector<uint64_t>{item::ItemSpanId(*item_.identity.trace, 7, 42)});
}

}  // namespace
}  // namespace muster::processor
