// SPDX-License-Identifier: Apache-2.0

// Retention: what goes, what stays, and that offsets go on.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/conformance/stream/event_stream_conformance.h"

namespace muster::stream::conformance {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

bool LinkRetentionTests() { return true; }

TEST_P(EventStreamConformance, RemovesEventsAtTheEndOfTheirRetention) {
  Create({.partitions = 2, .retention = kMinRetention});
  Append({"a", "b"});
  const auto behind = Reader(1);
  home_->Advance(kMinRetention + kMinRetention / 8);
  AwaitFirst(3);
  EXPECT_EQ(Extent().first, 3);
  EXPECT_EQ(Extent().next, 3);
  EXPECT_GT(Extent().last_appended, absl::UnixEpoch());
  EXPECT_EQ(NextCode(behind.get()), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(NextCode(Reader(2).get()), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(NextBodies(Reader(3).get(), 1, absl::ZeroDuration()), IsEmpty());
  EXPECT_EQ(Append({"c"}), 3);
  EXPECT_THAT(Bodies(3), ElementsAre("c"));
}

TEST_P(EventStreamConformance, NeverUsesAnOffsetTwice) {
  Create({.partitions = 2, .retention = kMinRetention});
  Append({"a", "b"});
  home_->Advance(kMinRetention + kMinRetention / 8);
  AwaitFirst(3);
  Restart();
  EXPECT_EQ(Extent().first, 3);
  EXPECT_EQ(Extent().next, 3);
  EXPECT_EQ(Append({"c"}), 3);
  Restart();
  EXPECT_THAT(Bodies(Extent().first), ElementsAre("c"));
}

TEST_P(EventStreamConformance, RemovesTheOldestEventsAboveSoManyBytes) {
  constexpr int kEvents = 100, kBytes = 1000;
  Create({.partitions = 2, .retention = absl::InfiniteDuration(), .max_bytes = 20 * kBytes});
  for (int i = 0; i < kEvents; ++i) Append({std::string(kBytes, 'x')});
  AwaitFirst(kEvents - 20 + 2);  // an event takes more than its body
  const PartitionExtent extent = Extent();
  EXPECT_EQ(extent.next, kEvents + 1);
  EXPECT_GE(extent.count(), 15);
  EXPECT_EQ(Bodies(extent.first).size(), static_cast<size_t>(extent.count()));
  EXPECT_EQ(NextCode(Reader(1).get()), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(Extent(1).next, 1) << "it bounds each partition for itself";
}

}  // namespace muster::stream::conformance
