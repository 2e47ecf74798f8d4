// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/api/processed_streams.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "muster/base/mutex.h"
#include "tests/fakes/stream/memory_event_stream_store.h"
#include "tests/fakes/sync/memory_sync_store.h"
#include "tests/fakes/telemetry/shown.h"

namespace muster::initiator::api {
namespace {

using stream::processor::PartitionContext;
using telemetry::Shown;

// Saves a checkpoint at each event up to `last`. Thread-safe.
class SavesUpTo final : public stream::processor::EventHandler {
 public:
  explicit SavesUpTo(int64_t last) : last_(last) {}

  absl::Status OnEvent(PartitionContext& partition, const stream::Event* event) override {
    const absl::Status saved =
        event->offset <= last_ ? partition.UpdateCheckpoint(*event) : absl::OkStatus();
    base::MutexLock lock(&mu_);
    ++handled_;
    changed_.NotifyAll();
    return saved;
  }
  void OnError(const stream::processor::ProcessorError&) override {}
  void Await(int handled) {
    base::MutexLock lock(&mu_);
    while (handled_ < handled) changed_.Wait(&mu_);
  }

 private:
  const int64_t last_;
  base::Mutex mu_;
  base::CondVar changed_;
  int handled_ ABSL_GUARDED_BY(mu_) = 0;
};

class ProcessedStreamsTest : public ::testing::Test {
 protected:
  ProcessedStreamsTest() { EXPECT_TRUE(events_.Create("homes", {.partitions = 2}).ok()); }

  void Append(int partition, int events) {
    for (int i = 0; i < events; ++i) {
      ASSERT_TRUE(events_.Append("homes", partition, {{.body = "x"}}).ok());
    }
  }
  ProcessedStreams::ProcessorPtr Process(SavesUpTo* handler) {
    return stream::processor::EventProcessor::Start({.stream = "homes",
                                                     .group = "store",
                                                     .interval = absl::Milliseconds(100),
                                                     .lease = absl::Seconds(10),
                                                     .grace = absl::Seconds(1)},
                                                    {&events_, &sync_}, handler, base::RealClock())
        .value();
  }

  const std::string lag_ = R"(muster_checkpoint_lag{group="homes/store"})";
  stream::testing::MemoryEventStreamStore events_{base::RealClock()};
  sync::testing::MemorySyncStore sync_;
  bool connected_ = true;
  telemetry::Registry registry_;
  ProcessedStreams processed_{&events_, [this] { return connected_; }, base::RealClock(),
                              &registry_};
};

TEST_F(ProcessedStreamsTest, ShowsHowFarTheCheckpointsAreBehindTheEnds) {
  EXPECT_EQ(Shown(registry_, lag_), std::nullopt);
  Append(0, 5);
  Append(1, 2);
  SavesUpTo handler(3);
  const ProcessedStreams::ProcessorPtr processor = Process(&handler);
  processed_.Add(processor);
  handler.Await(7);
  EXPECT_EQ(Shown(registry_, lag_), 2) << "of 5 events, the checkpoint covers 3; of 2, both";
  Append(1, 1);
  handler.Await(8);
  EXPECT_EQ(Shown(registry_, lag_), 2) << "it is saved, too";
  Append(1, 4);
  handler.Await(12);
  EXPECT_EQ(Shown(registry_, lag_), 6);
  processed_.Remove(processor);
  EXPECT_EQ(Shown(registry_, lag_), std::nullopt);
}

TEST_F(ProcessedStreamsTest, AGroupWithoutACheckpointIsBehindFromWhereItBegan) {
  Append(0, 5);
  SavesUpTo handler(0);
  const ProcessedStreams::ProcessorPtr processor = Process(&handler);
  processed_.Add(processor);
  handler.Await(5);
  EXPECT_EQ(Shown(registry_, lag_), 5);
  processed_.Remove(processor);
}

TEST_F(ProcessedStreamsTest, AScrapeWithoutAConnectionIsCountedAndDoesNotAskTheStore) {
  Append(0, 1);
  SavesUpTo handler(1);
  const ProcessedStreams::ProcessorPtr processor = Process(&handler);
  processed_.Add(processor);
  handler.Await(1);
  connected_ = false;
  EXPECT_EQ(Shown(registry_, lag_), std::nullopt);
  EXPECT_GE(Shown(registry_, R"(muster_metrics_read_failures_total{source="streams"})"), 1);
  processed_.Remove(processor);
}

}  // namespace
}  // namespace muster::initiator::api
