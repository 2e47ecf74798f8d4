// SPDX-License-Identifier: Apache-2.0
#include "muster/report/sqlite/sqlite_report_store.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/failpoint.h"
#include "muster/base/mutex.h"
#include "muster/base/status.h"
#include "muster/os/file_descriptor.h"
#include "muster/report/audit.h"
#include "muster/report/sqlite/commit.h"
#include "muster/report/sqlite/connection.h"
#include "muster/report/sqlite/group_commit.h"
#include "muster/report/sqlite/identity.h"
#include "muster/report/sqlite/output_rows.h"
#include "muster/report/sqlite/removal.h"
#include "muster/report/sqlite/retries.h"
#include "muster/report/sqlite/rows.h"
#include "muster/report/sqlite/schema.h"
#include "muster/report/sqlite/sqlite_report_reader.h"
#include "muster/report/sqlite/write_ahead_log.h"
#include "muster/telemetry/catalogue.h"

namespace muster::report::sqlite {

namespace {

constexpr char kBegin[] = "BEGIN IMMEDIATE";  // a writer that may write from the start

// FULL syncs the log at each commit: what was answered OK survives a power cut. 16 MiB of cache
// hold the tables of a large batch.
// A log that grew while somebody read for long keeps 16 MiB of that when it begins anew.
constexpr char kPragmas[] =
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -16384; "
    "PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = 16777216";

// SQLite would go on without what lies behind the damage, and say nothing.
absl::Status CheckLog(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const int64_t lost, CommitsBehindDamage(path + "-wal"));
  if (lost == 0) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("its write-ahead log is damaged, with ", lost,
                   " commits behind the damage: `muster check --repair` mends the report"));
}

using FileId = std::pair<dev_t, ino_t>;

// nullopt: there is none, or it cannot be told.
std::optional<FileId> FileAt(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  return FileId(info.st_dev, info.st_ino);
}

std::unique_ptr<telemetry::Reading> ReadLogSize(const std::string& path,
                                                telemetry::Registry* metrics) {
  return telemetry::ReadAtScrape(metrics, "report", {telemetry::kSqliteWal.entry()},
                                 [log = path + "-wal"](telemetry::Samples* samples) {
                                   struct stat info;
                                   const bool is_there = stat(log.c_str(), &info) == 0;
                                   samples->Set(telemetry::kSqliteWal, {},
                                                is_there ? static_cast<double>(info.st_size) : 0);
                                   return absl::OkStatus();
                                 });
}

// What only a writer has.
class Writer {
 public:
  static absl::StatusOr<std::unique_ptr<Writer>> Open(const std::string& path,
                                                      const SqliteOptions& options) {
    MUSTER_ASSIGN_OR_RETURN(os::FileDescriptor lock,
                            options.owner.has_value() ? LockForOwner(path) : LockForWriting(path));
    MUSTER_RETURN_IF_ERROR(CheckLog(path));
    MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Connection> connection,
                            Connection::Open(path, OpenMode::kCreate, options.busy_wait));
    MUSTER_RETURN_IF_ERROR(connection->Execute(kPragmas));
    MUSTER_RETURN_IF_ERROR(EnsureSchema(connection.get()));
    MUSTER_RETURN_IF_ERROR(EnsureIdentity(connection.get()));
    if (options.owner.has_value()) {
      MUSTER_RETURN_IF_ERROR(ClaimReport(connection.get(), *options.owner));
    }
    MUSTER_ASSIGN_OR_RETURN(const report::ReportIdentity identity, LoadIdentity(connection.get()));
    MUSTER_RETURN_IF_ERROR(Bound(connection.get(), options.max_bytes));
    MUSTER_ASSIGN_OR_RETURN(ItemRows items, ItemRows::Prepare(connection.get()));
    return std::unique_ptr<Writer>(new Writer(options, identity.epoch, std::move(lock),
                                              std::move(connection), std::move(items)));
  }

  // At least 1, as reports of an earlier muster have it.
  uint64_t epoch() const { return std::max<uint64_t>(epoch_, 1); }

  // Makes changes in one transaction, for GroupCommit.
  void MakeTogether(absl::Span<GroupCommit::Member* const> group) {
    const auto fail_all = [group](const absl::Status& why) {
      for (GroupCommit::Member* const member : group) member->result = why;
    };
    absl::StatusOr<Transaction> transaction = Begin();
    if (!transaction.ok()) return fail_all(transaction.status());
    for (GroupCommit::Member* const member : group) {
      absl::Status marked = connection_->Execute("SAVEPOINT change");
      if (!marked.ok()) return fail_all(marked);
      const absl::Status changed = member->change();
      marked = connection_->Execute(changed.ok() ? "RELEASE change"
                                                 : "ROLLBACK TO change; RELEASE change");
      if (!marked.ok()) {
        // SQLite has undone the whole transaction, as it does when the disk is full.
        fail_all(changed.ok() ? marked
                              : absl::UnavailableError(absl::StrCat("undone with another change: ",
                                                                    changed.message())));
        if (!changed.ok()) member->result = changed;
        return;
      }
      member->result = changed;
    }
    const absl::Status committed = transaction->Commit();
    if (committed.ok()) return;
    for (GroupCommit::Member* const member : group) member->result.Update(committed);
  }

  // In a transaction of MakeTogether.
  absl::StatusOr<report::Progress> RegisterBatch(const report::BatchShape& shape) {
    MUSTER_RETURN_IF_ERROR(report::ValidateBatchShape(shape));
    MUSTER_RETURN_IF_ERROR(EnsureBatch(connection_.get(), shape));
    MUSTER_RETURN_IF_ERROR(EnsureGroupTables(connection_.get(), shape));
    MUSTER_RETURN_IF_ERROR(EnsureOutputColumns(connection_.get(), shape));
    MUSTER_RETURN_IF_ERROR(StoreReplaced(connection_.get(), shape));
    return LoadStanding(connection_.get(), shape.batch);
  }

  absl::StatusOr<report::CommitSummary> Commit(const report::CommitRequest& request,
                                               absl::Time now) {
    if (request.items.size() > report::kMaxCommitItems) {
      return absl::InvalidArgumentError(absl::StrCat("a commit of ", request.items.size(),
                                                     " items; at most ", report::kMaxCommitItems));
    }
    MUSTER_ASSIGN_OR_RETURN(Transaction transaction, Begin());
    CommitRun run(connection_.get(), &items_, &add_row_, &request, now);
    absl::StatusOr<report::CommitSummary> summary = run.Run();
    MUSTER_FAILPOINT("report.in_transaction");
    if (summary.ok()) MUSTER_RETURN_IF_ERROR(transaction.Commit());
    return summary;
  }

  absl::Status ReopenDeadLettered(uint64_t batch, absl::Span<const uint64_t> items) {
    MUSTER_ASSIGN_OR_RETURN(Transaction transaction, Begin());
    MUSTER_ASSIGN_OR_RETURN(report::Progress progress, LoadProgress(connection_.get(), batch));
    MUSTER_ASSIGN_OR_RETURN(const auto retried, LoadRetriedItems(connection_.get(), batch, items));
    if (!retried.empty()) {
      const auto& [item, retried_in] = *retried.begin();
      return absl::FailedPreconditionError(report::RetriedItemInWords(batch, item, retried_in));
    }
    bool any = false;
    for (const uint64_t index : items) {
      const absl::StatusOr<report::ItemRow> row = items_.Get(batch, index);
      if (absl::IsNotFound(row.status())) continue;
      MUSTER_RETURN_IF_ERROR(row.status());
      if (row->outcome != report::ItemOutcome::kDeadLettered) continue;
      MUSTER_RETURN_IF_ERROR(items_.Delete(batch, index));
      AddToProgress(*row, -1, &progress);
      any = true;
    }
    if (any) MUSTER_RETURN_IF_ERROR(StoreReopened(connection_.get(), progress));
    MUSTER_RETURN_IF_ERROR(StoreProgress(connection_.get(), progress));
    return transaction.Commit();
  }

  absl::Status CancelBatch(uint64_t batch, const report::Cancellation& cancellation) {
    MUSTER_ASSIGN_OR_RETURN(Transaction transaction, Begin());
    MUSTER_RETURN_IF_ERROR(StoreCancellation(connection_.get(), batch, cancellation));
    return transaction.Commit();
  }

  absl::StatusOr<report::RetryClaims> ClaimRejections(
      uint64_t batch, const report::RetrySelection& which,
      absl::Span<const report::RejectionPosition> found, int64_t max, absl::Time now) {
    MUSTER_ASSIGN_OR_RETURN(Transaction transaction, Begin());
    MUSTER_ASSIGN_OR_RETURN(
        report::RetryClaims claimed,
        sqlite::ClaimRejections(connection_.get(), batch, which, found, max, now));
    MUSTER_RETURN_IF_ERROR(transaction.Commit());
    return claimed;
  }

  absl::StatusOr<int64_t> RecordRetry(uint64_t batch, int64_t retry,
                                      absl::Span<const report::RetriedTransaction> transactions,
                                      uint64_t retried_in) {
    MUSTER_ASSIGN_OR_RETURN(Transaction transaction, Begin());
    MUSTER_ASSIGN_OR_RETURN(const int64_t left, sqlite::RecordRetry(connection_.get(), batch, retry,
                                                                    transactions, retried_in));
    MUSTER_RETURN_IF_ERROR(transaction.Commit());
    return left;
  }

  absl::StatusOr<bool> ForgetBatch(uint64_t batch, int64_t max_rows) {
    MUSTER_ASSIGN_OR_RETURN(Transaction transaction, Begin());
    MUSTER_ASSIGN_OR_RETURN(const bool done,
                            sqlite::ForgetBatch(connection_.get(), batch, max_rows));
    MUSTER_RETURN_IF_ERROR(transaction.Commit());
    return done;
  }

  // In a transaction of MakeTogether.
  absl::StatusOr<report::Receipt> Complete(const report::BatchFacts& facts) {
    MUSTER_ASSIGN_OR_RETURN(const report::Progress progress,
                            LoadStanding(connection_.get(), facts.batch));
    if (progress.cancelled.has_value()) {
      return absl::FailedPreconditionError(absl::StrCat("batch ", facts.batch, " is cancelled"));
    }
    const std::unique_ptr<report::ReportReader> reader = ReaderOver(connection_.get());
    MUSTER_ASSIGN_OR_RETURN(report::Receipt receipt,
                            report::BuildReceipt(*reader, facts, progress.receipt_revision + 1));
    if (progress.receipt_revision > 0) {
      MUSTER_ASSIGN_OR_RETURN(const report::StoredReceipt stored, reader->GetReceipt(facts.batch));
      MUSTER_ASSIGN_OR_RETURN(report::Receipt issued, report::ParseReceipt(stored.text));
      if (report::ProvesTheSame(issued, receipt)) {
        if (!progress.reopened) return issued;
        MUSTER_RETURN_IF_ERROR(ForgetReopened(connection_.get(), facts.batch));
        return issued;
      }
    }
    MUSTER_RETURN_IF_ERROR(StoreReceipt(receipt));
    MUSTER_RETURN_IF_ERROR(ForgetReopened(connection_.get(), facts.batch));
    return receipt;
  }

 private:
  Writer(const SqliteOptions& options, uint64_t epoch, os::FileDescriptor lock,
         std::unique_ptr<Connection> connection, ItemRows items)
      : owner_(options.owner),
        busy_wait_(options.busy_wait),
        epoch_(epoch),
        lock_(std::move(lock)),
        connection_(std::move(connection)),
        items_(std::move(items)) {}

  // Every change is made under the fence. What one wait has not ended is likely to outlast the
  // next: a caller that asks again and again would be out of time before it has heard why.
  absl::StatusOr<Transaction> Begin() {
    connection_->SetBusyWait(is_locked_out_ ? absl::ZeroDuration() : busy_wait_);
    absl::StatusOr<Transaction> transaction = Transaction::Begin(connection_.get(), kBegin);
    is_locked_out_ = absl::IsUnavailable(transaction.status());
    MUSTER_RETURN_IF_ERROR(transaction.status());
    connection_->SetBusyWait(busy_wait_);
    if (owner_.has_value()) MUSTER_RETURN_IF_ERROR(CheckOwner(connection_.get(), *owner_));
    return transaction;
  }

  static absl::Status Bound(Connection* connection, int64_t max_bytes) {
    if (max_bytes == 0) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(const int64_t page, connection->QueryInt("PRAGMA page_size"));
    return connection->Execute(absl::StrCat("PRAGMA max_page_count = ", max_bytes / page));
  }

  absl::Status StoreReceipt(const report::Receipt& receipt) {
    MUSTER_CHECK(receipt.aggregated + receipt.rejected + receipt.dead_lettered ==
                     static_cast<int64_t>(receipt.transactions),
                 "batch ", receipt.batch, ": transactions ", receipt.transactions, ", aggregated ",
                 receipt.aggregated, ", rejected ", receipt.rejected, ", dead ",
                 receipt.dead_lettered);
    MUSTER_ASSIGN_OR_RETURN(Statement insert,
                            connection_->Prepare("INSERT INTO muster_receipt VALUES (?, ?, ?, ?)"));
    MUSTER_RETURN_IF_ERROR(
        insert.Run(receipt.batch, receipt.revision, receipt.ToText(), receipt.Checksum()));
    MUSTER_ASSIGN_OR_RETURN(
        Statement update,
        connection_->Prepare("UPDATE muster_batch SET receipt_revision = ? WHERE batch = ?"));
    return update.Run(receipt.revision, receipt.batch);
  }

  const std::optional<report::ReportOwner> owner_;  // nullopt: the only writer
  const absl::Duration busy_wait_;
  bool is_locked_out_ = false;  // at the last Begin, another program had a transaction open
  const uint64_t epoch_;
  const os::FileDescriptor lock_;
  const std::unique_ptr<Connection> connection_;
  // Statements: gone before their connection.
  ItemRows items_;
  AddRowStatements add_row_;
};

class SqliteReportStore final : public report::ReportStore {
 public:
  SqliteReportStore(std::string path, const SqliteOptions& options, std::unique_ptr<Writer> writer)
      : path_(std::move(path)),
        file_(FileAt(path_)),
        clock_(options.clock),
        epoch_(writer == nullptr ? 0 : writer->epoch()),
        writes_(writer != nullptr),
        writer_(std::move(writer)),
        changes_([this](absl::Span<GroupCommit::Member* const> group) { MakeTogether(group); }),
        readers_(path_),
        commit_seconds_(
            telemetry::Histograms<0>(options.metrics, telemetry::kSqliteCommit).With({})),
        log_size_(ReadLogSize(path_, options.metrics)) {}

  uint64_t epoch() const override { return epoch_; }

  absl::StatusOr<report::Progress> RegisterBatch(const report::BatchShape& shape) override {
    MUSTER_RETURN_IF_ERROR(CheckWritable());
    absl::StatusOr<report::Progress> progress;
    const absl::Status registered = changes_.Run([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      progress = writer_->RegisterBatch(shape);
      return progress.status();
    });
    if (!registered.ok()) return base::Annotate(registered, path_);
    return progress;
  }

  absl::StatusOr<report::CommitSummary> Commit(const report::CommitRequest& request) override {
    const absl::Time now = clock_->Now();
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(CheckWritable());
    const absl::Duration began = clock_->Monotonic();
    absl::StatusOr<report::CommitSummary> summary = writer_->Commit(request, now);
    if (summary.ok()) commit_seconds_.Observe(clock_->Monotonic() - began);
    if (!summary.ok()) return base::Annotate(summary.status(), path_);
    return summary;
  }

  absl::Status ReopenDeadLettered(uint64_t batch, absl::Span<const uint64_t> items) override {
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(CheckWritable());
    const absl::Status reopened = writer_->ReopenDeadLettered(batch, items);
    // An item that is retried is the caller's matter, not that of the file.
    if (absl::IsFailedPrecondition(reopened)) return reopened;
    return base::Annotate(reopened, path_);
  }

  absl::Status CancelBatch(uint64_t batch, const report::Cancellation& cancellation) override {
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(CheckWritable());
    return base::Annotate(writer_->CancelBatch(batch, cancellation), path_);
  }

  absl::StatusOr<report::RetryClaims> ClaimRejections(uint64_t batch,
                                                      const report::RetrySelection& which,
                                                      int64_t max) override {
    MUSTER_RETURN_IF_ERROR(CheckWritable());
    auto connection = Connection::Open(path_, OpenMode::kReadOnly);
    if (absl::IsNotFound(connection.status())) return NotInPlace(connection.status().message());
    MUSTER_RETURN_IF_ERROR(connection.status());
    MUSTER_ASSIGN_OR_RETURN(const std::vector<report::RejectionPosition> found,
                            FindSelected(connection->get(), batch, which, max));
    const absl::Time now = clock_->Now();
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(CheckWritable());
    absl::StatusOr<report::RetryClaims> claimed =
        writer_->ClaimRejections(batch, which, found, max, now);
    // What the batch has rejected is the caller's matter, not that of the file.
    if (claimed.ok() || absl::IsNotFound(claimed.status()) ||
        absl::IsFailedPrecondition(claimed.status())) {
      return claimed;
    }
    return base::Annotate(claimed.status(), path_);
  }

  absl::StatusOr<int64_t> RecordRetry(uint64_t batch, int64_t retry,
                                      absl::Span<const report::RetriedTransaction> transactions,
                                      uint64_t retried_in) override {
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(CheckWritable());
    absl::StatusOr<int64_t> left = writer_->RecordRetry(batch, retry, transactions, retried_in);
    if (!left.ok()) return base::Annotate(left.status(), path_);
    return left;
  }

  absl::StatusOr<bool> ForgetBatch(uint64_t batch, int64_t max_rows) override {
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(CheckWritable());
    absl::StatusOr<bool> done = writer_->ForgetBatch(batch, max_rows);
    if (!done.ok()) return base::Annotate(done.status(), path_);
    return done;
  }

  absl::StatusOr<report::Receipt> Complete(const report::BatchFacts& facts) override {
    MUSTER_RETURN_IF_ERROR(CheckWritable());
    absl::StatusOr<report::Receipt> receipt;
    const absl::Status issued = changes_.Run([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      receipt = writer_->Complete(facts);
      return receipt.status();
    });
    if (!issued.ok()) return base::Annotate(issued, path_);
    return receipt;
  }

  absl::StatusOr<std::unique_ptr<report::ReportReader>> Read() override {
    // Without a writer, a connection may have been opened as to a file that never changes. Of a
    // file that was moved aside, none may be read on.
    const bool is_pooled = writes_ && FileAt(path_) == file_;
    if (!is_pooled) readers_.Clear();
    auto reader = is_pooled ? readers_.Read() : OpenReader(path_);
    // NotFound would say that what the caller asks for never was. This report was there: it was
    // moved aside, or is being put back.
    if (absl::IsNotFound(reader.status())) return NotInPlace(reader.status().message());
    return reader;
  }

 private:
  void MakeTogether(absl::Span<GroupCommit::Member* const> group) ABSL_LOCKS_EXCLUDED(mu_) {
    base::MutexLock lock(&mu_);
    const absl::Status writable = CheckWritable();
    if (writable.ok()) return writer_->MakeTogether(group);
    for (GroupCommit::Member* const member : group) member->result = writable;
  }

  // Before each change. In a file that was moved aside the writer would go on, and readers would
  // not find what it wrote.
  absl::Status CheckWritable() const {
    if (writer_ == nullptr) {
      return absl::FailedPreconditionError(absl::StrCat("report ", path_, " is open read-only"));
    }
    if (FileAt(path_) == file_) return absl::OkStatus();
    return NotInPlace(absl::StrCat("report ", path_, " is another file or none"));
  }

  static absl::Status NotInPlace(absl::string_view what) {
    return absl::UnavailableError(absl::StrCat(what, "; it was there when it was opened"));
  }

  const std::string path_;
  const std::optional<FileId> file_;
  base::Clock* const clock_;  // not owned
  const uint64_t epoch_;
  const bool writes_;
  base::Mutex mu_;
  const std::unique_ptr<Writer> writer_ ABSL_PT_GUARDED_BY(mu_);  // nullptr when read-only
  GroupCommit changes_;  // of batches that begin and end: there may be many at a time
  ReaderPool readers_;
  const telemetry::Histogram commit_seconds_;
  const std::unique_ptr<telemetry::Reading> log_size_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<report::ReportStore>> OpenSqliteReport(
    const std::string& path, const SqliteOptions& options) {
  std::unique_ptr<Writer> writer;
  if (options.read_only) {
    MUSTER_RETURN_IF_ERROR(base::Annotate(CheckLog(path), absl::StrCat("report ", path)));
    // Says at once what is wrong with the file.
    MUSTER_RETURN_IF_ERROR(OpenReader(path).status());
  } else {
    absl::StatusOr<std::unique_ptr<Writer>> opened = Writer::Open(path, options);
    if (!opened.ok()) return base::Annotate(opened.status(), absl::StrCat("report ", path));
    writer = *std::move(opened);
  }
  return std::make_unique<SqliteReportStore>(path, options, std::move(writer));
}

absl::StatusOr<report::ReportIdentity> ReadIdentity(const std::string& path) {
  absl::StatusOr<report::ReportIdentity> identity =
      [&path]() -> absl::StatusOr<report::ReportIdentity> {
    MUSTER_RETURN_IF_ERROR(CheckLog(path));
    MUSTER_ASSIGN_OR_RETURN(const auto connection, Connection::Open(path, OpenMode::kReadOnly));
    MUSTER_RETURN_IF_ERROR(CheckSchema(connection.get()));
    return LoadIdentity(connection.get());
  }();
  if (!identity.ok()) return base::Annotate(identity.status(), absl::StrCat("report ", path));
  return identity;
}

}  // namespace muster::report::sqlite
