// SPDX-License-Identifier: Apache-2.0

// The fixture for tests of the controller: real stores in a temporary directory, a clock that the
// test owns, and a report that fails on command.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/status.h"
#include "muster/blob/file/file_blob_store.h"
#include "muster/bus/local/local_buses.h"
#include "muster/bus/trigger_bus.h"
#include "muster/item/queue_names.h"
#include "muster/item/work_item_codec.h"
#include "muster/ledger/rocksdb/rocksdb_batch_ledger.h"
#include "muster/os/temp_dir.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"
#include "muster/report/audit.h"
#include "muster/report/sqlite/sqlite_report_store.h"
#include "muster/v1/item_result.pb.h"
#include "services/controller/controller.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::controller {

// A report that fails its next commits as the test says, and that runs an event of the test just
// before its next receipt.
class UnreliableReport final : public report::ReportStore {
 public:
  struct Failure {
    bool commits_first = false;  // the transaction is durable, but the call answers an error
    absl::Status status;
  };

  explicit UnreliableReport(report::ReportStore* report) : report_(report) {}

  // Call it before the controller starts.
  void FailNext(Failure failure) { failures_.push_back(std::move(failure)); }
  // An error of `event` is the answer to the request for the receipt.
  void BeforeNextReceipt(std::function<absl::Status()> event) {
    base::MutexLock lock(&mu_);
    before_receipt_ = std::move(event);
  }
  // From now on, nothing can be read; or it can again.
  void BeUnreadable(bool unreadable) { unreadable_ = unreadable; }
  int commits() const { return commits_; }
  int receipts() const { return receipts_; }  // that were asked for

  uint64_t epoch() const override { return report_->epoch(); }
  absl::StatusOr<report::Progress> RegisterBatch(const report::BatchShape& shape) override {
    return report_->RegisterBatch(shape);
  }
  absl::StatusOr<report::CommitSummary> Commit(const report::CommitRequest& request) override {
    ++commits_;
    if (failures_.empty()) return report_->Commit(request);
    const Failure failure = std::move(failures_.front());
    failures_.pop_front();
    if (failure.commits_first) {
      EXPECT_TRUE(report_->Commit(request).ok());
    }
    return failure.status;
  }
  absl::Status ReopenDeadLettered(uint64_t batch, absl::Span<const uint64_t> items) override {
    return report_->ReopenDeadLettered(batch, items);
  }
  absl::StatusOr<report::Receipt> Complete(const report::BatchFacts& facts) override {
    ++receipts_;
    std::function<absl::Status()> before;
    {
      base::MutexLock lock(&mu_);
      before = std::exchange(before_receipt_, nullptr);
    }
    if (before) MUSTER_RETURN_IF_ERROR(before());
    return report_->Complete(facts);
  }
  absl::Status CancelBatch(uint64_t batch, const report::Cancellation& cancellation) override {
    return report_->CancelBatch(batch, cancellation);
  }
  absl::StatusOr<report::RetryClaims> ClaimRejections(uint64_t batch,
                                                      const report::RetrySelection& which,
                                                      int64_t max) override {
    return report_->ClaimRejections(batch, which, max);
  }
  absl::StatusOr<int64_t> RecordRetry(uint64_t batch, int64_t retry,
                                      absl::Span<const report::RetriedTransaction> transactions,
                                      uint64_t retried_in) override {
    return report_->RecordRetry(batch, retry, transactions, retried_in);
  }
  absl::StatusOr<bool> ForgetBatch(uint64_t batch, int64_t max_rows) override {
    return report_->ForgetBatch(batch, max_rows);
  }
  absl::Status ForgetJob(const std::string& job) override { return report_->ForgetJob(job); }
  absl::StatusOr<std::unique_ptr<report::ReportReader>> Read() override {
    if (unreadable_) return absl::UnavailableError("the report is put back");
    return report_->Read();
  }

 private:
  report::ReportStore* const report_;  // not owned
  std::deque<Failure> failures_;
  base::Mutex mu_;
  std::function<absl::Status()> before_receipt_ ABSL_GUARDED_BY(mu_);
  std::atomic<int> commits_{0};
  std::atomic<int> receipts_{0};
  std::atomic<bool> unreadable_{false};
};

// Batch records that answer Unavailable for as many of the next calls as the test says.
class AbsentRecords final : public ledger::BatchRecords {
 public:
  explicit AbsentRecords(ledger::BatchRecords* records) : records_(records) {}

  // Call it before the controller starts.
  void BeAwayFor(int calls) { calls_away_ = calls; }
  // From now on, the record of `batch` cannot be read for this reason; OK: it can.
  void Fail(uint64_t batch, absl::Status why) {
    base::MutexLock lock(&mu_);
    faults_[batch] = std::move(why);
  }
  // From now on, callers wait for what becomes of the records of all batches.
  void WantOutcomes() { wants_outcomes_ = true; }
  int views() const { return views_; }  // so far
  // From now on, a batch is marked complete only when so many are on their way to it.
  void MarkTogether(int batches) {
    base::MutexLock lock(&mu_);
    together_ = batches;
  }
  // Questions so far for the record of a batch, alone or in a view. What is changed from now on
  // does not change their answers.
  int questions() const { return questions_; }
  // What was told of the batch; nullopt: nothing.
  std::optional<ledger::BatchOutcome> Told(uint64_t batch) const {
    base::MutexLock lock(&mu_);
    const auto told = told_.find(batch);
    return told == told_.end() ? std::nullopt : std::optional(told->second);
  }
  // From now on, every initiator that is known says that it does not have the batches.
  void BeUnknownToAll(bool unknown) { unknown_ = unknown; }

  absl::StatusOr<ledger::Batch> Get(uint64_t batch) override {
    const absl::Status fault = FaultOf(batch);
    ++questions_;
    if (calls_away_-- > 0) return absl::UnavailableError("nobody has it");
    if (unknown_) return ledger::UnknownToAll(batch, 2);
    MUSTER_RETURN_IF_ERROR(fault);
    return records_->Get(batch);
  }
  absl::StatusOr<std::vector<ledger::ItemBoundary>> Items(uint64_t batch, uint64_t first_index,
                                                          size_t max_items) override {
    MUSTER_RETURN_IF_ERROR(FaultOf(batch));
    return records_->Items(batch, first_index, max_items);
  }
  absl::Status MarkComplete(uint64_t batch, absl::Time when) override {
    MUSTER_RETURN_IF_ERROR(FaultOf(batch));
    {
      base::MutexLock lock(&mu_);
      ++marking_;
      changed_.NotifyAll();
      while (marking_ < together_) changed_.Wait(&mu_);
    }
    return records_->MarkComplete(batch, when);
  }
  absl::StatusOr<ledger::BatchView> View(uint64_t batch, size_t max_items) override {
    MUSTER_ASSIGN_OR_RETURN(ledger::BatchView view, BatchRecords::View(batch, max_items));
    view.wants_outcome = wants_outcomes_;
    ++views_;
    return view;
  }
  absl::Status MarkCompleteAndTell(uint64_t batch, absl::Time when,
                                   const ledger::BatchOutcome& outcome) override {
    MUSTER_RETURN_IF_ERROR(MarkComplete(batch, when));
    base::MutexLock lock(&mu_);
    told_[batch] = outcome;
    return absl::OkStatus();
  }

 private:
  absl::Status FaultOf(uint64_t batch) {
    base::MutexLock lock(&mu_);
    const auto fault = faults_.find(batch);
    return fault == faults_.end() ? absl::OkStatus() : fault->second;
  }

  ledger::BatchRecords* const records_;  // not owned
  std::atomic<int> calls_away_{0};
  std::atomic<bool> unknown_{false};
  std::atomic<bool> wants_outcomes_{false};
  std::atomic<int> views_{0};
  std::atomic<int> questions_{0};
  mutable base::Mutex mu_;
  base::CondVar changed_;
  int together_ ABSL_GUARDED_BY(mu_) = 0;
  int marking_ ABSL_GUARDED_BY(mu_) = 0;  // ever
  std::map<uint64_t, absl::Status> faults_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, ledger::BatchOutcome> told_ ABSL_GUARDED_BY(mu_);
};

// The host of the controller: records its callbacks, for which the test waits.
class Host {
 public:
  Events events() {
    Events events;
    events.on_progress = [this](const report::Progress& progress) {
      base::MutexLock lock(&mu_);
      items_ = progress.items();
      changed_.NotifyAll();
    };
    events.on_complete = [this](uint64_t) {
      base::MutexLock lock(&mu_);
      ++completions_;
      changed_.NotifyAll();
    };
    events.on_error = [this](const absl::Status& status) {
      base::MutexLock lock(&mu_);
      error_ = status;
      changed_.NotifyAll();
    };
    return events;
  }

  void AwaitItems(int64_t items) {
    Await([this, items]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return items_ >= items; });
  }
  // Also ends when the controller stops with an error; that fails the test.
  void AwaitCompletions(int completions) {
    Await([this, completions]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return completions_ >= completions || !error_.ok();
    });
    base::MutexLock lock(&mu_);
    EXPECT_TRUE(error_.ok()) << error_;
  }
  absl::Status AwaitError() {
    Await([this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !error_.ok(); });
    base::MutexLock lock(&mu_);
    return error_;
  }

 private:
  void Await(const std::function<bool()>& reached) {
    base::MutexLock lock(&mu_);
    while (!reached()) changed_.Wait(&mu_);
  }

  base::Mutex mu_;
  base::CondVar changed_;
  int64_t items_ ABSL_GUARDED_BY(mu_) = 0;
  int completions_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Status error_ ABSL_GUARDED_BY(mu_);
};

// Batch 7 of job "shop" with group "by_customer" (customer → revenue). Items have 10 transactions.
class ControllerTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kBatch = 7;

  ControllerTest();

  // Opens a batch with this many items; `seal` ends it.
  void OpenBatch(int items, bool seal = true, uint64_t number = kBatch);
  void Seal() { EXPECT_TRUE(ledger_->Seal(kBatch, 1000).ok()); }

  static v1::ItemResult Result(uint32_t index, const std::string& customer = "ann",
                               const std::string& revenue = "1.25");
  static v1::ItemResult DeadLetter(uint32_t index, const std::string& cause);
  // The body of one message that holds `results`, of which there is at least one.
  static std::string Together(const std::vector<v1::ItemResult>& results);
  // Puts the results into the output queue, without a trigger.
  void PutQuietly(const std::vector<v1::ItemResult>& results);
  void PutBody(const std::string& body) { PutBodies({body}); }
  void PutBodies(absl::Span<const std::string> bodies);
  void Trigger();
  void Put(const std::vector<v1::ItemResult>& results) {
    PutQuietly(results);
    Trigger();
  }

  Dependencies dependencies() {
    return {queues_.get(), &bus_, records_.get(), report_.get(), blobs_.get(), &clock_};
  }
  void Start(Options options = Instantly());
  void Stop() { controller_.reset(); }
  // Asks for a check until its answer says what an earlier one met.
  absl::Status AwaitTrouble() {
    absl::Status trouble;
    while (trouble.ok()) trouble = controller_->CheckCompletion(kBatch);
    return trouble;
  }
  // Passes the controller's waits until `until` (monotonic), or until no result is stored any more.
  void PassUntil(absl::Duration until);
  // Counts each result as soon as it has arrived.
  static Options Instantly();

  report::Progress GetProgress();
  std::vector<std::string> Rows();
  std::vector<std::string> PoisonCauses();
  queue::QueueStats Stats() { return *queues_->Stats(output_); }

  base::FakeClock clock_;
  const queue::QueueId output_ = item::OutputQueue("local", "shop", 0);
  const os::TempDir dir_;
  std::unique_ptr<queue::QueueStore> queues_;
  std::unique_ptr<ledger::BatchLedger> ledger_;
  std::unique_ptr<AbsentRecords> records_;  // of ledger_
  std::unique_ptr<report::ReportStore> sqlite_;
  std::unique_ptr<UnreliableReport> report_;
  std::unique_ptr<blob::BlobStore> blobs_;
  bus::local::LocalTriggerBus bus_;
  std::unique_ptr<Host> host_ = std::make_unique<Host>();
  std::unique_ptr<Controller> controller_;
};

}  // namespace muster::controller
