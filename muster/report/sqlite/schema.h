// The schema of a report database, apart from the groups' own tables (group_tables.h).
//
//   muster_table      a group's table: whose it is
//   muster_column     its keys and measures, in order
//   muster_job_table  which tables a revision of a job fills
//   muster_batch      a batch's running totals
//   muster_item       one row per counted item: there or not is the done-bit
//   muster_rejection  the transactions that were refused
//   muster_receipt    issued receipts, in their canonical text
//   muster_partition  the epoch that may commit for a partition of the output queue
//
// Views for people, with times and fingerprints as text: muster_batches, muster_items,
// muster_rejections, muster_receipts. Times are stored as microseconds since 1970 (UTC).
//
// A change: raise kSchemaVersion, add a step that takes a database of the version before to the new
// one, and a test that opens an old database.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "muster/report/sqlite/connection.h"

namespace muster::report::sqlite {

inline constexpr int64_t kSchemaVersion = 1;           // PRAGMA user_version
inline constexpr int64_t kApplicationId = 0x6d757374;  // PRAGMA application_id: "must"

// Creates the schema in an empty database, or checks the one that is there. FailedPrecondition: it
// belongs to another program, or to a newer muster.
absl::Status EnsureSchema(Connection* connection);
// As above, but an empty database is NotFound.
absl::Status CheckSchema(Connection* connection);

}  // namespace muster::report::sqlite
