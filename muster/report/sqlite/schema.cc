// SPDX-License-Identifier: Apache-2.0
#include "muster/report/sqlite/schema.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/status.h"

namespace muster::report::sqlite {

namespace {

// WITHOUT ROWID: the rows lie in the order of their primary key, so that there is no second tree.
constexpr absl::string_view kTables = R"sql(
CREATE TABLE muster_table (
  name TEXT PRIMARY KEY, job TEXT NOT NULL, group_name TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE muster_column (
  table_name TEXT NOT NULL, position INTEGER NOT NULL, name TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('key', 'int', 'decimal')), scale INTEGER NOT NULL,
  PRIMARY KEY (table_name, position)) WITHOUT ROWID;
CREATE TABLE muster_job_table (
  job TEXT NOT NULL, job_revision TEXT NOT NULL, position INTEGER NOT NULL,
  table_name TEXT NOT NULL,
  PRIMARY KEY (job, job_revision, position)) WITHOUT ROWID;
CREATE TABLE muster_batch (
  batch INTEGER PRIMARY KEY, job TEXT NOT NULL, job_revision TEXT NOT NULL,
  items_counted INTEGER NOT NULL DEFAULT 0, items_dead INTEGER NOT NULL DEFAULT 0,
  transactions INTEGER NOT NULL DEFAULT 0, aggregated INTEGER NOT NULL DEFAULT 0,
  rejected INTEGER NOT NULL DEFAULT 0, dead_lettered INTEGER NOT NULL DEFAULT 0,
  duplicates INTEGER NOT NULL DEFAULT 0, conflicts INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0, first_counted INTEGER, last_counted INTEGER,
  receipt_revision INTEGER NOT NULL DEFAULT 0);
CREATE TABLE muster_item (
  batch INTEGER NOT NULL, item INTEGER NOT NULL, outcome INTEGER NOT NULL,
  transactions INTEGER NOT NULL, aggregated INTEGER NOT NULL, rejected INTEGER NOT NULL,
  content BLOB NOT NULL, result BLOB NOT NULL, attempts INTEGER NOT NULL,
  handler_version TEXT NOT NULL, worker TEXT NOT NULL, cause TEXT NOT NULL,
  counted INTEGER NOT NULL, PRIMARY KEY (batch, item)) WITHOUT ROWID;
CREATE TABLE muster_rejection (
  batch INTEGER NOT NULL, item INTEGER NOT NULL, ordinal INTEGER NOT NULL,
  line INTEGER NOT NULL, reason TEXT NOT NULL,
  PRIMARY KEY (batch, item, ordinal)) WITHOUT ROWID;
CREATE TABLE muster_receipt (
  batch INTEGER NOT NULL, revision INTEGER NOT NULL, text TEXT NOT NULL, checksum TEXT NOT NULL,
  PRIMARY KEY (batch, revision)) WITHOUT ROWID;
CREATE TABLE muster_partition (
  name TEXT PRIMARY KEY, epoch INTEGER NOT NULL, commits INTEGER NOT NULL,
  committed INTEGER NOT NULL) WITHOUT ROWID;
)sql";

// Those that an older muster did not make.
struct AddedTable {
  absl::string_view name;
  absl::string_view sql;
};
constexpr AddedTable kAddedTables[] = {
    {"muster_cancelled",
     "CREATE TABLE muster_cancelled (batch INTEGER PRIMARY KEY, cancelled INTEGER NOT NULL, "
     "reason TEXT NOT NULL)"},
    {"muster_identity",
     "CREATE TABLE muster_identity (one INTEGER PRIMARY KEY CHECK (one = 1), report TEXT NOT NULL, "
     "epoch INTEGER NOT NULL, owner TEXT NOT NULL)"},
    {"muster_output_column",
     "CREATE TABLE muster_output_column (job TEXT NOT NULL, job_revision TEXT NOT NULL, "
     "position INTEGER NOT NULL, name TEXT NOT NULL, "
     "type TEXT NOT NULL CHECK (type IN ('text', 'int', 'decimal')), scale INTEGER NOT NULL, "
     "PRIMARY KEY (job, job_revision, position)) WITHOUT ROWID"},
    {"muster_output",
     "CREATE TABLE muster_output (batch INTEGER NOT NULL, item INTEGER NOT NULL, "
     "piece INTEGER NOT NULL, records INTEGER NOT NULL, content BLOB NOT NULL, "
     "PRIMARY KEY (batch, item, piece)) WITHOUT ROWID"},
    {"muster_owner", "CREATE TABLE muster_owner (batch INTEGER PRIMARY KEY, owner TEXT NOT NULL)"},
    {"muster_reopened",
     "CREATE TABLE muster_reopened (batch INTEGER PRIMARY KEY, revision INTEGER NOT NULL)"},
    {"muster_replaced",
     "CREATE TABLE muster_replaced (batch INTEGER NOT NULL, replaced_by INTEGER NOT NULL, "
     "PRIMARY KEY (batch, replaced_by)) WITHOUT ROWID;"
     "CREATE INDEX muster_replaced_by ON muster_replaced (replaced_by)"},
    {"muster_retry",
     "CREATE TABLE muster_retry (retry INTEGER PRIMARY KEY, batch INTEGER NOT NULL, "
     "retried_in INTEGER NOT NULL, through INTEGER NOT NULL, claimed INTEGER NOT NULL);"
     "CREATE INDEX muster_retry_of ON muster_retry (batch, retried_in);"
     "CREATE INDEX muster_retry_in ON muster_retry (retried_in)"},
    {"muster_retried_line",
     "CREATE TABLE muster_retried_line (batch INTEGER NOT NULL, item INTEGER NOT NULL, "
     "line INTEGER NOT NULL, retry INTEGER NOT NULL, retried_line INTEGER NOT NULL, "
     "PRIMARY KEY (batch, item, line)) WITHOUT ROWID;"
     "CREATE INDEX muster_retried_line_of ON muster_retried_line (retry, retried_line)"},
};

struct View {
  absl::string_view name;
  absl::string_view sql;
};
// In the words that sqlite_master keeps, by which EnsureViews knows those of an older muster.
constexpr View kViews[] = {
    {"muster_batches", R"sql(CREATE VIEW muster_batches AS SELECT
  batch, job, job_revision, items_counted, items_dead, transactions, aggregated, rejected,
  dead_lettered, duplicates, conflicts, attempts,
  strftime('%Y-%m-%dT%H:%M:%S', first_counted / 1000000, 'unixepoch') ||
    printf('.%06dZ', first_counted % 1000000) AS first_counted,
  strftime('%Y-%m-%dT%H:%M:%S', last_counted / 1000000, 'unixepoch') ||
    printf('.%06dZ', last_counted % 1000000) AS last_counted,
  CASE WHEN receipt_revision = (SELECT revision FROM muster_reopened r WHERE r.batch = b.batch)
    THEN 0 ELSE receipt_revision END AS receipt_revision
  FROM muster_batch b)sql"},
    {"muster_current", R"sql(CREATE VIEW muster_current AS SELECT *
  FROM muster_batches b WHERE receipt_revision > 0 AND NOT EXISTS (
    SELECT 1 FROM muster_replaced r JOIN muster_batches n ON n.batch = r.replaced_by
    WHERE r.batch = b.batch AND n.receipt_revision > 0))sql"},
    {"muster_items", R"sql(CREATE VIEW muster_items AS SELECT
  batch, item, CASE outcome WHEN 1 THEN 'aggregated' ELSE 'dead-lettered' END AS outcome,
  transactions, aggregated, rejected, lower(hex(content)) AS content, lower(hex(result)) AS result,
  attempts, handler_version, worker, cause,
  strftime('%Y-%m-%dT%H:%M:%S', counted / 1000000, 'unixepoch') ||
    printf('.%06dZ', counted % 1000000) AS counted
  FROM muster_item)sql"},
    {"muster_rejections",
     "CREATE VIEW muster_rejections AS SELECT batch, item, line, reason FROM muster_rejection"},
    {"muster_receipts",
     "CREATE VIEW muster_receipts AS SELECT batch, revision, checksum, text FROM muster_receipt"},
};

// An older muster that died while it made the file may have left one without room for page sums.
constexpr int64_t kUnsummedVersion = 1;

absl::Status CreateSchema(Connection* connection) {
  const int64_t version = connection->WritesPageSums() ? kSchemaVersion : kUnsummedVersion;
  MUSTER_ASSIGN_OR_RETURN(Transaction transaction,
                          Transaction::Begin(connection, "BEGIN IMMEDIATE"));
  MUSTER_RETURN_IF_ERROR(connection->Execute(kTables));
  MUSTER_RETURN_IF_ERROR(connection->Execute(absl::StrCat(
      "PRAGMA user_version = ", version, "; PRAGMA application_id = ", kApplicationId)));
  return transaction.Commit();
}

absl::Status EnsureAddedTables(Connection* connection) {
  for (const AddedTable& table : kAddedTables) {
    MUSTER_ASSIGN_OR_RETURN(const bool is_there, HasTable(connection, "main", table.name));
    if (is_there) continue;
    // With its indexes, or not at all.
    MUSTER_ASSIGN_OR_RETURN(Transaction transaction,
                            Transaction::Begin(connection, "BEGIN IMMEDIATE"));
    MUSTER_RETURN_IF_ERROR(connection->Execute(table.sql));
    MUSTER_RETURN_IF_ERROR(transaction.Commit());
  }
  return absl::OkStatus();
}

// Makes the views that are missing, or are an older muster's.
absl::Status EnsureViews(Connection* connection) {
  MUSTER_ASSIGN_OR_RETURN(
      Statement query,
      connection->Prepare("SELECT sql FROM sqlite_master WHERE type = 'view' AND name = ?"));
  for (const View& view : kViews) {
    MUSTER_ASSIGN_OR_RETURN(const bool is_there, query.Bind(view.name).Step());
    if (is_there && query.Text(0) == view.sql) continue;
    query.Reset();
    MUSTER_ASSIGN_OR_RETURN(Transaction transaction,
                            Transaction::Begin(connection, "BEGIN IMMEDIATE"));
    MUSTER_RETURN_IF_ERROR(connection->Execute(absl::StrCat("DROP VIEW IF EXISTS ", view.name)));
    MUSTER_RETURN_IF_ERROR(connection->Execute(view.sql));
    MUSTER_RETURN_IF_ERROR(transaction.Commit());
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> IsEmpty(Connection* connection) {
  MUSTER_ASSIGN_OR_RETURN(const int64_t objects,
                          connection->QueryInt("SELECT count(*) FROM sqlite_master"));
  return objects == 0;
}

absl::Status CheckVersion(Connection* connection) {
  MUSTER_ASSIGN_OR_RETURN(const int64_t application, connection->QueryInt("PRAGMA application_id"));
  if (application != kApplicationId) {
    return absl::FailedPreconditionError("a SQLite database, but not a report of muster");
  }
  MUSTER_ASSIGN_OR_RETURN(const int64_t version, connection->QueryInt("PRAGMA user_version"));
  if (version == kSchemaVersion || version == kUnsummedVersion) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the report has schema version ", version,
                                                    ", this muster knows up to ", kSchemaVersion,
                                                    ": use the newer muster that wrote it"));
}

}  // namespace

absl::Status EnsureSchema(Connection* connection) {
  MUSTER_ASSIGN_OR_RETURN(const bool empty, IsEmpty(connection));
  MUSTER_RETURN_IF_ERROR(empty ? CreateSchema(connection) : CheckVersion(connection));
  MUSTER_RETURN_IF_ERROR(EnsureAddedTables(connection));
  return EnsureViews(connection);
}

absl::StatusOr<bool> HasTable(Connection* connection, absl::string_view schema,
                              absl::string_view table) {
  MUSTER_ASSIGN_OR_RETURN(
      Statement query,
      connection->Prepare(absl::StrCat("SELECT 1 FROM ", QuoteIdentifier(schema),
                                       ".sqlite_master WHERE type = 'table' AND name = ?")));
  return query.Bind(table).Step();
}

absl::Status CheckSchema(Connection* connection) {
  MUSTER_ASSIGN_OR_RETURN(const bool empty, IsEmpty(connection));
  return empty ? absl::NotFoundError("the report is empty: nothing was written to it yet")
               : CheckVersion(connection);
}

namespace {

using report::GroupShape;
using report::MeasureShape;

bool HasColumn(const GroupShape& shape, absl::string_view name) {
  for (const std::string& key : shape.keys) {
    if (absl::EqualsIgnoreCase(key, name)) return true;
  }
  for (const MeasureShape& measure : shape.measures) {
    if (absl::EqualsIgnoreCase(measure.name, name)) return true;
  }
  return false;
}

// "batch", unless a key or a measure is called that; then "muster_batch", and so on.
std::string BatchColumn(const GroupShape& shape) {
  std::string name = "batch";
  while (HasColumn(shape, name)) name.insert(0, "muster_");
  return name;
}

std::vector<std::string> KeyColumns(const GroupShape& shape) {
  std::vector<std::string> columns;
  for (const std::string& key : shape.keys) columns.push_back(QuoteIdentifier(key));
  return columns;
}

std::vector<std::string> MeasureColumns(const GroupShape& shape) {
  std::vector<std::string> columns;
  for (const MeasureShape& measure : shape.measures) {
    columns.push_back(QuoteIdentifier(measure.name));
  }
  return columns;
}

// The columns that tell rows apart.
std::string RowIdentity(const GroupShape& shape) {
  return absl::StrCat(QuoteIdentifier(BatchColumn(shape)), ", ",
                      absl::StrJoin(KeyColumns(shape), ", "));
}

std::string CreateSql(const GroupTable& table) {
  std::string columns =
      absl::StrCat(QuoteIdentifier(BatchColumn(table.shape)), " INTEGER NOT NULL");
  for (const std::string& key : KeyColumns(table.shape)) {
    absl::StrAppend(&columns, ", ", key, " TEXT NOT NULL");
  }
  for (const MeasureShape& measure : table.shape.measures) {
    absl::StrAppend(&columns, ", ", QuoteIdentifier(measure.name),
                    measure.is_int ? " INTEGER NOT NULL" : " TEXT NOT NULL");
  }
  return absl::StrCat("CREATE TABLE ", QuoteIdentifier(table.name), " (", columns,
                      ", PRIMARY KEY (", RowIdentity(table.shape), ")) WITHOUT ROWID");
}

absl::StatusOr<GroupShape> LoadShape(Connection* connection, absl::string_view table,
                                     absl::string_view group) {
  MUSTER_ASSIGN_OR_RETURN(Statement query,
                          connection->Prepare("SELECT name, role, scale FROM muster_column "
                                              "WHERE table_name = ? ORDER BY position"));
  query.Bind(table);
  GroupShape shape;
  shape.name = std::string(group);
  for (;;) {
    MUSTER_ASSIGN_OR_RETURN(const bool found, query.Step());
    if (!found) return shape;
    const std::string name(query.Text(0));
    if (query.Text(1) == "key") {
      shape.keys.push_back(name);
    } else {
      shape.measures.push_back({name, query.Text(1) == "int", static_cast<int>(query.Int(2))});
    }
  }
}

// Adds up the names and groups that a query answers to tables.
absl::StatusOr<std::vector<GroupTable>> LoadTables(Connection* connection, Statement query) {
  std::vector<GroupTable> tables;
  for (;;) {
    MUSTER_ASSIGN_OR_RETURN(const bool found, query.Step());
    if (!found) return tables;
    MUSTER_ASSIGN_OR_RETURN(GroupShape shape, LoadShape(connection, query.Text(0), query.Text(1)));
    tables.push_back({std::string(query.Text(0)), std::move(shape)});
  }
}

bool IsReserved(absl::string_view name) {
  return absl::StartsWithIgnoreCase(name, "sqlite_") || absl::StartsWithIgnoreCase(name, "muster_");
}

absl::StatusOr<std::string> FreeName(Connection* connection, absl::string_view job,
                                     absl::string_view group) {
  MUSTER_ASSIGN_OR_RETURN(Statement taken,
                          connection->Prepare("SELECT 1 FROM sqlite_master WHERE lower(name) = ?"));
  const std::string longer = absl::StrCat(IsReserved(job) ? "job_" : "", job, "_", group);
  std::string name = IsReserved(group) ? longer : std::string(group);
  for (int number = 1;; ++number) {
    const std::string lower = absl::AsciiStrToLower(name);
    MUSTER_ASSIGN_OR_RETURN(const bool is_taken, taken.Bind(lower).Step());
    if (!is_taken) return name;
    name = number == 1 ? longer : absl::StrCat(longer, "_", number);
  }
}

absl::Status RecordColumns(Connection* connection, const GroupTable& table) {
  MUSTER_ASSIGN_OR_RETURN(Statement insert,
                          connection->Prepare("INSERT INTO muster_column VALUES (?, ?, ?, ?, ?)"));
  int position = 0;
  for (const std::string& key : table.shape.keys) {
    MUSTER_RETURN_IF_ERROR(insert.Run(table.name, position++, key, absl::string_view("key"), 0));
  }
  for (const MeasureShape& measure : table.shape.measures) {
    const absl::string_view role = measure.is_int ? "int" : "decimal";
    MUSTER_RETURN_IF_ERROR(insert.Run(table.name, position++, measure.name, role, measure.scale));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> CreateGroupTable(Connection* connection, absl::string_view job,
                                             const GroupShape& shape) {
  GroupTable table;
  table.shape = shape;
  MUSTER_ASSIGN_OR_RETURN(table.name, FreeName(connection, job, shape.name));
  MUSTER_RETURN_IF_ERROR(connection->Execute(CreateSql(table)));
  MUSTER_ASSIGN_OR_RETURN(Statement insert,
                          connection->Prepare("INSERT INTO muster_table VALUES (?, ?, ?)"));
  MUSTER_RETURN_IF_ERROR(insert.Run(table.name, job, shape.name));
  MUSTER_RETURN_IF_ERROR(RecordColumns(connection, table));
  return table.name;
}

// The table of this job's group with just this shape, made if need be.
absl::StatusOr<std::string> TableFor(Connection* connection, absl::string_view job,
                                     const GroupShape& shape) {
  MUSTER_ASSIGN_OR_RETURN(Statement query,
                          connection->Prepare("SELECT name, group_name FROM muster_table "
                                              "WHERE job = ? AND group_name = ?"));
  query.Bind(job, shape.name);
  MUSTER_ASSIGN_OR_RETURN(const std::vector<GroupTable> tables,
                          LoadTables(connection, std::move(query)));
  for (const GroupTable& table : tables) {
    if (table.shape == shape) return table.name;
  }
  return CreateGroupTable(connection, job, shape);
}

bool SameGroups(const std::vector<GroupTable>& tables, const std::vector<GroupShape>& groups) {
  if (tables.size() != groups.size()) return false;
  for (size_t i = 0; i < tables.size(); ++i) {
    if (!(tables[i].shape == groups[i])) return false;
  }
  return true;
}

}  // namespace

absl::Status EnsureGroupTables(Connection* connection, const report::BatchShape& shape) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<GroupTable> known,
                          LoadGroupTables(connection, shape.job, shape.job_revision));
  if (SameGroups(known, shape.groups)) return absl::OkStatus();
  if (!known.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job '", shape.job, "' revision ", shape.job_revision, " is known with other groups"));
  }
  MUSTER_ASSIGN_OR_RETURN(Statement insert,
                          connection->Prepare("INSERT INTO muster_job_table VALUES (?, ?, ?, ?)"));
  int position = 0;
  for (const GroupShape& group : shape.groups) {
    MUSTER_ASSIGN_OR_RETURN(const std::string table, TableFor(connection, shape.job, group));
    MUSTER_RETURN_IF_ERROR(insert.Run(shape.job, shape.job_revision, position++, table));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<GroupTable>> LoadGroupTables(Connection* connection,
                                                        absl::string_view job,
                                                        absl::string_view job_revision) {
  MUSTER_ASSIGN_OR_RETURN(
      Statement query,
      connection->Prepare("SELECT t.name, t.group_name FROM muster_job_table j "
                          "JOIN muster_table t ON t.name = j.table_name "
                          "WHERE j.job = ? AND j.job_revision = ? ORDER BY j.position"));
  query.Bind(job, job_revision);
  return LoadTables(connection, std::move(query));
}

std::vector<std::string> IdentityColumns(const GroupShape& shape) {
  std::vector<std::string> columns = {BatchColumn(shape)};
  columns.insert(columns.end(), shape.keys.begin(), shape.keys.end());
  return columns;
}

std::string AddRowSql(const GroupTable& table) {
  std::vector<std::string> columns = KeyColumns(table.shape);
  std::vector<std::string> updates;
  for (const MeasureShape& measure : table.shape.measures) {
    const std::string column = QuoteIdentifier(measure.name);
    columns.push_back(column);
    updates.push_back(absl::StrCat(column, " = ",
                                   measure.is_int ? "muster_add_int(" : "muster_add_decimal(",
                                   column, ", excluded.", column, ")"));
  }
  const std::vector<std::string> marks(columns.size() + 1, "?");
  return absl::StrCat("INSERT INTO ", QuoteIdentifier(table.name), " (",
                      QuoteIdentifier(BatchColumn(table.shape)), ", ", absl::StrJoin(columns, ", "),
                      ") VALUES (", absl::StrJoin(marks, ", "), ") ON CONFLICT (",
                      RowIdentity(table.shape), ") DO UPDATE SET ", absl::StrJoin(updates, ", "));
}

std::string SelectRowsSql(const GroupTable& table) {
  return absl::StrCat("SELECT ", absl::StrJoin(KeyColumns(table.shape), ", "), ", ",
                      absl::StrJoin(MeasureColumns(table.shape), ", "), " FROM ",
                      QuoteIdentifier(table.name), " WHERE ",
                      QuoteIdentifier(BatchColumn(table.shape)), " = ? ORDER BY ",
                      absl::StrJoin(KeyColumns(table.shape), ", "));
}

}  // namespace muster::report::sqlite
