// SPDX-License-Identifier: Apache-2.0

// What an append keeps: its order, its bytes, its offsets.
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "tests/conformance/stream/event_stream_conformance.h"

namespace muster::stream::conformance {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

bool LinkAppendTests() { return true; }

TEST_P(EventStreamConformance, NumbersTheEventsOfAPartitionFromOneOn) {
  Create();
  EXPECT_EQ(Append({"a"}), 1);
  EXPECT_EQ(Append({"b", "c", "d"}), 2);
  EXPECT_EQ(Append({"e"}), 5);
  EXPECT_THAT(Bodies(), ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_EQ(Extent().first, 1);
  EXPECT_EQ(Extent().next, 6);
}

TEST_P(EventStreamConformance, KeepsPartitionsApart) {
  Create();
  EXPECT_EQ(Append({"a"}, 0), 1);
  EXPECT_EQ(Append({"b"}, 1), 1);
  EXPECT_EQ(Append({"c"}, 1), 2);
  EXPECT_THAT(Bodies(1, 0), ElementsAre("a"));
  EXPECT_THAT(Bodies(1, 1), ElementsAre("b", "c"));
}

TEST_P(EventStreamConformance, GoesOnBehindWhatItKeptOverARestart) {
  Create();
  Append({"a", "b"});
  const absl::Time appended = Extent().last_appended;
  EXPECT_GT(appended, absl::UnixEpoch());
  Restart();
  EXPECT_EQ(Extent().last_appended, appended);
  EXPECT_EQ(Append({"c"}), 3);
  Restart();
  EXPECT_THAT(Bodies(), ElementsAre("a", "b", "c"));
}

TEST_P(EventStreamConformance, KeepsAnyBytes) {
  Create();
  std::string all_bytes;
  for (int c = 0; c < 256; ++c) all_bytes.push_back(static_cast<char>(c));
  const std::vector<NewEvent> events = {
      {.key = all_bytes, .body = all_bytes, .properties = {{all_bytes, all_bytes}, {"", ""}}},
      {},
      {.key = "k", .body = "", .properties = {{"name", ""}, {"traceparent", "00-1-2-01"}}},
      {.key = std::string(kMaxKeyBytes, 'k'),
       .body = std::string(kMaxBodyBytes, '\r'),
       .properties = {{std::string(100, '\n'), std::string(kMaxPropertiesBytes - 100, '\0')}}},
  };
  ASSERT_TRUE(store_->Append(kStream, 0, events).ok());
  Restart();
  const auto reader = Reader();
  for (const NewEvent& event : events) {
    const auto read = reader->Next(1, kLong);
    ASSERT_TRUE(read.ok() && read->size() == 1) << read.status();
    EXPECT_EQ(read->front().key, event.key);
    EXPECT_TRUE(read->front().body == event.body);
    EXPECT_TRUE(read->front().properties == event.properties);
  }
}

TEST_P(EventStreamConformance, RefusesEventsBeyondTheLimitsAndAppendsNone) {
  Create();
  const auto code = [&](const std::vector<NewEvent>& events) {
    return store_->Append(kStream, 0, events).status().code();
  };
  const NewEvent fits{.key = "fits", .body = "fits", .properties = {}};
  EXPECT_EQ(code({}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(std::vector<NewEvent>(kMaxAppendEvents + 1)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({fits, {.body = std::string(kMaxBodyBytes + 1, 'x')}}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({fits, {.key = std::string(kMaxKeyBytes + 1, 'x')}}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({fits, {.properties = {{"a", std::string(kMaxPropertiesBytes, 'x')}}}}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(std::vector<NewEvent>(9, {.body = std::string(kMaxBodyBytes, 'x')})),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Extent().next, 1);
  EXPECT_THAT(Bodies(), IsEmpty());
}

TEST_P(EventStreamConformance, TakesTheLargestAppends) {
  Create();
  EXPECT_EQ(Append(std::vector<std::string>(kMaxAppendEvents, "x")), 1);
  EXPECT_EQ(Append(std::vector<std::string>(8, std::string(kMaxBodyBytes, 'x'))),
            int64_t{kMaxAppendEvents} + 1);
  EXPECT_EQ(Bodies().size(), kMaxAppendEvents + 8);
}

// Each body is the producer's number and the event's: an offset names the event that was appended
// at it, and each producer's events come in their order.
TEST_P(EventStreamConformance, KeepsTheOrderOfEachOfManyProducers) {
  constexpr int kProducers = 4, kAppends = 12;
  Create();
  std::vector<std::vector<std::pair<int64_t, std::string>>> firsts(kProducers);
  std::vector<std::thread> producers;
  for (int p = 0; p < kProducers; ++p) {
    producers.emplace_back([&, p] {
      int event = 0;
      for (int i = 0; i < kAppends; ++i) {
        std::vector<std::string> bodies;
        for (int n = 0; n <= i % 4; ++n) bodies.push_back(absl::StrCat(p, " ", event++));
        firsts[static_cast<size_t>(p)].emplace_back(Append(bodies), bodies.front());
      }
    });
  }
  for (std::thread& producer : producers) producer.join();
  const std::vector<std::string> bodies = Bodies();
  EXPECT_EQ(bodies.size(), size_t{kProducers * kAppends * 10 / 4});
  std::map<std::string, int> next;
  for (const std::string& body : bodies) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(body, ' ');
    EXPECT_EQ(parts.second, absl::StrCat(next[parts.first]++)) << "of producer " << parts.first;
  }
  for (const auto& producer : firsts) {
    for (const auto& [offset, body] : producer) {
      EXPECT_EQ(bodies.at(static_cast<size_t>(offset - 1)), body);
    }
  }
}

}  // namespace muster::stream::conformance
