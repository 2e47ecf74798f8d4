// The tables that people read: one per job and group, with the keys and measures as columns.
//
//   CREATE TABLE "by_customer" ("batch" INTEGER, "customer" TEXT, "revenue" TEXT, "units" INTEGER,
//                               PRIMARY KEY ("batch", "customer"))
//
// Decimals are TEXT, because SQLite's own numbers would round them. A table has the group's name
// where that is free, else "<job>_<group>", "<job>_<group>_2" …; once given, a name stays. A group
// whose keys or measures changed gets a table of its own. Every name is quoted.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/report/shape.h"
#include "muster/report/sqlite/connection.h"

namespace muster::report::sqlite {

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

// Parameters: batch, keys, measures. Adds to the row that is there.
std::string AddRowSql(const GroupTable& table);
// Parameter: batch. Columns: keys, measures; in the order of the keys.
std::string SelectRowsSql(const GroupTable& table);

}  // namespace muster::report::sqlite
