// SPDX-License-Identifier: Apache-2.0
#include "muster/report/sqlite/removal.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/status.h"
#include "muster/report/sqlite/batch_rows.h"
#include "muster/report/sqlite/retries.h"
#include "muster/report/sqlite/schema.h"

namespace muster::report::sqlite {
namespace {

// A table, and the columns of its primary key, the batch's first.
struct KeyedTable {
  std::string name;
  std::vector<std::string> key;
  int64_t weight = 1;  // as how many rows one of its rows counts: by its size
};

// Of the rows of a batch, in the order in which they go. While its own row is there, a further call
// finds the batch, so that row is not one of them.
std::vector<KeyedTable> TablesWithRows(const std::vector<GroupTable>& groups) {
  std::vector<KeyedTable> tables;
  for (const GroupTable& group : groups)
    tables.push_back({group.name, IdentityColumns(group.shape)});
  // A row has up to kOutputPieceBytes.
  tables.push_back({"muster_output", {"batch", "item", "piece"}, 100});
  tables.push_back({"muster_rejection", {"batch", "item", "ordinal"}});
  tables.push_back({"muster_item", {"batch", "item"}});
  tables.push_back({"muster_receipt", {"batch", "revision"}});
  return tables;
}

// Parameters: batch, rows at most.
std::string DeleteRowsSql(const KeyedTable& table) {
  std::vector<std::string> within;  // the batch
  for (const std::string& column : table.key) within.push_back(QuoteIdentifier(column));
  const std::string of_batch = absl::StrCat(within.front(), " = ?1");
  within.erase(within.begin());
  const std::string name = QuoteIdentifier(table.name);
  const std::string columns = absl::StrJoin(within, ", ");
  // Debian's SQLite has no DELETE with a LIMIT.
  return absl::StrCat("DELETE FROM ", name, " WHERE ", of_batch, " AND (", columns, ") IN (SELECT ",
                      columns, " FROM ", name, " WHERE ", of_batch, " LIMIT ?2)");
}

absl::Status DeleteRowOf(Connection* connection, absl::string_view table, uint64_t batch) {
  MUSTER_ASSIGN_OR_RETURN(Statement statement, connection->Prepare(absl::StrCat(
                                                   "DELETE FROM ", table, " WHERE batch = ?")));
  return statement.Run(batch);
}

}  // namespace

absl::StatusOr<bool> ForgetBatch(Connection* connection, uint64_t batch, int64_t max_rows) {
  // Also of a batch that was not registered: a retry may name it all the same.
  MUSTER_ASSIGN_OR_RETURN(const bool retries_gone, ForgetRetries(connection, batch, max_rows));
  if (!retries_gone) return false;
  const absl::StatusOr<report::Progress> progress = LoadProgress(connection, batch);
  if (absl::IsNotFound(progress.status())) {
    for (const char* table : {"muster_cancelled", "muster_owner"}) {
      MUSTER_RETURN_IF_ERROR(DeleteRowOf(connection, table, batch));
    }
    return true;
  }
  MUSTER_RETURN_IF_ERROR(progress.status());
  MUSTER_ASSIGN_OR_RETURN(const std::vector<GroupTable> groups,
                          LoadGroupTables(connection, progress->job, progress->job_revision));
  int64_t left = max_rows;
  for (const KeyedTable& table : TablesWithRows(groups)) {
    MUSTER_ASSIGN_OR_RETURN(Statement statement, connection->Prepare(DeleteRowsSql(table)));
    MUSTER_RETURN_IF_ERROR(statement.Run(batch, std::max<int64_t>(1, left / table.weight)));
    left -= connection->Changes() * table.weight;
    if (left <= 0) return false;
  }
  MUSTER_ASSIGN_OR_RETURN(
      Statement replaced,
      connection->Prepare("DELETE FROM muster_replaced WHERE batch = ?1 OR replaced_by = ?1"));
  MUSTER_RETURN_IF_ERROR(replaced.Run(batch));
  for (const char* table :
       {"muster_cancelled", "muster_owner", "muster_reopened", "muster_batch"}) {
    MUSTER_RETURN_IF_ERROR(DeleteRowOf(connection, table, batch));
  }
  return true;
}

absl::Status ForgetJob(Connection* connection, absl::string_view job) {
  MUSTER_ASSIGN_OR_RETURN(Statement batch,
                          connection->Prepare("SELECT 1 FROM muster_batch WHERE job = ? LIMIT 1"));
  MUSTER_ASSIGN_OR_RETURN(const bool has_batch, batch.Bind(job).Step());
  if (has_batch) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(Statement of_job,
                          connection->Prepare("SELECT name FROM muster_table WHERE job = ?"));
  of_job.Bind(job);
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> tables,
                          of_job.Collect([&] { return std::string(of_job.Text(0)); }));
  for (const std::string& table : tables) {
    MUSTER_ASSIGN_OR_RETURN(Statement columns,
                            connection->Prepare("DELETE FROM muster_column WHERE table_name = ?"));
    MUSTER_RETURN_IF_ERROR(columns.Run(table));
    MUSTER_RETURN_IF_ERROR(
        connection->Execute(absl::StrCat("DROP TABLE ", QuoteIdentifier(table))));
  }
  for (const char* table : {"muster_table", "muster_job_table", "muster_output_column"}) {
    MUSTER_ASSIGN_OR_RETURN(Statement statement, connection->Prepare(absl::StrCat(
                                                     "DELETE FROM ", table, " WHERE job = ?")));
    MUSTER_RETURN_IF_ERROR(statement.Run(job));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> JobsWithoutBatches(Connection* connection) {
  std::string jobs = "SELECT job FROM muster_table UNION SELECT job FROM muster_job_table";
  // An older muster made the file.
  MUSTER_ASSIGN_OR_RETURN(const bool has_outputs,
                          HasTable(connection, "main", "muster_output_column"));
  if (has_outputs) absl::StrAppend(&jobs, " UNION SELECT job FROM muster_output_column");
  MUSTER_ASSIGN_OR_RETURN(
      Statement query,
      connection->Prepare(absl::StrCat(jobs, " EXCEPT SELECT job FROM muster_batch ORDER BY job")));
  return query.Collect([&] { return std::string(query.Text(0)); });
}

}  // namespace muster::report::sqlite
