// SPDX-License-Identifier: Apache-2.0
#include "muster/item/batch_trace.h"

#include <set>
#include <string>
#include <variant>

#include "gtest/gtest.h"
#include "muster/item/queue_names.h"

namespace muster::item {
namespace {

std::string TextOf(const telemetry::Span& span, absl::string_view key) {
  for (const telemetry::SpanAttribute& attribute : span.attributes) {
    if (attribute.key == key) return std::get<std::string>(attribute.value);
  }
  return "";
}

TEST(BatchTraceTest, KnowsWhetherACallerBeganTheTrace) {
  base::TraceContext trace = BeginTrace(1);
  EXPECT_TRUE(trace.sampled());
  EXPECT_EQ(CallerSpanId(trace), 0);
  trace.parent = 7;
  EXPECT_EQ(CallerSpanId(trace), 7);
}

TEST(BatchTraceTest, FindsTheSameIdsWhateverTheParentOfAContextIs) {
  const base::TraceContext trace = BeginTrace(1);
  base::TraceContext of_result = trace;
  of_result.parent = 7;
  EXPECT_EQ(BatchSpanId(trace, 1), BatchSpanId(of_result, 1));
  EXPECT_EQ(ItemSpanId(trace, 1, 2), ItemSpanId(of_result, 1, 2));
}

TEST(BatchTraceTest, GivesEachSpanOfATraceAnIdOfItsOwn) {
  const base::TraceContext trace = BeginTrace(1);
  std::set<uint64_t> ids;
  for (uint64_t batch = 1; batch <= 3; ++batch) {
    ids.insert(BatchSpanId(trace, batch));
    for (uint32_t item = 0; item < 3; ++item) ids.insert(ItemSpanId(trace, batch, item));
  }
  EXPECT_EQ(ids.size(), 12);
  EXPECT_NE(BatchSpanId(trace, 1), BatchSpanId(BeginTrace(1), 1));
}

TEST(BatchTraceTest, NamesQueueSpansByOperationAndLogicalQueue) {
  const base::TraceContext trace = BeginTrace(1);
  const telemetry::Span span = QueueSpan(trace, 4, "receive", InputQueue("local", "retail", 3));
  EXPECT_EQ(span.name, "receive retail-in");
  EXPECT_EQ(span.kind, telemetry::SpanKind::kClient);
  EXPECT_EQ(span.parent, BatchSpanId(trace, 4));
  EXPECT_EQ(TextOf(span, "muster.batch"), "4");
  EXPECT_EQ(TextOf(span, "messaging.destination.name"), "retail-in");
  EXPECT_EQ(TextOf(span, "messaging.destination.partition.id"), "3");
  EXPECT_EQ(TextOf(span, "messaging.system"), "muster");
  const queue::QueueId queue = InputQueue("local", "retail", 3);
  EXPECT_EQ(QueueSpan(trace, 4, "create", queue).kind, telemetry::SpanKind::kProducer);
  EXPECT_EQ(QueueSpan(trace, 4, "process", queue).kind, telemetry::SpanKind::kConsumer);
}

}  // namespace
}  // namespace muster::item
