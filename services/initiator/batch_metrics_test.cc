// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/batch_metrics.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "muster/content/content_store.h"
#include "muster/input/byte_source.h"
#include "muster/telemetry/catalogue.h"
#include "tests/fakes/initiator/batch_engine_fixture.h"
#include "tests/fakes/telemetry/shown.h"

namespace muster::initiator {
namespace {

using telemetry::Shown;

// Content that has arrived as a whole.
class WholeContent : public content::ContentStore {
 public:
  bool Stores(const ledger::Batch&) const override { return true; }
  std::string PathOf(uint64_t) const override { return ""; }
  absl::StatusOr<std::shared_ptr<const input::ByteSource>> OpenContent(uint64_t) override {
    return absl::NotFoundError("none");
  }
  std::optional<uint64_t> DurableBytes(uint64_t) override { return 100; }
  bool IsSealed(uint64_t) const override { return true; }
  void Refuse(uint64_t, const absl::Status&) override {}
  absl::Status Delete(uint64_t) override { return absl::OkStatus(); }
};

class BatchMetricsTest : public batch::BatchEngineTest {
 protected:
  BatchMetricsTest() : metrics_(&clock_, &registry_) {}

  ledger::Batch Done(uint64_t number, absl::Duration took) const {
    ledger::Batch batch;
    batch.number = number;
    batch.job = "sum";
    batch.sla = absl::Minutes(1);
    batch.state = ledger::BatchState::kComplete;
    batch.created = clock_.Now();
    batch.completed = batch.created + took;
    return batch;
  }
  std::optional<double> Violations() {
    return Shown(registry_, R"(muster_sla_violations_total{queue="sum-in"})");
  }

  telemetry::Registry registry_;
  BatchMetrics metrics_;
};

TEST_F(BatchMetricsTest, CountsEachLateBatchOnce) {
  metrics_.NoteComplete(Done(1, absl::Seconds(60)));
  EXPECT_EQ(Violations(), std::nullopt);
  metrics_.NoteComplete(Done(2, absl::Seconds(61)));
  metrics_.NoteComplete(Done(2, absl::Seconds(61)));  // it was stepped once more
  metrics_.NoteComplete(Done(3, absl::Hours(2)));
  ledger::Batch unpromised = Done(4, absl::Hours(2));
  unpromised.sla.reset();
  metrics_.NoteComplete(unpromised);
  EXPECT_EQ(Violations(), 2);
}

// Two batches of one queue: 30 of 100 transactions are counted after 15 s, and 10 of 300 after 5 s.
TEST_F(BatchMetricsTest, AddsUpTheProgressOfAQueueAndShowsTheWorstOfItsBatches) {
  std::vector<batch::BatchStatus> open(2);
  open[0].batch.job = open[1].batch.job = "sum";
  open[0].batch.transactions = 100;
  open[0].counted.transactions = 30;
  open[0].batch.created = clock_.Now() - absl::Seconds(15);
  open[0].batch.sla = absl::Seconds(10);
  open[1].split = {.transactions_read = 300};
  open[1].counted.transactions = 10;
  open[1].batch.created = clock_.Now() - absl::Seconds(5);
  open[1].batch.sla = absl::Seconds(60);
  const auto reading =
      telemetry::ReadAtScrape(&registry_, "test",
                              {telemetry::kBatchProgress.entry(), telemetry::kBatchEta.entry(),
                               telemetry::kBatchDeadlineRemaining.entry()},
                              [&](telemetry::Samples* samples) {
                                ShowOpenBatches(open, clock_.Now(), samples);
                                return absl::OkStatus();
                              });
  EXPECT_EQ(Shown(registry_, R"(muster_batch_progress{queue="sum-in"})"), 0.1);
  EXPECT_EQ(Shown(registry_, R"(muster_batch_eta_seconds{queue="sum-in"})"), 145);
  EXPECT_EQ(Shown(registry_, R"(muster_batch_deadline_remaining_seconds{queue="sum-in"})"), -5);
}

TEST_F(BatchMetricsTest, ShowsTheBatchesThatAreOpen) {
  BeginWithRecords(100);
  WholeContent content;
  batch::EngineDependencies dependencies = Dependencies();
  dependencies.content = &content;
  batch::BatchScheduler scheduler(dependencies, batch::SchedulerOptions());
  metrics_.Watch(&scheduler);
  const std::string progress = R"(muster_batch_progress{queue="sum-in"})";
  EXPECT_EQ(Shown(registry_, progress), 0) << "nothing is counted";
  EXPECT_EQ(Shown(registry_, R"(muster_sla_violations_total{queue="sum-in"})"), 0)
      << "increase() does not see a series begin";
  EXPECT_EQ(Shown(registry_, R"(muster_batch_eta_seconds{queue="sum-in"})"), std::nullopt);
  EXPECT_EQ(Shown(registry_, R"(muster_batch_deadline_remaining_seconds{queue="sum-in"})"),
            std::nullopt)
      << "nothing is promised";
  ASSERT_TRUE(ledger_->CancelIfOpen(number_, clock_.Now(), "").ok());
  EXPECT_EQ(Shown(registry_, progress), std::nullopt) << "no batch is open";
  metrics_.Close();
}

// An upload of which 100 bytes have arrived, and that no client sends.
class CutOffContent final : public WholeContent {
 public:
  bool IsSealed(uint64_t) const override { return false; }
  std::optional<Arrived> ArrivedOf(uint64_t) override { return Arrived{.bytes = 100}; }
};

TEST_F(BatchMetricsTest, ShowsHowManyUploadsWereCutOffAndWhatHasArrivedOfThem) {
  CutOffContent content;
  batch::EngineDependencies dependencies = Dependencies();
  dependencies.content = &content;
  for (const uint64_t number : {21, 22}) {
    ledger::Batch batch;
    batch.number = number;
    batch.request_id = std::to_string(number);
    batch.created = clock_.Now();
    ASSERT_TRUE(ledger_->Create(batch).ok());
  }
  batch::BatchScheduler scheduler(dependencies, {.threads = 0});
  metrics_.Watch(&scheduler);
  EXPECT_EQ(Shown(registry_, "muster_stopped_uploads"), 0);
  ASSERT_TRUE(scheduler.Start().ok());
  EXPECT_EQ(Shown(registry_, "muster_stopped_uploads"), 2);
  EXPECT_EQ(Shown(registry_, "muster_stopped_upload_bytes"), 200);
  scheduler.NoteSender(21);
  EXPECT_EQ(Shown(registry_, "muster_stopped_uploads"), 1);
  EXPECT_EQ(Shown(registry_, "muster_stopped_upload_bytes"), 100);
  metrics_.Close();
}

}  // namespace
}  // namespace muster::initiator
