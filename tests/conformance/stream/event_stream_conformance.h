// SPDX-License-Identifier: Apache-2.0

// The conformance suite of the EventStreamStore seam. It uses an engine only through
// event_stream_store.h.
//
// In an engine's test, within this namespace:
//
//   class MyHome final : public StoreHome { … };
//   INSTANTIATE_TEST_SUITE_P(MyEngine, EventStreamConformance,
//                            ::testing::Values([]() -> std::unique_ptr<StoreHome> {
//                              return std::make_unique<MyHome>();
//                            }));
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "muster/stream/event_stream_store.h"

namespace muster::stream::conformance {

// Where a store keeps its streams; outlives the store.
class StoreHome {
 public:
  virtual ~StoreHome() = default;

  // Opens the store on its existing data, as after a crash. At most one store is open at a time.
  virtual std::unique_ptr<EventStreamStore> Open() = 0;
  // Lets time pass at the engine.
  virtual void Advance(absl::Duration by) = 0;
};

using HomeMaker = std::function<std::unique_ptr<StoreHome>()>;

// Referenced here, so that the linker keeps files that contain only tests.
bool LinkAppendTests();
bool LinkModelTests();
bool LinkReaderTests();
bool LinkRetentionTests();
inline const bool kAllTestsAreLinked =
    LinkAppendTests() && LinkModelTests() && LinkReaderTests() && LinkRetentionTests();

// Helpers in terms of events and their bodies; the stream is "meters", with two partitions. A
// helper that cannot do its work fails the test.
class EventStreamConformance : public ::testing::TestWithParam<HomeMaker> {
 protected:
  static constexpr char kStream[] = "meters";
  // No wait should come near it: a wait for a signal fails the test by this.
  static constexpr absl::Duration kLong = absl::Minutes(2);

  void SetUp() override;

  // Opens the store again, as after a crash.
  void Restart();
  void Create(const StreamOptions& options = {.partitions = 2});
  // Appends events with these bodies; returns the first offset.
  int64_t Append(const std::vector<std::string>& bodies, int partition = 0);
  PartitionExtent Extent(int partition = 0);
  // Returns when the partition's first event is `first` or a later one.
  void AwaitFirst(int64_t first, int partition = 0);
  std::unique_ptr<PartitionReader> Reader(int64_t offset = 1, int partition = 0);
  // The bodies of the events from `offset` on, up to the present end; checks their offsets.
  std::vector<std::string> Bodies(int64_t offset = 1, int partition = 0);
  // Those of one call of Next.
  std::vector<std::string> NextBodies(PartitionReader* reader, int max_events = 100,
                                      absl::Duration wait = kLong);
  absl::StatusCode NextCode(PartitionReader* reader);

  std::unique_ptr<StoreHome> home_;
  std::unique_ptr<EventStreamStore> store_;
};

}  // namespace muster::stream::conformance
