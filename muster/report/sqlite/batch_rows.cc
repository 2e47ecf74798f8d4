// SPDX-License-Identifier: Apache-2.0
#include "muster/report/sqlite/batch_rows.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "muster/base/check.h"
#include "muster/base/status.h"
#include "muster/report/sqlite/retries.h"
#include "muster/report/sqlite/schema.h"

namespace muster::report::sqlite {

namespace {

constexpr char kSelect[] =
    "SELECT batch, job, job_revision, items_counted, items_dead, transactions, aggregated, "
    "rejected, dead_lettered, duplicates, conflicts, attempts, first_counted, last_counted, "
    "receipt_revision FROM muster_batch";

std::optional<absl::Time> TimeAt(const Statement& row, int column) {
  if (row.IsNull(column)) return std::nullopt;
  return absl::FromUnixMicros(row.Int(column));
}

report::Progress ProgressOf(const Statement& row) {
  report::Progress progress;
  progress.batch = static_cast<uint64_t>(row.Int(0));
  progress.job = std::string(row.Text(1));
  progress.job_revision = std::string(row.Text(2));
  progress.items_counted = row.Int(3);
  progress.items_dead = row.Int(4);
  progress.transactions = row.Int(5);
  progress.aggregated = row.Int(6);
  progress.rejected = row.Int(7);
  progress.dead_lettered = row.Int(8);
  progress.duplicates = row.Int(9);
  progress.conflicts = row.Int(10);
  progress.attempts = row.Int(11);
  progress.first_counted = TimeAt(row, 12);
  progress.last_counted = TimeAt(row, 13);
  progress.receipt_revision = row.Int(14);
  return progress;
}

// Empty: it is not known.
absl::StatusOr<std::string> LoadOwner(Connection* connection, uint64_t batch) {
  MUSTER_ASSIGN_OR_RETURN(const bool is_there, HasTable(connection, "main", "muster_owner"));
  if (!is_there) return "";
  MUSTER_ASSIGN_OR_RETURN(Statement query,
                          connection->Prepare("SELECT owner FROM muster_owner WHERE batch = ?"));
  MUSTER_ASSIGN_OR_RETURN(const bool found, query.Bind(batch).Step());
  return found ? std::string(query.Text(0)) : "";
}

// Two initiators may have drawn one number, when the store that counts numbers lost its last
// writes: the first that registers it has it.
absl::Status EnsureOwner(Connection* connection, uint64_t batch, const std::string& owner) {
  if (owner.empty()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const std::string known, LoadOwner(connection, batch));
  if (known == owner) return absl::OkStatus();
  if (!known.empty()) {
    return absl::AlreadyExistsError(
        absl::StrCat("batch ", batch, " is another initiator's, with data directory ", known));
  }
  MUSTER_ASSIGN_OR_RETURN(Statement insert,
                          connection->Prepare("INSERT INTO muster_owner VALUES (?, ?)"));
  return insert.Run(batch, owner);
}

}  // namespace

absl::Status EnsureBatch(Connection* connection, const report::BatchShape& shape) {
  MUSTER_RETURN_IF_ERROR(EnsureOwner(connection, shape.batch, shape.owner));
  MUSTER_ASSIGN_OR_RETURN(Statement insert,
                          connection->Prepare("INSERT INTO muster_batch (batch, job, job_revision) "
                                              "VALUES (?, ?, ?) ON CONFLICT DO NOTHING"));
  MUSTER_RETURN_IF_ERROR(insert.Run(shape.batch, shape.job, shape.job_revision));
  MUSTER_ASSIGN_OR_RETURN(const report::Progress known, LoadProgress(connection, shape.batch));
  if (known.job == shape.job && known.job_revision == shape.job_revision) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("batch ", shape.batch, " is known with job '", known.job, "' revision ",
                   known.job_revision, ", not '", shape.job, "' ", shape.job_revision));
}

absl::StatusOr<report::Progress> LoadProgress(Connection* connection, uint64_t batch) {
  MUSTER_ASSIGN_OR_RETURN(Statement query,
                          connection->Prepare(absl::StrCat(kSelect, " WHERE batch = ?")));
  MUSTER_ASSIGN_OR_RETURN(const bool found, query.Bind(batch).Step());
  if (found) return ProgressOf(query);
  return absl::NotFoundError(absl::StrCat("the report knows no batch ", batch));
}

absl::StatusOr<std::vector<report::Progress>> LoadAllProgress(Connection* connection) {
  MUSTER_ASSIGN_OR_RETURN(Statement query,
                          connection->Prepare(absl::StrCat(kSelect, " ORDER BY batch")));
  return query.Collect([&] { return ProgressOf(query); });
}

absl::StatusOr<std::optional<report::Cancellation>> LoadCancellation(Connection* connection,
                                                                     uint64_t batch) {
  MUSTER_ASSIGN_OR_RETURN(const bool is_there, HasTable(connection, "main", "muster_cancelled"));
  if (!is_there) return std::nullopt;
  MUSTER_ASSIGN_OR_RETURN(
      Statement query,
      connection->Prepare("SELECT cancelled, reason FROM muster_cancelled WHERE batch = ?"));
  MUSTER_ASSIGN_OR_RETURN(const bool found, query.Bind(batch).Step());
  if (!found) return std::nullopt;
  return report::Cancellation{absl::FromUnixMicros(query.Int(0)), std::string(query.Text(1))};
}

namespace {

absl::StatusOr<bool> IsReopened(Connection* connection, const report::Progress& progress) {
  MUSTER_ASSIGN_OR_RETURN(const bool is_there, HasTable(connection, "main", "muster_reopened"));
  if (!is_there) return false;
  MUSTER_ASSIGN_OR_RETURN(
      Statement query,
      connection->Prepare("SELECT 1 FROM muster_reopened WHERE batch = ? AND revision = ?"));
  return query.Bind(progress.batch, progress.receipt_revision).Step();
}

absl::Status LoadReplaced(Connection* connection, report::Progress* progress) {
  MUSTER_ASSIGN_OR_RETURN(const bool is_there, HasTable(connection, "main", "muster_replaced"));
  if (!is_there) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(
      Statement earlier,
      connection->Prepare("SELECT batch FROM muster_replaced WHERE replaced_by = ? "
                          "ORDER BY batch DESC"));
  earlier.Bind(progress->batch);
  MUSTER_ASSIGN_OR_RETURN(progress->replaces,
                          earlier.Collect([&] { return static_cast<uint64_t>(earlier.Int(0)); }));
  MUSTER_ASSIGN_OR_RETURN(
      Statement later,
      connection->Prepare("SELECT coalesce(max(n.batch), 0) FROM muster_replaced r "
                          "JOIN muster_batches n ON n.batch = r.replaced_by "
                          "WHERE r.batch = ? AND n.receipt_revision > 0"));
  MUSTER_RETURN_IF_ERROR(later.Bind(progress->batch).Step().status());
  progress->replaced_by = static_cast<uint64_t>(later.Int(0));
  return absl::OkStatus();
}

}  // namespace

absl::Status StoreReplaced(Connection* connection, const report::BatchShape& shape) {
  MUSTER_ASSIGN_OR_RETURN(
      Statement insert, connection->Prepare("INSERT OR IGNORE INTO muster_replaced VALUES (?, ?)"));
  for (const uint64_t earlier : shape.replaces) {
    MUSTER_RETURN_IF_ERROR(insert.Run(earlier, shape.batch));
  }
  return absl::OkStatus();
}

absl::Status StoreReopened(Connection* connection, const report::Progress& progress) {
  if (progress.receipt_revision == 0) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(
      Statement insert,
      connection->Prepare("INSERT OR REPLACE INTO muster_reopened VALUES (?, ?)"));
  return insert.Run(progress.batch, progress.receipt_revision);
}

absl::Status ForgetReopened(Connection* connection, uint64_t batch) {
  MUSTER_ASSIGN_OR_RETURN(Statement forget,
                          connection->Prepare("DELETE FROM muster_reopened WHERE batch = ?"));
  return forget.Run(batch);
}

absl::StatusOr<report::Progress> LoadStanding(Connection* connection, uint64_t batch) {
  MUSTER_ASSIGN_OR_RETURN(report::Progress progress, LoadProgress(connection, batch));
  MUSTER_ASSIGN_OR_RETURN(progress.reopened, IsReopened(connection, progress));
  MUSTER_ASSIGN_OR_RETURN(progress.cancelled, LoadCancellation(connection, batch));
  MUSTER_ASSIGN_OR_RETURN(progress.owner, LoadOwner(connection, batch));
  MUSTER_RETURN_IF_ERROR(LoadRetries(connection, &progress));
  MUSTER_RETURN_IF_ERROR(LoadReplaced(connection, &progress));
  return progress;
}

absl::Status StoreCancellation(Connection* connection, uint64_t batch,
                               const report::Cancellation& cancellation) {
  MUSTER_RETURN_IF_ERROR(EnsureOwner(connection, batch, cancellation.owner));
  const absl::StatusOr<report::Progress> progress = LoadProgress(connection, batch);
  if (!progress.ok() && !absl::IsNotFound(progress.status())) return progress.status();
  if (progress.ok() && progress->receipt_revision > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("batch ", batch, " is complete and cannot be cancelled: it has a receipt"));
  }
  MUSTER_ASSIGN_OR_RETURN(
      Statement insert,
      connection->Prepare("INSERT INTO muster_cancelled VALUES (?, ?, ?) ON CONFLICT DO NOTHING"));
  return insert.Run(batch, absl::ToUnixMicros(cancellation.when), cancellation.reason);
}

void AddToProgress(const report::ItemFacts& item, int sign, report::Progress* progress) {
  MUSTER_CHECK(sign == 1 || sign == -1, "sign ", sign);
  const bool dead = item.outcome == report::ItemOutcome::kDeadLettered;
  // Not of an item that is taken back: that one comes from the disk.
  MUSTER_CHECK(sign < 0 || item.aggregated + item.rejected + (dead ? item.transactions : 0) ==
                               item.transactions,
               "item ", item.batch, "/", item.index, ": transactions ", item.transactions,
               ", aggregated ", item.aggregated, ", rejected ", item.rejected, ", dead ",
               int{dead});
  progress->items_counted += dead ? 0 : sign;
  progress->items_dead += dead ? sign : 0;
  progress->transactions += sign * item.transactions;
  progress->aggregated += sign * item.aggregated;
  progress->rejected += sign * item.rejected;
  progress->dead_lettered += dead ? sign * item.transactions : 0;
  progress->attempts += sign * item.attempts;
}

// A time that is not known yet goes in as NULL by way of nullif: no batch was counted in the first
// microsecond of 1970.
absl::Status StoreProgress(Connection* connection, const report::Progress& progress) {
  MUSTER_ASSIGN_OR_RETURN(
      Statement update,
      connection->Prepare("UPDATE muster_batch SET items_counted = ?, items_dead = ?, "
                          "transactions = ?, aggregated = ?, rejected = ?, dead_lettered = ?, "
                          "duplicates = ?, conflicts = ?, attempts = ?, "
                          "first_counted = nullif(?, 0), last_counted = nullif(?, 0), "
                          "receipt_revision = ? WHERE batch = ?"));
  const absl::Time epoch = absl::UnixEpoch();
  return update.Run(progress.items_counted, progress.items_dead, progress.transactions,
                    progress.aggregated, progress.rejected, progress.dead_lettered,
                    progress.duplicates, progress.conflicts, progress.attempts,
                    absl::ToUnixMicros(progress.first_counted.value_or(epoch)),
                    absl::ToUnixMicros(progress.last_counted.value_or(epoch)),
                    progress.receipt_revision, progress.batch);
}

}  // namespace muster::report::sqlite
