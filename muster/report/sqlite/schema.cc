#include "muster/report/sqlite/schema.h"

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"

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

constexpr absl::string_view kViews = R"sql(
CREATE VIEW muster_batches AS SELECT
  batch, job, job_revision, items_counted, items_dead, transactions, aggregated, rejected,
  dead_lettered, duplicates, conflicts, attempts,
  strftime('%Y-%m-%dT%H:%M:%S', first_counted / 1000000, 'unixepoch') ||
    printf('.%06dZ', first_counted % 1000000) AS first_counted,
  strftime('%Y-%m-%dT%H:%M:%S', last_counted / 1000000, 'unixepoch') ||
    printf('.%06dZ', last_counted % 1000000) AS last_counted,
  receipt_revision
  FROM muster_batch;
CREATE VIEW muster_items AS SELECT
  batch, item, CASE outcome WHEN 1 THEN 'aggregated' ELSE 'dead-lettered' END AS outcome,
  transactions, aggregated, rejected, lower(hex(content)) AS content, lower(hex(result)) AS result,
  attempts, handler_version, worker, cause,
  strftime('%Y-%m-%dT%H:%M:%S', counted / 1000000, 'unixepoch') ||
    printf('.%06dZ', counted % 1000000) AS counted
  FROM muster_item;
CREATE VIEW muster_rejections AS SELECT batch, item, line, reason FROM muster_rejection;
CREATE VIEW muster_receipts AS SELECT batch, revision, checksum, text FROM muster_receipt;
)sql";

absl::Status CreateSchema(Connection* connection) {
  MUSTER_ASSIGN_OR_RETURN(Transaction transaction,
                          Transaction::Begin(connection, "BEGIN IMMEDIATE"));
  MUSTER_RETURN_IF_ERROR(connection->Execute(kTables));
  MUSTER_RETURN_IF_ERROR(connection->Execute(kViews));
  MUSTER_RETURN_IF_ERROR(connection->Execute(absl::StrCat(
      "PRAGMA user_version = ", kSchemaVersion, "; PRAGMA application_id = ", kApplicationId)));
  return transaction.Commit();
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
  if (version == kSchemaVersion) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the report has schema version ", version,
                                                    ", this muster knows up to ", kSchemaVersion,
                                                    ": use the newer muster that wrote it"));
}

}  // namespace

absl::Status EnsureSchema(Connection* connection) {
  MUSTER_ASSIGN_OR_RETURN(const bool empty, IsEmpty(connection));
  return empty ? CreateSchema(connection) : CheckVersion(connection);
}

absl::Status CheckSchema(Connection* connection) {
  MUSTER_ASSIGN_OR_RETURN(const bool empty, IsEmpty(connection));
  return empty ? absl::NotFoundError("the report is empty: nothing was written to it yet")
               : CheckVersion(connection);
}

}  // namespace muster::report::sqlite
