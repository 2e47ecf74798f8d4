// SPDX-License-Identifier: Apache-2.0

// SqliteReportWriter: what only a writer of a report has: its lock, its connection, and the changes
// that it makes, each in one transaction.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/os/file_descriptor.h"
#include "muster/report/report_store.h"
#include "muster/report/sqlite/commit.h"
#include "muster/report/sqlite/connection.h"
#include "muster/report/sqlite/group_commit.h"
#include "muster/report/sqlite/item_rows.h"
#include "muster/report/sqlite/sqlite_report_store.h"

namespace muster::report::sqlite {

// One thread at a time. Errors are those of ReportStore, without the path of the report.
class SqliteReportWriter {
 public:
  // Creates the file if need be.
  static absl::StatusOr<std::unique_ptr<SqliteReportWriter>> Open(const std::string& path,
                                                                  const SqliteOptions& options);

  // At least 1, as reports of an earlier muster have it.
  uint64_t epoch() const { return std::max<uint64_t>(epoch_, 1); }

  // Makes changes in one transaction, for GroupCommit.
  void MakeTogether(absl::Span<GroupCommit::Member* const> group);
  // In a transaction of MakeTogether.
  absl::StatusOr<report::Progress> RegisterBatch(const report::BatchShape& shape);
  absl::StatusOr<report::Receipt> Complete(const report::BatchFacts& facts);

  // Each in a transaction of its own.
  absl::StatusOr<report::CommitSummary> Commit(const report::CommitRequest& request,
                                               absl::Time now);
  absl::Status ReopenDeadLettered(uint64_t batch, absl::Span<const uint64_t> items);
  absl::Status CancelBatch(uint64_t batch, const report::Cancellation& cancellation);
  absl::StatusOr<report::RetryClaims> ClaimRejections(
      uint64_t batch, const report::RetrySelection& which,
      absl::Span<const report::RejectionPosition> found, int64_t max, absl::Time now);
  absl::StatusOr<int64_t> RecordRetry(uint64_t batch, int64_t retry,
                                      absl::Span<const report::RetriedTransaction> transactions,
                                      uint64_t retried_in);
  absl::StatusOr<bool> ForgetBatch(uint64_t batch, int64_t max_rows);
  absl::Status ForgetJob(const std::string& job);

 private:
  SqliteReportWriter(const SqliteOptions& options, uint64_t epoch, os::FileDescriptor lock,
                     std::unique_ptr<Connection> connection, ItemRows items)
      : owner_(options.owner),
        busy_wait_(options.busy_wait),
        epoch_(epoch),
        lock_(std::move(lock)),
        connection_(std::move(connection)),
        items_(std::move(items)) {}

  // Every change is made under the fence. What one wait has not ended is likely to outlast the
  // next: a caller that asks again and again would be out of time before it has heard why.
  absl::StatusOr<Transaction> Begin();
  static absl::Status Bound(Connection* connection, int64_t max_bytes);
  absl::Status StoreReceipt(const report::Receipt& receipt);

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

}  // namespace muster::report::sqlite
