// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/stream/event_stream_conformance.h"

#include <utility>

#include "absl/time/clock.h"
#include "gmock/gmock.h"

namespace muster::stream::conformance {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

void EventStreamConformance::SetUp() {
  home_ = GetParam()();
  store_ = home_->Open();
  ASSERT_NE(store_, nullptr);
}

void EventStreamConformance::Restart() {
  store_.reset();
  store_ = home_->Open();
  ASSERT_NE(store_, nullptr);
}

void EventStreamConformance::Create(const StreamOptions& options) {
  const absl::Status created = store_->Create(kStream, options);
  ASSERT_TRUE(created.ok()) << created;
}

int64_t EventStreamConformance::Append(const std::vector<std::string>& bodies, int partition) {
  std::vector<NewEvent> events(bodies.size());
  for (size_t i = 0; i < bodies.size(); ++i) events[i].body = bodies[i];
  const absl::StatusOr<int64_t> offset = store_->Append(kStream, partition, events);
  EXPECT_TRUE(offset.ok()) << offset.status();
  return offset.value_or(-1);
}

PartitionExtent EventStreamConformance::Extent(int partition) {
  const absl::StatusOr<PartitionExtent> extent = store_->Extent(kStream, partition);
  EXPECT_TRUE(extent.ok()) << extent.status();
  return extent.value_or(PartitionExtent());
}

// The seam has no signal for it: an engine removes events in its own time.
void EventStreamConformance::AwaitFirst(int64_t first, int partition) {
  const absl::Time late = absl::Now() + kLong;
  while (Extent(partition).first < first) {
    ASSERT_LT(absl::Now(), late) << "first is " << Extent(partition).first;
    absl::SleepFor(absl::Milliseconds(2));
  }
}

std::unique_ptr<PartitionReader> EventStreamConformance::Reader(int64_t offset, int partition) {
  auto reader = store_->OpenReader(kStream, partition, offset);
  EXPECT_TRUE(reader.ok()) << reader.status();
  return reader.ok() ? *std::move(reader) : nullptr;
}

std::vector<std::string> EventStreamConformance::Bodies(int64_t offset, int partition) {
  const std::unique_ptr<PartitionReader> reader = Reader(offset, partition);
  const int64_t next = Extent(partition).next;
  std::vector<std::string> bodies;
  while (offset < next) {
    const auto events = reader->Next(kMaxReadEvents, kLong);
    EXPECT_TRUE(events.ok()) << events.status();
    if (!events.ok() || events->empty()) break;
    for (const Event& event : *events) {
      EXPECT_EQ(event.offset, offset++);
      bodies.push_back(event.body);
    }
  }
  return bodies;
}

std::vector<std::string> EventStreamConformance::NextBodies(PartitionReader* reader, int max_events,
                                                            absl::Duration wait) {
  const auto events = reader->Next(max_events, wait);
  EXPECT_TRUE(events.ok()) << events.status();
  std::vector<std::string> bodies;
  if (!events.ok()) return bodies;
  for (const Event& event : *events) bodies.push_back(event.body);
  return bodies;
}

absl::StatusCode EventStreamConformance::NextCode(PartitionReader* reader) {
  return reader->Next(1, absl::ZeroDuration()).status().code();
}

TEST_P(EventStreamConformance, MakesAStreamOnceAndDescribesIt) {
  const StreamOptions options{
      .partitions = 3, .retention = absl::Hours(36), .max_bytes = int64_t{5} << 30};
  ASSERT_TRUE(store_->Create("b", options).ok());
  ASSERT_TRUE(store_->Create("b", options).ok()) << "the same once more";
  ASSERT_TRUE(store_->Create("a-2", {.partitions = 1, .retention = absl::InfiniteDuration()}).ok());
  EXPECT_EQ(store_->Create("b", {.partitions = 4}).code(), absl::StatusCode::kAlreadyExists);
  for (int round = 0; round < 2; ++round, Restart()) {
    EXPECT_THAT(*store_->List(), ElementsAre("a-2", "b"));
    EXPECT_EQ(*store_->Describe("b"), options);
    EXPECT_EQ(store_->Describe("a-2")->retention, absl::InfiniteDuration());
    EXPECT_EQ(store_->Describe("a-2")->max_bytes, 0);
  }
}

TEST_P(EventStreamConformance, BeginsEmpty) {
  EXPECT_THAT(*store_->List(), IsEmpty());
  Create();
  EXPECT_EQ(Extent().first, 1);
  EXPECT_EQ(Extent().next, 1);
  EXPECT_EQ(Extent().count(), 0);
  EXPECT_EQ(Extent().last_appended, absl::InfinitePast());
}

TEST_P(EventStreamConformance, RefusesBadNamesAndOptions) {
  const auto code = [&](const std::string& name, const StreamOptions& options) {
    return store_->Create(name, options).code();
  };
  for (const std::string& name : {std::string(), std::string(64, 'a'), std::string("A"),
                                  std::string("a.b"), std::string("-a"), std::string("a-")}) {
    EXPECT_EQ(code(name, {}), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_EQ(store_->Delete(name).code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_EQ(store_->Describe(name).status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
  for (const StreamOptions& options :
       {StreamOptions{.partitions = 0}, StreamOptions{.partitions = kMaxPartitions + 1},
        StreamOptions{.retention = absl::Milliseconds(999)}, StreamOptions{.max_bytes = -1}}) {
    EXPECT_EQ(code("a", options), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(*store_->List(), IsEmpty());
  EXPECT_EQ(code(std::string(kMaxNameBytes, 'a'), {.partitions = 1}), absl::StatusCode::kOk);
}

TEST_P(EventStreamConformance, KnowsNoOtherStreamsAndPartitions) {
  Create();
  const std::vector<NewEvent> one(1);
  EXPECT_EQ(store_->Describe("other").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->Delete("other").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->Extent("other", 0).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->Append("other", 0, one).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->OpenReader("other", 0, 1).status().code(), absl::StatusCode::kNotFound);
  for (const int partition : {-1, 2}) {
    EXPECT_EQ(store_->Extent(kStream, partition).status().code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(store_->Append(kStream, partition, one).status().code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(store_->OpenReader(kStream, partition, 1).status().code(),
              absl::StatusCode::kNotFound);
  }
}

TEST_P(EventStreamConformance, BeginsAnewUnderTheNameOfADeletedStream) {
  Create();
  Append({"old", "older"});
  const uint64_t before = store_->Extent(kStream, 0)->incarnation;
  ASSERT_TRUE(store_->Delete(kStream).ok());
  EXPECT_EQ(store_->Describe(kStream).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(*store_->List(), IsEmpty());
  Create({.partitions = 3});
  EXPECT_EQ(store_->Describe(kStream)->partitions, 3);
  const uint64_t anew = store_->Extent(kStream, 0)->incarnation;
  EXPECT_NE(anew, before);
  EXPECT_NE(anew, 0u);
  EXPECT_EQ(Append({"new"}), 1);
  Restart();
  EXPECT_THAT(Bodies(), ElementsAre("new"));
  EXPECT_EQ(store_->Extent(kStream, 0)->incarnation, anew);
}

}  // namespace muster::stream::conformance
