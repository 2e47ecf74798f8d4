// SPDX-License-Identifier: Apache-2.0

// Readers: their places, their waits, and what ends them.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "tests/conformance/stream/event_stream_conformance.h"

namespace muster::stream::conformance {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

bool LinkReaderTests() { return true; }

TEST_P(EventStreamConformance, ReadsAtMostSoManyEventsAndGoesOnBehindThem) {
  Create();
  Append({"a", "b", "c", "d", "e"});
  const auto reader = Reader();
  EXPECT_THAT(NextBodies(reader.get(), 1), ElementsAre("a"));
  EXPECT_THAT(NextBodies(reader.get(), 1), ElementsAre("b"));
  std::vector<std::string> rest;
  while (rest.size() < 3) {
    for (std::string& body : NextBodies(reader.get(), 2)) rest.push_back(body);
  }
  EXPECT_THAT(rest, ElementsAre("c", "d", "e"));
  EXPECT_THAT(NextBodies(reader.get(), 1, absl::ZeroDuration()), IsEmpty());
}

TEST_P(EventStreamConformance, RefusesBadReads) {
  Create();
  const auto reader = Reader();
  for (const int max_events : {-1, 0, kMaxReadEvents + 1}) {
    EXPECT_EQ(reader->Next(max_events, kLong).status().code(), absl::StatusCode::kInvalidArgument);
  }
  for (const int64_t offset : {int64_t{0}, int64_t{-1}}) {
    EXPECT_EQ(store_->OpenReader(kStream, 0, offset).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST_P(EventStreamConformance, BoundsTheBytesOfARead) {
  Create();
  const std::vector<std::string> large(8, std::string(kMaxBodyBytes, 'x'));
  Append(large);
  Append(large);
  const auto reader = Reader();
  for (size_t read = 0; read < 16;) {
    const size_t got = NextBodies(reader.get(), kMaxReadEvents).size();
    ASSERT_GT(got, 0u);
    EXPECT_LE(got, kMaxReadBytes / kMaxBodyBytes + 1);
    read += got;
  }
}

TEST_P(EventStreamConformance, ReadsForEachReaderFromItsOwnPlace) {
  Create();
  Append({"a", "b", "c"});
  const auto store = Reader(1), audit = Reader(3);
  EXPECT_THAT(NextBodies(audit.get(), 1), ElementsAre("c"));
  EXPECT_THAT(NextBodies(store.get(), 1), ElementsAre("a"));
  Append({"d"});
  EXPECT_THAT(NextBodies(audit.get(), 1), ElementsAre("d"));
  EXPECT_THAT(NextBodies(store.get(), 1), ElementsAre("b"));
}

TEST_P(EventStreamConformance, WakesAReaderByAnAppend) {
  Create();
  const auto reader = Reader();
  for (const std::string body : {"a", "b", "c"}) {
    std::thread producer([&] { Append({body}); });
    EXPECT_THAT(NextBodies(reader.get()), ElementsAre(body));
    producer.join();
  }
}

TEST_P(EventStreamConformance, WakesAReaderNotByAnotherPartition) {
  Create();
  const auto reader = Reader(1, 1);
  Append({"a"}, 0);
  EXPECT_THAT(NextBodies(reader.get(), 1, absl::ZeroDuration()), IsEmpty());
}

TEST_P(EventStreamConformance, ReturnsNoneAtTheEndOfAWait) {
  Create();
  const auto reader = Reader();
  std::atomic<bool> ended = false;
  std::thread waiting([&] {
    EXPECT_THAT(NextBodies(reader.get(), 1, absl::Milliseconds(100)), IsEmpty());
    ended = true;
  });
  while (!ended) home_->Advance(absl::Milliseconds(20));
  waiting.join();
  Append({"a"});
  EXPECT_THAT(NextBodies(reader.get()), ElementsAre("a"));
}

TEST_P(EventStreamConformance, EndsAWaitByCancelAndAllLaterOnes) {
  Create();
  const auto reader = Reader();
  std::thread other([&] { reader->Cancel(); });
  EXPECT_THAT(NextBodies(reader.get()), IsEmpty());
  other.join();
  Append({"a"});
  EXPECT_THAT(NextBodies(reader.get()), IsEmpty());
  EXPECT_THAT(NextBodies(Reader().get()), SizeIs(1)) << "another reader";
}

TEST_P(EventStreamConformance, WaitsAtTheEndButNotBeyondIt) {
  Create();
  Append({"a", "b"});
  EXPECT_THAT(NextBodies(Reader(3).get(), 1, absl::ZeroDuration()), IsEmpty());
  const auto beyond = Reader(5);
  EXPECT_EQ(NextCode(beyond.get()), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(NextCode(beyond.get()), absl::StatusCode::kOutOfRange);
  Append({"c", "d", "e"});
  EXPECT_THAT(NextBodies(beyond.get()), ElementsAre("e")) << "its place is there now";
}

TEST_P(EventStreamConformance, TellsReadersThatTheirStreamIsDeleted) {
  Create();
  Append({"a", "b"});
  const auto behind = Reader(1), at_end = Reader(3);
  EXPECT_THAT(NextBodies(at_end.get(), 1, absl::ZeroDuration()), IsEmpty());
  std::thread deleter([&] { EXPECT_TRUE(store_->Delete(kStream).ok()); });
  EXPECT_EQ(at_end->Next(1, kLong).status().code(), absl::StatusCode::kNotFound);
  deleter.join();
  Create();
  Append({"new", "newer", "newest"});
  EXPECT_EQ(behind->Next(1, kLong).status().code(), absl::StatusCode::kNotFound)
      << "a stream of the same name is another stream";
  EXPECT_EQ(at_end->Next(1, kLong).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace muster::stream::conformance
