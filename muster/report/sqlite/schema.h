// SPDX-License-Identifier: Apache-2.0

// The schema of a report database, and the groups' own tables (at the end of this file).
//
//   muster_table      a group's table: its job and group
//   muster_column     its keys and measures, in order
//   muster_job_table  which tables a revision of a job fills
//   muster_batch      a batch's running totals
//   muster_item       one row per counted item: one that is there is done
//   muster_rejection  the transactions that were refused
//   muster_receipt    issued receipts, in their canonical text
//   muster_reopened   the revision of a receipt that does not prove any more what is counted
//   muster_replaced   batches of one input, of which the later one counts once it is complete
//   muster_cancelled  batches that are cancelled, and so never get a receipt
//   muster_owner      the initiator that registered a batch
//   muster_output_column  the columns of a job's output records, by revision
//   muster_output     output records, some of an item in each row (output_rows.h)
//   muster_retry      claims of what failed of a batch for a retry, and the batch that retries it
//   muster_retried_line  what a claim has, and where it stands in that batch (retries.h)
//   muster_identity   the report's id, and the epoch and instance that may write to it
//   muster_partition  the epoch that may commit for a partition of the output queue
//
// Views for people, with times and fingerprints as text: muster_batches, muster_current (the
// batches that count: complete, and none replaced), muster_items, muster_rejections,
// muster_receipts. Times are stored as microseconds since 1970 (UTC).
//
// A change: raise kSchemaVersion, add a step that takes a database of the version before to the new
// one, and a test that opens an old database. A new table that an older muster need not know raises
// no version: a writer adds it, and a reader takes a missing one for empty (HasTable). Nor does a
// changed view: a writer makes it again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/report/counted_item.h"
#include "muster/report/sqlite/connection.h"
#include "muster/report/sqlite/page_sums.h"

namespace muster::report::sqlite {

// PRAGMA user_version: 1 of a file without page sums (page_sums.h), 2 of a file that has them. The
// tables are the same, and both are read and written.
inline constexpr int64_t kSchemaVersion = kFirstSummedVersion;

// Creates the schema in an empty database, or checks the one that is there. FailedPrecondition: it
// belongs to another program, or to a newer muster.
absl::Status EnsureSchema(Connection* connection);
// As above, but an empty database is NotFound.
absl::Status CheckSchema(Connection* connection);

// Whether the database has the table; `schema` is "main" or the name of an attached database.
absl::StatusOr<bool> HasTable(Connection* connection, absl::string_view schema,
                              absl::string_view table);

// The tables that people read: one per job and group, with the keys and measures as columns.
//
//   CREATE TABLE "by_customer" ("batch" INTEGER, "customer" TEXT, "revenue" TEXT, "units" INTEGER,
//                               PRIMARY KEY ("batch", "customer"))
//
// Decimals are TEXT, because SQLite's own numbers would round them. A table has the group's name
// where that is free, else "<job>_<group>", "<job>_<group>_2" …; once given, a name stays. A group
// whose keys or measures changed gets a table of its own. Every name is quoted.

struct GroupTable {
  std::string name;
  report::GroupShape shape;
};

// Makes or finds a table for each group, in the caller's transaction. FailedPrecondition: this
// revision of the job is known with other groups.
absl::Status EnsureGroupTables(Connection* connection, const report::BatchShape& shape);

// In the job's order; none when the revision has no groups, or is not known.
absl::StatusOr<std::vector<GroupTable>> LoadGroupTables(Connection* connection,
                                                        absl::string_view job,
                                                        absl::string_view job_revision);

// Columns of the primary key, the batch's first.
std::vector<std::string> IdentityColumns(const report::GroupShape& shape);

// Parameters: batch, keys, measures. Adds to the row that is there.
std::string AddRowSql(const GroupTable& table);
// Parameter: batch. Columns: keys, measures; in the order of the keys.
std::string SelectRowsSql(const GroupTable& table);

}  // namespace muster::report::sqlite
