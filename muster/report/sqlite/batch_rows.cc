#include "muster/report/sqlite/batch_rows.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "muster/base/status_macros.h"

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

}  // namespace

absl::Status EnsureBatch(Connection* connection, const report::BatchShape& shape) {
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
  std::vector<report::Progress> all;
  for (;;) {
    MUSTER_ASSIGN_OR_RETURN(const bool found, query.Step());
    if (!found) return all;
    all.push_back(ProgressOf(query));
  }
}

void AddToProgress(const report::ItemFacts& item, int sign, report::Progress* progress) {
  const bool dead = item.outcome == report::ItemOutcome::kDeadLettered;
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
