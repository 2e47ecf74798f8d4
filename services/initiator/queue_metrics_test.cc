// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/queue_metrics.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/item/queue_names.h"
#include "muster/os/temp_dir.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"
#include "muster/queue/store_decorators.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/sync/memory_sync_store.h"
#include "tests/fakes/telemetry/shown.h"

namespace muster::initiator {
namespace {

using telemetry::Shown;

// Takes a while for each look at a queue.
class SlowQueues final : public queue::InterceptedStore {
 public:
  SlowQueues(queue::QueueStore* behind, base::FakeClock* clock)
      : InterceptedStore(behind), clock_(clock) {}
  absl::Duration look_takes = absl::ZeroDuration();

 protected:
  absl::Status Before(queue::Verb verb, const queue::QueueId&) override {
    if (verb == queue::Verb::kStats) clock_->Advance(look_takes);
    return absl::OkStatus();
  }

 private:
  base::FakeClock* const clock_;  // not owned
};

class QueueMetricsTest : public ::testing::Test {
 protected:
  QueueMetricsTest() {
    queue::rocksdb::Options options;
    options.clock = &clock_;
    real_ = *queue::rocksdb::RocksDbQueueStore::Open(dir_ / "queues", options);
    queues_ = std::make_unique<SlowQueues>(real_.get(), &clock_);
    metrics_ = std::make_unique<QueueMetrics>(
        QueueSources{queues_.get(), &jobs_, [this] { return connected_; },
                     [this](const std::string& job) { return job == "words" ? rate_ : 0; }, "acme",
                     &clock_},
        &registry_);
  }

  void Apply(const std::string& sla) {
    const std::string text = absl::StrCat(
        "name: words\ninput: {format: lines}\nhandler: {linked: count}\nqueue: {partitions: 2}\n",
        sla, "groups:\n  - {name: by_line, keys: [line], measures: {n: int}}\n");
    const auto applied = jobs_.Apply(text, std::nullopt);
    ASSERT_TRUE(applied.ok()) << applied.status();
    for (const queue::QueueId& queue : item::InputQueues("acme", "words", 2)) {
      ASSERT_TRUE(queues_->CreateQueue(queue, {}).ok());
    }
  }
  void Put(int partition, int messages) {
    queue::NewMessage message;
    message.body = "x";
    const std::vector<queue::NewMessage> all(static_cast<size_t>(messages), message);
    ASSERT_TRUE(queues_->Put(item::InputQueue("acme", "words", partition), all).ok());
  }
  std::optional<double> OfQueue(const std::string& name) {
    return Shown(registry_, absl::StrCat(name, R"({queue="words-in"})"));
  }

  base::FakeClock clock_;
  const os::TempDir dir_;
  std::unique_ptr<queue::QueueStore> real_;
  std::unique_ptr<SlowQueues> queues_;
  sync::testing::MemorySyncStore sync_;
  job::JobRegistry jobs_{&sync_, &clock_};
  bool connected_ = true;
  double rate_ = 0;
  telemetry::Registry registry_;
  std::unique_ptr<QueueMetrics> metrics_;
};

TEST_F(QueueMetricsTest, AddsUpThePartitionsOfAQueue) {
  Apply("");
  Put(0, 3);
  clock_.Advance(absl::Seconds(9));
  Put(1, 4);
  clock_.Advance(absl::Seconds(1));
  ASSERT_EQ(queues_->Receive(item::InputQueue("acme", "words", 1), {1, absl::Minutes(1)})->size(),
            1U);
  EXPECT_EQ(OfQueue("muster_queue_backlog"), 6);
  EXPECT_EQ(OfQueue("muster_queue_in_flight"), 1);
  EXPECT_EQ(OfQueue("muster_queue_poison"), 0);
  EXPECT_EQ(OfQueue("muster_queue_oldest_age_seconds"), 10) << "of the older partition";
}

TEST_F(QueueMetricsTest, ShowsMoreQueuesThanAPageOfTheListHas) {
  for (int i = 0; i < kQueuesAtATime + 10; ++i) {
    ASSERT_TRUE(queues_->CreateQueue({"acme", absl::StrCat("q-", i)}, {}).ok());
  }
  Apply("");  // words-in-0 is behind all of them
  Put(0, 3);
  EXPECT_EQ(Shown(registry_, R"(muster_queue_backlog{queue="other"})"), 3);
}

TEST_F(QueueMetricsTest, DividesWhatWaitsByWhatTheProcessorsDo) {
  Apply("");
  Put(0, 10);
  EXPECT_EQ(OfQueue("muster_queue_drain_time_seconds"), std::nullopt) << "nothing is known";
  rate_ = 4;
  EXPECT_EQ(OfQueue("muster_queue_drain_time_seconds"), 2.5);
}

TEST_F(QueueMetricsTest, ShowsThePromiseOfAJobAndItsChange) {
  Apply("");
  EXPECT_EQ(OfQueue("muster_sla_target_seconds"), std::nullopt);
  clock_.Advance(absl::Seconds(1));
  Apply("sla: {max: 90s}\n");
  EXPECT_EQ(OfQueue("muster_sla_target_seconds"), 90);
  clock_.Advance(absl::Seconds(1));
  Apply("sla: {max: 60s}\n");
  EXPECT_EQ(OfQueue("muster_sla_target_seconds"), 60);
}

TEST_F(QueueMetricsTest, AsksNothingWithoutAConnection) {
  Apply("");
  connected_ = false;
  EXPECT_EQ(OfQueue("muster_queue_backlog"), std::nullopt);
  EXPECT_GE(Shown(registry_, R"(muster_metrics_read_failures_total{source="queues"})"), 1);
}

TEST_F(QueueMetricsTest, LeavesOutTheQueuesForWhichThereIsNoTime) {
  Apply("");
  Put(0, 3);
  Put(1, 4);
  queues_->look_takes = kQueueReadTime;
  EXPECT_EQ(OfQueue("muster_queue_backlog"), 3) << "the first partition alone";
  EXPECT_GE(Shown(registry_, R"(muster_metrics_read_failures_total{source="queues"})"), 1);
}

}  // namespace
}  // namespace muster::initiator
