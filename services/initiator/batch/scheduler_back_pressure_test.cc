// SPDX-License-Identifier: Apache-2.0

// BatchScheduler where queues are full: batches stand in line, and hold up no other queue.
#include <fstream>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/item/queue_names.h"
#include "muster/os/temp_dir.h"
#include "muster/report/report_client.h"
#include "muster/report/report_store.h"
#include "services/initiator/batch/scheduler.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::initiator::batch {
namespace {

using ::testing::HasSubstr;

constexpr int kBound = 4;

// Batches of two jobs, "a" and "b", with ten items each. The test is their worker.
class SchedulerBackPressureTest : public ::testing::Test {
 protected:
  // The content is the user's file.
  class Files final : public content::ContentStore {
   public:
    bool Stores(const ledger::Batch&) const override { return false; }
    std::string PathOf(uint64_t) const override { return ""; }
    absl::StatusOr<std::shared_ptr<const input::ByteSource>> OpenContent(uint64_t) override {
      return absl::NotFoundError("none");
    }
    std::optional<uint64_t> DurableBytes(uint64_t) override { return std::nullopt; }
    bool IsSealed(uint64_t) const override { return true; }
    void Refuse(uint64_t, const absl::Status&) override {}
    absl::Status Delete(uint64_t) override { return absl::OkStatus(); }
  };

  SchedulerBackPressureTest() {
    std::ofstream input(input_);
    input << "n\n";
    for (int i = 0; i < 10; ++i) input << i << "\n";
    // The results of all that is worked off wait to be counted: nothing is lost.
    queue::NewMessage result;
    result.body = "results";
    for (const char* job : {"a", "b"}) {
      const queue::QueueId results = item::OutputQueue("acme", job, 0);
      EXPECT_TRUE(queues_->CreateQueue(results, {}).ok());
      EXPECT_TRUE(queues_->Put(results, {result}).ok());
    }
  }
  ~SchedulerBackPressureTest() override {
    if (scheduler_ != nullptr) scheduler_->Stop();
  }

  void Create(uint64_t number, const std::string& job) {
    ledger::Batch batch;
    batch.number = number;
    batch.request_id = absl::StrCat(number);
    batch.job = job;
    batch.job_definition = absl::StrCat(
        "name: ", job, "\ninput: {format: csv, columns: {n: n}}\nitem: {transactions: 1}\n",
        "handler: {linked: x}\n",
        "groups:\n  - {name: by_key, keys: [key], measures: {lines: int}}\n");
    batch.source_path = input_;
    batch.created = clock_.Now();
    ASSERT_TRUE(ledger_->Create(batch).ok());
  }
  void Start() {
    EngineDependencies tools;
    tools.stores = {queues_.get(), bus_.get(), ledger_.get(), blobs_.get(), &clock_};
    tools.options.account = "acme";
    tools.content = &content_;
    tools.report_client = &report_client_;
    tools.back_pressure = &back_pressure_;
    scheduler_ = std::make_unique<BatchScheduler>(tools, SchedulerOptions{.threads = 1});
    ASSERT_TRUE(scheduler_->Start().ok());
    clock_.AwaitSleepers(1);
  }
  // Returns once the scheduler's only thread has nothing more to do.
  void Pass(absl::Duration time) {
    clock_.Advance(time);
    clock_.AwaitSleepers(1);
  }
  // Returns once it is so; a step of the scheduler makes it so.
  void Await(const std::function<bool()>& is_so) {
    for (uint64_t seen = 0; !is_so();) scheduler_->AwaitNews(&seen, absl::InfiniteDuration());
    clock_.AwaitSleepers(1);
  }
  void AwaitHeld(int64_t batches) {
    Await([&] { return back_pressure_.counters().held_batches == batches; });
  }
  // Workers take all that the job's queue holds, and the scheduler looks. Answers how many.
  int WorkOff(const std::string& job) {
    int done = 0;
    const queue::QueueId id = item::InputQueue("acme", job, 0);
    const auto messages = *queues_->Receive(id, {32});
    for (const queue::Message& message : messages) {
      EXPECT_TRUE(queues_->Delete(id, {message.receipt})->front().ok());
      ++done;
    }
    Pass(absl::Seconds(1));
    return done;
  }
  uint64_t Enqueued(uint64_t batch) { return ledger_->Get(batch)->enqueued_items; }

  const os::TempDir dir_;
  const backend::DataDirUrls urls_{dir_.path()};
  const std::string input_ = dir_ / "in.csv";
  base::FakeClock clock_;
  Files content_;
  const std::unique_ptr<queue::QueueStore> queues_ =
      backend::OpenQueueStore(urls_.queue, backend::Mode::kReadWrite, backend::Holders::kInProcess,
                              &clock_)
          .value();
  const std::unique_ptr<ledger::BatchLedger> ledger_ =
      backend::OpenBatchLedger(urls_.ledger, backend::Mode::kReadWrite).value();
  const std::unique_ptr<blob::BlobStore> blobs_ = backend::OpenBlobStore(urls_.blobs).value();
  const std::unique_ptr<bus::TriggerBus> bus_ = backend::OpenTriggerBus("local:").value();
  const std::unique_ptr<report::ReportStore> report_ =
      backend::OpenReportStore(urls_.report, backend::Mode::kReadWrite, &clock_).value();
  report::LocalReportClient report_client_{report_.get(),
                                           [](uint64_t) { return absl::OkStatus(); }};
  BackPressure back_pressure_{{.max_items = kBound}, queues_.get(), &clock_};
  std::unique_ptr<BatchScheduler> scheduler_;
};

TEST_F(SchedulerBackPressureTest, ABatchThatNoWorkerServesHoldsUpNoOtherQueue) {
  Create(1, "a");
  Create(2, "b");
  Start();
  EXPECT_EQ(Enqueued(1), 4u);
  EXPECT_EQ(Enqueued(2), 4u);
  EXPECT_EQ(WorkOff("b"), 4);
  EXPECT_EQ(WorkOff("b"), 4);
  EXPECT_EQ(WorkOff("b"), 2);
  EXPECT_EQ(Enqueued(1), 4u);
  EXPECT_EQ(Enqueued(2), 10u);
}

TEST_F(SchedulerBackPressureTest, TheStatusSaysWhyABatchWaitsAndHowMuchOfIt) {
  Create(1, "a");
  Start();
  absl::StatusOr<BatchStatus> status = scheduler_->Get(1);
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_THAT(status->problem.message(), HasSubstr("its queue holds 4 items, the bound"));
  EXPECT_EQ(status->held_back_items, 6u);
  EXPECT_EQ(status->batch.items, 10u);
  WorkOff("a");
  WorkOff("a");
  status = scheduler_->Get(1);
  EXPECT_TRUE(status->problem.ok()) << status->problem;
  EXPECT_EQ(status->held_back_items, 0u);
}

TEST_F(SchedulerBackPressureTest, BatchesOfAQueueTakeTheirTurnsInTheOrderInWhichTheyCame) {
  Create(1, "a");
  Start();
  Create(2, "a");
  scheduler_->Advance(2);
  AwaitHeld(2);
  Create(3, "a");
  scheduler_->Advance(3);
  AwaitHeld(3);
  EXPECT_EQ(WorkOff("a"), 4);
  EXPECT_EQ(Enqueued(1), 8u);
  EXPECT_EQ(Enqueued(2), 0u);
  EXPECT_EQ(WorkOff("a"), 4);
  EXPECT_EQ(Enqueued(1), 10u);
  EXPECT_EQ(Enqueued(2), 2u) << "at once when the first is put, without a look of its own";
  EXPECT_EQ(Enqueued(3), 0u);
  for (int i = 0; i < 5; ++i) WorkOff("a");
  EXPECT_EQ(Enqueued(3), 10u);
}

TEST_F(SchedulerBackPressureTest, ABatchThatIsHeldBackIsCancelledAtOnceAndTheNextHasItsTurn) {
  Create(1, "a");
  Create(2, "a");
  Start();
  EXPECT_EQ(back_pressure_.counters().held_batches, 2);
  ASSERT_TRUE(scheduler_->Cancel(1, "sent twice").ok());
  EXPECT_EQ(ledger_->Get(1)->state, ledger::BatchState::kCancelled);
  AwaitHeld(1);
  EXPECT_EQ(WorkOff("a"), 4);
  EXPECT_EQ(Enqueued(1), 4u);
  EXPECT_EQ(Enqueued(2), 4u);
}

TEST_F(SchedulerBackPressureTest, StopsAtOnceAndTheNextSchedulerGoesOn) {
  Create(1, "a");
  Start();
  EXPECT_EQ(Enqueued(1), 4u);
  scheduler_->Stop();
  scheduler_.reset();
  Start();
  EXPECT_EQ(WorkOff("a"), 4);
  EXPECT_EQ(Enqueued(1), 8u);
}

}  // namespace
}  // namespace muster::initiator::batch
