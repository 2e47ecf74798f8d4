// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/batch/scheduler.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/base/mutex.h"
#include "muster/base/proto_time.h"
#include "muster/item/queue_names.h"
#include "muster/job/job_file.h"
#include "muster/os/temp_dir.h"
#include "muster/report/report_client.h"
#include "services/initiator/batch/status.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/base/log_capture.h"

namespace muster::initiator::batch {
namespace {

using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;

constexpr absl::Duration kPatience = absl::Seconds(2);

class CancelAcksTest : public ::testing::Test {
 protected:
  static absl::Status Ok() { return absl::OkStatus(); }

  base::FakeClock clock_;
  CancelAcks acks_{&clock_};
};

TEST_F(CancelAcksTest, WaitForNobodyLongerThanUntilAllHaveAnswered) {
  const auto cancel = [this] {
    acks_.OnAcknowledged(7, "a");
    acks_.OnAcknowledged(7, "b");
    acks_.OnAcknowledged(7, "a");
    return absl::OkStatus();
  };
  EXPECT_EQ(acks_.Collect(7, {"a", "b"}, kPatience, cancel).value(), 2);
  EXPECT_EQ(acks_.Collect(7, {}, kPatience, Ok).value(), 0);
}

TEST_F(CancelAcksTest, CountThoseWhoAnswerWhileTheyAreWaitedFor) {
  std::thread later([this] {
    clock_.AwaitSleepers(1);
    acks_.OnAcknowledged(7, "b");
  });
  const auto cancel = [this] {
    acks_.OnAcknowledged(7, "a");
    return absl::OkStatus();
  };
  EXPECT_EQ(acks_.Collect(7, {"a", "b"}, kPatience, cancel).value(), 2);
  later.join();
}

TEST_F(CancelAcksTest, GiveUpOnThoseWhoSayNothing) {
  std::thread later([this] {
    clock_.AwaitSleepers(1);
    clock_.Advance(kPatience);
  });
  const auto cancel = [this] {
    acks_.OnAcknowledged(7, "a");
    acks_.OnAcknowledged(7, "nobody asked");
    acks_.OnAcknowledged(8, "b");
    return absl::OkStatus();
  };
  EXPECT_EQ(acks_.Collect(7, {"a", "b"}, kPatience, cancel).value(), 1);
  later.join();
}

TEST_F(CancelAcksTest, AreNotWaitedForWhenNothingWasCancelled) {
  const auto refuse = [] { return absl::NotFoundError("no such batch"); };
  EXPECT_TRUE(absl::IsNotFound(acks_.Collect(7, {"a"}, kPatience, refuse).status()));
}

TEST_F(CancelAcksTest, OfAnEarlierCancellationDoNotCount) {
  const auto cancel = [this] {
    acks_.OnAcknowledged(7, "a");
    return absl::OkStatus();
  };
  EXPECT_EQ(acks_.Collect(7, {"a"}, kPatience, cancel).value(), 1);
  std::thread later([this] {
    clock_.AwaitSleepers(1);
    clock_.Advance(kPatience);
  });
  EXPECT_EQ(acks_.Collect(7, {"a"}, kPatience, Ok).value(), 0);
  later.join();
}

// Batches that are over, and the content and claims that they leave.
class SweepTest : public ::testing::Test {
 protected:
  class NoContent final : public content::ContentStore {
   public:
    bool Stores(const ledger::Batch&) const override { return true; }
    std::string PathOf(uint64_t) const override { return ""; }
    absl::StatusOr<std::shared_ptr<const input::ByteSource>> OpenContent(uint64_t) override {
      return absl::NotFoundError("none");
    }
    std::optional<uint64_t> DurableBytes(uint64_t) override { return std::nullopt; }
    bool IsSealed(uint64_t) const override { return true; }
    void Refuse(uint64_t, const absl::Status&) override {}
    absl::Status Delete(uint64_t batch) override {
      base::MutexLock lock(&mu_);
      deleted_.insert(batch);
      changed_.NotifyAll();
      return absl::OkStatus();
    }
    void Forget() {
      base::MutexLock lock(&mu_);
      deleted_.clear();
    }
    void AwaitDeleted(uint64_t batch) {
      base::MutexLock lock(&mu_);
      while (!deleted_.contains(batch)) changed_.Wait(&mu_);
    }

   private:
    base::Mutex mu_;
    base::CondVar changed_;
    std::set<uint64_t> deleted_ ABSL_GUARDED_BY(mu_);
  };

  // A batch that was cancelled so long ago.
  void AddCancelled(uint64_t number, absl::Duration ago) {
    ledger::Batch batch;
    batch.number = number;
    batch.request_id = absl::StrCat("request ", number);
    batch.request_claimed = true;
    ASSERT_TRUE(ledger_->Create(batch).ok());
    ASSERT_TRUE(ledger_->Cancel(number, clock_.Now() - ago, "").ok());
    // As its engine does.
    ASSERT_TRUE(ledger_->NoteBlobsDeleted(number, clock_.Now() - ago).ok());
  }

  // Sweeps once; `last` is the last batch that the sweep deletes.
  void Sweep(uint64_t last) {
    EngineDependencies tools;
    tools.stores = {nullptr, bus_.get(), ledger_.get(), nullptr, &clock_};
    tools.content = &content_;
    tools.release_request = [this](const ledger::Batch& batch) {
      released_.push_back(batch.number);
      return release_answer_;
    };
    BatchScheduler scheduler(tools, {.threads = 1});
    ASSERT_TRUE(scheduler.Start().ok());
    content_.AwaitDeleted(last);
    scheduler.Stop();
  }

  const os::TempDir dir_;
  base::FakeClock clock_;
  const std::unique_ptr<ledger::BatchLedger> ledger_ =
      backend::OpenBatchLedger(backend::DataDirUrls(dir_.path()).ledger, backend::Mode::kReadWrite)
          .value();
  const std::unique_ptr<bus::TriggerBus> bus_ = backend::OpenTriggerBus("local:").value();
  NoContent content_;
  std::vector<uint64_t> released_;
  absl::Status release_answer_;
};

TEST_F(SweepTest, ClaimsLostRequestIdsAgainWhenItStartsAndWhenTheStoresAreBack) {
  std::promise<void> at_start, when_back;
  int calls = 0;
  EngineDependencies tools;
  tools.stores = {nullptr, bus_.get(), ledger_.get(), nullptr, &clock_};
  tools.restore_requests = [&] {
    (++calls == 1 ? at_start : when_back).set_value();
    return absl::OkStatus();
  };
  BatchScheduler scheduler(tools, {.threads = 1});
  ASSERT_TRUE(scheduler.Start().ok());
  at_start.get_future().wait();
  scheduler.RestoreRequests();
  when_back.get_future().wait();
  scheduler.Stop();
}

// A store that a server lost is made anew a while after the server is back: chaos had a batch twice
// where its claim was tried once, too early.
TEST_F(SweepTest, TriesToClaimLostRequestIdsUntilTheStoreTakesThem) {
  constexpr int kFailures = 3;
  std::array<std::promise<void>, kFailures + 1> called;
  int calls = 0;
  EngineDependencies tools;
  tools.stores = {nullptr, bus_.get(), ledger_.get(), nullptr, &clock_};
  tools.restore_requests = [&] {
    called.at(static_cast<size_t>(calls++)).set_value();
    return calls <= kFailures ? absl::UnavailableError("stream KV_muster is gone")
                              : absl::OkStatus();
  };
  BatchScheduler scheduler(tools, {.threads = 1});
  ASSERT_TRUE(scheduler.Start().ok());
  for (std::promise<void>& call : called) {
    std::future<void> done = call.get_future();
    while (done.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
      clock_.Advance(absl::Milliseconds(100));
    }
  }
  for (int i = 0; i < 10; ++i) clock_.Advance(absl::Seconds(1));  // a further call would throw
  scheduler.Stop();
}

TEST_F(SweepTest, ReleasesTheRequestIdsOfBatchesThatEndedADayAgoOnce) {
  AddCancelled(1, absl::Hours(1));
  AddCancelled(2, absl::Hours(25));
  AddCancelled(3, absl::Hours(26));
  Sweep(2);
  EXPECT_THAT(released_, ElementsAre(3, 2)) << "the longest due first";
  EXPECT_TRUE(ledger_->Get(1)->request_claimed);
  EXPECT_FALSE(ledger_->Get(2)->request_claimed);
  AddCancelled(4, absl::Hours(25));
  Sweep(4);
  EXPECT_THAT(released_, ElementsAre(3, 2, 4)) << "what is released is not asked for again";
}

TEST_F(SweepTest, DeletesContentAlsoWhenNoRequestIdCanBeReleasedAndReleasesItLater) {
  AddCancelled(2, absl::Hours(25));
  AddCancelled(3, absl::Hours(26));
  release_answer_ = absl::UnavailableError("no server");
  Sweep(2);
  EXPECT_THAT(released_, ElementsAre(3)) << "the store is not asked for each batch in vain";
  EXPECT_TRUE(ledger_->Get(2)->request_claimed);
  release_answer_ = absl::OkStatus();
  released_.clear();
  content_.Forget();
  Sweep(2);
  EXPECT_THAT(released_, ElementsAre(3, 2));
}

constexpr char kSlowJob[] = R"(
name: slow
input: {format: csv, columns: {n: n}}
item: {transactions: 10}
handler: {linked: slow}
groups:
  - {name: by_key, keys: [key], measures: {lines: int}}
)";

// A report that never counts anything, notes which batches are asked about, and can hold the
// answers back.
class IdleReport final : public report::ReportClient {
 public:
  // Each batch that is asked about, once for each run of questions about it.
  std::vector<uint64_t> asked() {
    base::MutexLock lock(&mu_);
    return asked_;
  }
  int questions() {
    base::MutexLock lock(&mu_);
    return questions_;
  }
  void Hold() {
    base::MutexLock lock(&mu_);
    hold_ = true;
    asked_.clear();
  }
  void AwaitHeld() {
    base::MutexLock lock(&mu_);
    while (held_ == 0) changed_.Wait(&mu_);
  }
  void Release() {
    base::MutexLock lock(&mu_);
    hold_ = false;
    changed_.NotifyAll();
  }

  // Calls `on_question` with each question about a batch.
  void OnQuestion(std::function<void(uint64_t)> on_question) {
    base::MutexLock lock(&mu_);
    on_question_ = std::move(on_question);
  }
  void FailToTellDeadLetters(const absl::Status& why) {
    base::MutexLock lock(&mu_);
    dead_letters_ = why;
  }

  // Call it before questions.
  void SetOwner(uint64_t batch, const std::string& owner) { owners_[batch] = owner; }

  absl::StatusOr<report::Progress> GetProgress(uint64_t batch) override {
    std::function<void(uint64_t)> on_question;
    {
      base::MutexLock lock(&mu_);
      on_question = on_question_;
    }
    if (on_question) on_question(batch);
    base::MutexLock lock(&mu_);
    ++questions_;
    if (asked_.empty() || asked_.back() != batch) asked_.push_back(batch);
    ++held_;
    changed_.NotifyAll();
    while (hold_) changed_.Wait(&mu_);
    --held_;
    if (!dead_letters_.ok()) return dead_letters_;
    return ProgressOf(batch);
  }
  absl::StatusOr<report::Progress> RegisterBatch(const report::BatchShape& shape) override {
    return ProgressOf(shape.batch);
  }
  absl::StatusOr<uint64_t> HighestBatch() override { return 0; }
  // Batches have one item.
  absl::StatusOr<std::vector<uint64_t>> UncountedItems(uint64_t, uint64_t, uint64_t,
                                                       size_t) override {
    return std::vector<uint64_t>{0};
  }
  absl::Status CheckCompletion(uint64_t) override { return absl::OkStatus(); }
  absl::StatusOr<report::StoredReceipt> GetReceipt(uint64_t) override {
    return absl::NotFoundError("none");
  }
  absl::StatusOr<report::Tally> GetTally(uint64_t) override { return absl::NotFoundError("none"); }
  absl::Status ReopenDeadLettered(uint64_t, absl::Span<const uint64_t>) override {
    return absl::OkStatus();
  }

 private:
  report::Progress ProgressOf(uint64_t batch) const {
    report::Progress progress;
    progress.batch = batch;
    if (const auto owner = owners_.find(batch); owner != owners_.end()) {
      progress.owner = owner->second;
    }
    return progress;
  }

  std::map<uint64_t, std::string> owners_;
  base::Mutex mu_;
  base::CondVar changed_;
  std::vector<uint64_t> asked_ ABSL_GUARDED_BY(mu_);
  int questions_ ABSL_GUARDED_BY(mu_) = 0;
  int held_ ABSL_GUARDED_BY(mu_) = 0;
  bool hold_ ABSL_GUARDED_BY(mu_) = false;
  std::function<void(uint64_t)> on_question_ ABSL_GUARDED_BY(mu_);
  absl::Status dead_letters_ ABSL_GUARDED_BY(mu_);
};

// Batches of a slow job: they are put, and wait for results that do not come.
class BatchSchedulerTest : public ::testing::Test {
 protected:
  BatchSchedulerTest() {
    std::ofstream(input_) << "n\n1\n";
    EXPECT_TRUE(CreateQueues(queues_.get(), "acme", job_).ok());
    // The queues are never empty: nothing is lost.
    queue::NewMessage message;
    message.body = "an item";
    for (const queue::QueueId& id : item::InputQueues("acme", "slow", job_.queue.partitions)) {
      EXPECT_TRUE(queues_->Put(id, {message}).ok());
    }
    options_.threads = 1;
  }

  void Create(uint64_t number, const std::string& owner = "",
              const std::string& definition = kSlowJob) {
    ledger::Batch batch;
    batch.number = number;
    batch.owner = owner;
    batch.request_id = absl::StrCat(number);
    batch.job = "slow";
    batch.job_definition = definition;
    batch.source_path = input_;
    batch.source_size = 4;
    batch.created = clock_.Now();
    ASSERT_TRUE(ledger_->Create(batch, {{2, 2, 2, 1, base::Fingerprint("1\n")}}).ok());
  }

  void CreateWaiting(uint64_t number) {
    Create(number);
    ASSERT_TRUE(ledger_->MarkEnqueued(number, 1, {}).ok());
    ASSERT_TRUE(ledger_->Seal(number, 4).ok());
  }

  void MakeScheduler() {
    EngineDependencies tools;
    tools.stores = {queues_.get(), bus_.get(), ledger_.get(), blobs_.get(), &clock_};
    tools.options.account = "acme";
    tools.report_client = &report_;
    scheduler_ = std::make_unique<BatchScheduler>(tools, options_);
  }

  void Start() {
    MakeScheduler();
    ASSERT_TRUE(scheduler_->Start().ok());
    clock_.AwaitSleepers(1);
  }

  // As when their streams are deleted.
  void MakeQueuesAnew() {
    for (const queue::QueueId& id : {input_queue_, output_queue_}) {
      ASSERT_TRUE(queues_->DeleteQueue(id).ok());
      ASSERT_TRUE(queues_->CreateQueue(id, {}).ok());
    }
  }

  // Another batch of the job trickles on: it always has a message in each queue.
  // OK: within `time` the input queue holds the items of so many other batches.
  absl::Status TrickleOnUntilPutAgain(uint64_t batches, absl::Duration time) {
    constexpr absl::Duration kStep = absl::Milliseconds(100);
    uint64_t foreign = 0;
    int64_t there = 0;
    for (absl::Duration passed; passed < time; passed += kStep) {
      for (const queue::QueueId& id : {input_queue_, output_queue_}) {
        queue::NewMessage message;
        message.body = "of another batch";
        MUSTER_RETURN_IF_ERROR(queues_->Put(id, {message}).status());
      }
      ++foreign;
      if (foreign > 1) {
        MUSTER_ASSIGN_OR_RETURN(const auto counted, queues_->Receive(output_queue_, {1}));
        MUSTER_RETURN_IF_ERROR(queues_->Delete(output_queue_, {counted.front().receipt}).status());
      }
      Pass(kStep);
      MUSTER_ASSIGN_OR_RETURN(const queue::QueueStats stats, queues_->Stats(input_queue_));
      there = stats.ready - static_cast<int64_t>(foreign);
      if (there == static_cast<int64_t>(batches)) return absl::OkStatus();
    }
    return absl::DeadlineExceededError(absl::StrCat("only ", there, " are there again"));
  }

  // Returns once the scheduler's only thread has nothing more to do.
  void Pass(absl::Duration time) {
    clock_.Advance(time);
    clock_.AwaitSleepers(1);
  }

  const os::TempDir dir_;
  const backend::DataDirUrls urls_{dir_.path()};
  const std::string input_ = dir_ / "in.csv";
  base::FakeClock clock_;
  const job::JobDefinition job_ = job::ParseJob(kSlowJob, "job.yaml").value();
  const queue::QueueId input_queue_ = item::InputQueues("acme", "slow", 1).front();
  const queue::QueueId output_queue_ = item::OutputQueue("acme", "slow", 0);
  const std::unique_ptr<queue::QueueStore> queues_ =
      backend::OpenQueueStore(urls_.queue, backend::Mode::kReadWrite, backend::Holders::kInProcess,
                              &clock_)
          .value();
  const std::unique_ptr<ledger::BatchLedger> ledger_ =
      backend::OpenBatchLedger(urls_.ledger, backend::Mode::kReadWrite).value();
  const std::unique_ptr<blob::BlobStore> blobs_ = backend::OpenBlobStore(urls_.blobs).value();
  const std::unique_ptr<bus::TriggerBus> bus_ = backend::OpenTriggerBus("local:").value();
  IdleReport report_;
  SchedulerOptions options_;
  std::unique_ptr<BatchScheduler> scheduler_;
};

TEST_F(BatchSchedulerTest, ChecksABatchForLossOnceInAnInterval) {
  CreateWaiting(1);
  Start();
  Pass(options_.check_spacing);
  const int first = report_.questions();
  EXPECT_GT(first, 0);
  Pass(options_.loss_check_interval - absl::Milliseconds(1));
  EXPECT_EQ(report_.questions(), first);
  Pass(absl::Milliseconds(1));
  EXPECT_EQ(report_.questions(), 2 * first);
}

// With the intervals of a mesh, and as many batches as are each checked once in one of them.
TEST_F(BatchSchedulerTest, HasWhatALostQueueHeldInItAgainWithinTenSeconds) {
  const uint64_t batches =
      static_cast<uint64_t>(options_.loss_check_interval / options_.check_spacing);
  for (uint64_t number = 1; number <= batches; ++number) CreateWaiting(number);
  Start();
  Pass(options_.loss_check_interval);
  MakeQueuesAnew();
  EXPECT_EQ(TrickleOnUntilPutAgain(batches, absl::Seconds(10)), absl::OkStatus());
}

TEST_F(BatchSchedulerTest, ManyWaitingBatchesCostNoMoreThanSome) {
  options_.check_spacing = absl::Seconds(1);
  for (uint64_t number = 1; number <= 20; ++number) CreateWaiting(number);
  Start();
  for (int second = 0; second < 100; ++second) Pass(absl::Seconds(1));
  // One check a second. Every two seconds for each batch would be a thousand.
  EXPECT_THAT(report_.asked().size(), ::testing::AllOf(Ge(80u), Le(101u)));
}

// Workers would leave the items of the other batch unrun.
TEST_F(BatchSchedulerTest, TellsNoWorkerOfACancelledBatchWhoseNumberIsAnothers) {
  Create(1, "ours");
  Create(2, "ours");
  report_.SetOwner(1, "another's");
  report_.SetOwner(2, "ours");
  std::vector<uint64_t> told;
  const auto heard = bus_->Subscribe([&told](const bus::InterRoleCommunicationEvent& event) {
    const auto* const cancelled = std::get_if<bus::BatchCancelledEvent>(&event.payload);
    if (cancelled != nullptr) told.push_back(cancelled->batch);
  });
  ASSERT_TRUE(heard.ok()) << heard.status();
  MakeScheduler();
  EXPECT_EQ(scheduler_->Cancel(1, "unwanted"), absl::OkStatus());
  EXPECT_EQ(scheduler_->Cancel(2, "unwanted"), absl::OkStatus());
  EXPECT_THAT(told, ElementsAre(2));
}

// Each batch that waited told of each one before it: a thousand of them logged half a million
// lines.
TEST_F(BatchSchedulerTest, TellsOnceThatABatchWaitsForThoseBeforeIt) {
  const base::LogCapture log;
  // None of those before it can be put.
  for (const uint64_t number : {1, 2}) Create(number, "", "no job");
  Create(3, "", absl::StrCat(kSlowJob, "order_by: n\n"));
  ASSERT_TRUE(ledger_->Seal(3, 4).ok());
  const auto told = [&log] {
    const std::vector<std::string> lines = log.lines();
    return std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
      return absl::StrContains(line, "keeps the order of its batches");
    });
  };
  Start();
  Pass(absl::Seconds(20));
  EXPECT_THAT(std::string(scheduler_->Get(3)->problem.message()), HasSubstr("batch 1,"));
  EXPECT_EQ(told(), 1);
  ASSERT_TRUE(ledger_->CancelIfOpen(1, clock_.Now(), "not needed").ok());
  for (int i = 0; i < 3; ++i) Pass(absl::Seconds(20));
  EXPECT_THAT(std::string(scheduler_->Get(3)->problem.message()), HasSubstr("batch 2,"));
  EXPECT_EQ(told(), 1);
}

TEST_F(BatchSchedulerTest, ANewBatchGoesBeforeTheChecksThatAreDue) {
  for (uint64_t number = 1; number <= 5; ++number) CreateWaiting(number);
  Start();
  for (int i = 0; i < 5; ++i) Pass(options_.check_spacing);
  report_.Hold();
  clock_.Advance(absl::Seconds(30));
  report_.AwaitHeld();
  Create(6);
  scheduler_->Advance(6);
  report_.Release();
  clock_.AwaitSleepers(1);
  EXPECT_THAT(report_.asked(), ElementsAre(1, 6, 2, 3, 4, 5));
}

TEST_F(BatchSchedulerTest, NewsHoldsUpNoCheckForLong) {
  for (uint64_t number = 1; number <= 5; ++number) CreateWaiting(number);
  Start();
  for (int i = 0; i < 5; ++i) Pass(options_.check_spacing);
  report_.Hold();
  clock_.Advance(absl::Minutes(5));
  report_.AwaitHeld();
  Create(6);
  scheduler_->Advance(6);
  report_.Release();
  clock_.AwaitSleepers(1);
  EXPECT_THAT(report_.asked(), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(BatchSchedulerTest, RemovesWhatABatchLeavesWhenItsRetentionEnds) {
  CreateWaiting(1);
  ASSERT_TRUE(ledger_->MarkComplete(1, clock_.Now()).ok());
  CreateWaiting(2);
  Start();
  Pass(ledger::Retention().items - absl::Minutes(1));
  EXPECT_EQ(ledger_->Items(1, 0, 1)->size(), 1u);
  for (int minute = 0; minute < 2; ++minute) Pass(absl::Minutes(1));
  EXPECT_EQ(ledger_->Items(1, 0, 1)->size(), 0u);
  EXPECT_EQ(ledger_->Items(2, 0, 1)->size(), 1u) << "it waits for results";
}

// There is always a batch that is due: its step makes it due again.
TEST_F(BatchSchedulerTest, RemovesWhatIsDueUnderALoadThatNeverEnds) {
  CreateWaiting(1);
  ASSERT_TRUE(ledger_->MarkComplete(1, clock_.Now()).ok());
  CreateWaiting(2);
  Start();
  std::atomic<bool> has_ended = false;
  report_.OnQuestion([&](uint64_t) {
    if (ledger_->Items(1, 0, 1)->empty()) {
      has_ended = true;
    } else {
      scheduler_->Advance(2);
      clock_.Advance(absl::Seconds(1));
    }
  });
  clock_.Advance(ledger::Retention().items);
  scheduler_->Advance(2);
  while (!has_ended) base::LetOthersRun();
  scheduler_->Stop();
}

TEST_F(BatchSchedulerTest, ListsWhatItCannotRemove) {
  for (const uint64_t number : {1, 2, 3}) {
    CreateWaiting(number);
    ASSERT_TRUE(ledger_->MarkComplete(number, clock_.Now()).ok());
  }
  report_.FailToTellDeadLetters(absl::PermissionDeniedError("not ours to read"));
  Start();
  Pass(ledger::Retention().content);
  const absl::Time since = clock_.Now();
  for (int minute = 0; minute < 5; ++minute) Pass(absl::Minutes(1));
  const auto page = scheduler_->FindRemovalProblems({}, UINT64_MAX, 2);
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->batches.size(), 2u);
  EXPECT_EQ(page->batches[0].number, 3u);
  EXPECT_EQ(page->next_below, 2u);
  const auto statuses = scheduler_->StatusesOf(page->batches);
  ASSERT_TRUE(statuses.ok()) << statuses.status();
  const v1::BatchStatus status = StatusOf(statuses->at(0), 1, clock_.Now());
  EXPECT_EQ(status.removal_problem(), "not ours to read");
  EXPECT_EQ(base::FromProto(status.removal_problem_since()), since);
  EXPECT_THAT(scheduler_->FindRemovalProblems({.job = "other"}, UINT64_MAX, 2)->batches, IsEmpty());
}

TEST_F(BatchSchedulerTest, PutsUnfinishedBatchesFirstAfterAStart) {
  for (uint64_t number = 1; number <= 5; ++number) CreateWaiting(number);
  Create(6);
  Start();
  EXPECT_THAT(report_.asked(), ElementsAre(6));
}

}  // namespace
}  // namespace muster::initiator::batch
