// SPDX-License-Identifier: Apache-2.0
#include "muster/report/sqlite/sqlite_report_writer.h"

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/failpoint.h"
#include "muster/base/status.h"
#include "muster/report/audit.h"
#include "muster/report/sqlite/batch_rows.h"
#include "muster/report/sqlite/identity.h"
#include "muster/report/sqlite/output_rows.h"
#include "muster/report/sqlite/removal.h"
#include "muster/report/sqlite/retries.h"
#include "muster/report/sqlite/retry_claims.h"
#include "muster/report/sqlite/schema.h"
#include "muster/report/sqlite/sqlite_report_reader.h"
#include "muster/report/sqlite/write_ahead_log.h"

namespace muster::report::sqlite {
namespace {

constexpr char kBeginToWrite[] = "BEGIN IMMEDIATE";  // a writer that may write from the start

// FULL syncs the log at each commit: what was answered OK survives a power cut. 16 MiB of cache
// hold the tables of a large batch. A log that grew while somebody read for long is cut to 16 MiB
// when SQLite begins it anew.
constexpr char kPragmas[] =
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -16384; "
    "PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = 16777216";

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteReportWriter>> SqliteReportWriter::Open(
    const std::string& path, const SqliteOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(os::FileDescriptor lock,
                          options.owner.has_value() ? LockForOwner(path) : LockForWriting(path));
  MUSTER_RETURN_IF_ERROR(CheckLogOf(path));
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
  return std::unique_ptr<SqliteReportWriter>(new SqliteReportWriter(
      options, identity.epoch, std::move(lock), std::move(connection), std::move(items)));
}

void SqliteReportWriter::MakeTogether(absl::Span<GroupCommit::Member* const> group) {
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
                            : absl::UnavailableError(
                                  absl::StrCat("undone with another change: ", changed.message())));
      if (!changed.ok()) member->result = changed;
      return;
    }
    member->result = changed;
  }
  const absl::Status committed = transaction->Commit();
  if (committed.ok()) return;
  for (GroupCommit::Member* const member : group) member->result.Update(committed);
}

absl::StatusOr<report::Progress> SqliteReportWriter::RegisterBatch(
    const report::BatchShape& shape) {
  MUSTER_RETURN_IF_ERROR(report::ValidateBatchShape(shape));
  MUSTER_RETURN_IF_ERROR(EnsureBatch(connection_.get(), shape));
  MUSTER_RETURN_IF_ERROR(EnsureGroupTables(connection_.get(), shape));
  MUSTER_RETURN_IF_ERROR(EnsureOutputColumns(connection_.get(), shape));
  MUSTER_RETURN_IF_ERROR(StoreReplaced(connection_.get(), shape));
  return LoadStanding(connection_.get(), shape.batch);
}

absl::StatusOr<report::CommitSummary> SqliteReportWriter::Commit(
    const report::CommitRequest& request, absl::Time now) {
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

absl::Status SqliteReportWriter::ReopenDeadLettered(uint64_t batch,
                                                    absl::Span<const uint64_t> items) {
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

absl::Status SqliteReportWriter::CancelBatch(uint64_t batch,
                                             const report::Cancellation& cancellation) {
  MUSTER_ASSIGN_OR_RETURN(Transaction transaction, Begin());
  MUSTER_RETURN_IF_ERROR(StoreCancellation(connection_.get(), batch, cancellation));
  return transaction.Commit();
}

absl::StatusOr<report::RetryClaims> SqliteReportWriter::ClaimRejections(
    uint64_t batch, const report::RetrySelection& which,
    absl::Span<const report::RejectionPosition> found, int64_t max, absl::Time now) {
  MUSTER_ASSIGN_OR_RETURN(Transaction transaction, Begin());
  MUSTER_ASSIGN_OR_RETURN(
      report::RetryClaims claimed,
      sqlite::ClaimRejections(connection_.get(), batch, which, found, max, now));
  MUSTER_RETURN_IF_ERROR(transaction.Commit());
  return claimed;
}

absl::StatusOr<int64_t> SqliteReportWriter::RecordRetry(
    uint64_t batch, int64_t retry, absl::Span<const report::RetriedTransaction> transactions,
    uint64_t retried_in) {
  MUSTER_ASSIGN_OR_RETURN(Transaction transaction, Begin());
  MUSTER_ASSIGN_OR_RETURN(const int64_t left, sqlite::RecordRetry(connection_.get(), batch, retry,
                                                                  transactions, retried_in));
  MUSTER_RETURN_IF_ERROR(transaction.Commit());
  return left;
}

absl::StatusOr<bool> SqliteReportWriter::ForgetBatch(uint64_t batch, int64_t max_rows) {
  MUSTER_ASSIGN_OR_RETURN(Transaction transaction, Begin());
  MUSTER_ASSIGN_OR_RETURN(const bool done, sqlite::ForgetBatch(connection_.get(), batch, max_rows));
  MUSTER_RETURN_IF_ERROR(transaction.Commit());
  return done;
}

absl::Status SqliteReportWriter::ForgetJob(const std::string& job) {
  MUSTER_ASSIGN_OR_RETURN(Transaction transaction, Begin());
  add_row_.clear();
  MUSTER_RETURN_IF_ERROR(sqlite::ForgetJob(connection_.get(), job));
  return transaction.Commit();
}

absl::StatusOr<report::Receipt> SqliteReportWriter::Complete(const report::BatchFacts& facts) {
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

absl::StatusOr<Transaction> SqliteReportWriter::Begin() {
  connection_->SetBusyWait(is_locked_out_ ? absl::ZeroDuration() : busy_wait_);
  absl::StatusOr<Transaction> transaction = Transaction::Begin(connection_.get(), kBeginToWrite);
  is_locked_out_ = absl::IsUnavailable(transaction.status());
  MUSTER_RETURN_IF_ERROR(transaction.status());
  connection_->SetBusyWait(busy_wait_);
  if (owner_.has_value()) MUSTER_RETURN_IF_ERROR(CheckOwner(connection_.get(), *owner_));
  return transaction;
}

absl::Status SqliteReportWriter::Bound(Connection* connection, int64_t max_bytes) {
  if (max_bytes == 0) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const int64_t page, connection->QueryInt("PRAGMA page_size"));
  return connection->Execute(absl::StrCat("PRAGMA max_page_count = ", max_bytes / page));
}

absl::Status SqliteReportWriter::StoreReceipt(const report::Receipt& receipt) {
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

}  // namespace muster::report::sqlite
