// SPDX-License-Identifier: Apache-2.0
#include "muster/report/sqlite/rebuild.h"

#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/failpoint.h"
#include "muster/base/status.h"
#include "muster/os/durable_file.h"
#include "muster/report/sqlite/connection.h"
#include "muster/report/sqlite/identity.h"
#include "muster/report/sqlite/schema.h"

namespace muster::report::sqlite {
namespace {

// The tables that all batches share.
constexpr const char* kCatalog[] = {"muster_table", "muster_column", "muster_job_table"};
// Those with rows of batches, beside the groups' own.
constexpr const char* kOfBatches[] = {"muster_batch",    "muster_item",      "muster_rejection",
                                      "muster_receipt",  "muster_cancelled", "muster_owner",
                                      "muster_output",   "muster_retry",     "muster_retried_line",
                                      "muster_reopened", "muster_replaced"};
// One of the catalog that an older muster did not make.
constexpr char kOutputColumns[] = "muster_output_column";

absl::Status RemoveFile(const std::string& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return os::FileError(errno, "removing", path);
}

// And the files that belong to it.
absl::Status RemoveDatabase(const std::string& path) {
  for (const char* suffix : {"", "-wal", "-shm"}) {
    MUSTER_RETURN_IF_ERROR(RemoveFile(path + suffix));
  }
  return absl::OkStatus();
}

// Moves what is sound in the log into the file, so that the log can go.
void Checkpoint(const std::string& path) {
  const auto connection = Connection::Open(path, OpenMode::kWrite);
  // Where the file is damaged, it is read as it is; that costs the batches in its log.
  if (connection.ok()) (*connection)->Execute("PRAGMA wal_checkpoint(TRUNCATE)").IgnoreError();
}

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> GroupTablesOf(
    Connection* connection, absl::string_view schema) {
  MUSTER_ASSIGN_OR_RETURN(Statement query, connection->Prepare(absl::StrCat(
                                               "SELECT name, sql FROM ", schema,
                                               ".sqlite_master WHERE type = 'table' AND name IN "
                                               "(SELECT name FROM ",
                                               schema, ".muster_table)")));
  return query.Collect(
      [&] { return std::pair(std::string(query.Text(0)), std::string(query.Text(1))); });
}

absl::Status Copy(Connection* connection, const std::string& table, absl::string_view where) {
  const std::string name = QuoteIdentifier(table);
  return connection->Execute(
      absl::StrCat("INSERT INTO main.", name, " SELECT * FROM damaged.", name, where));
}

absl::StatusOr<std::string> FirstColumn(Connection* connection, const std::string& table) {
  // Not the function pragma_table_info: a group may have that name.
  MUSTER_ASSIGN_OR_RETURN(Statement query, connection->Prepare(absl::StrCat(
                                               "PRAGMA table_info(", QuoteIdentifier(table), ")")));
  MUSTER_ASSIGN_OR_RETURN(const bool found, query.Step());
  if (!found) return absl::DataLossError(absl::StrCat("table '", table, "' is not there"));
  return std::string(query.Text(1));
}

// A table with rows of batches, and what selects those of one.
struct BatchTable {
  std::string name;
  std::string column;

  std::string Where(uint64_t batch) const {
    return absl::StrCat(" WHERE ", QuoteIdentifier(column), " = ", batch);
  }
};

// Those that `schema` has, where an older muster may have made the file. The column with the
// batch's number comes first in each group's table.
absl::StatusOr<std::vector<BatchTable>> BatchTablesOf(Connection* connection,
                                                      absl::string_view schema) {
  std::vector<BatchTable> tables;
  for (const char* table : kOfBatches) {
    MUSTER_ASSIGN_OR_RETURN(const bool is_there, HasTable(connection, schema, table));
    if (is_there) tables.push_back({table, "batch"});
  }
  MUSTER_ASSIGN_OR_RETURN(const auto groups, GroupTablesOf(connection, "main"));
  for (const auto& [name, sql] : groups) {
    MUSTER_ASSIGN_OR_RETURN(std::string column, FirstColumn(connection, name));
    tables.push_back({name, std::move(column)});
  }
  return tables;
}

// An error within the transaction would end it: CheckCopyable has read what is copied here.
absl::Status CopyAll(Connection* connection, const std::string& from,
                     absl::Span<const uint64_t> batches) {
  {
    MUSTER_ASSIGN_OR_RETURN(Statement attach, connection->Prepare("ATTACH ? AS damaged"));
    MUSTER_RETURN_IF_ERROR(attach.Run(from));
  }
  // Without its epochs a report takes the next owner of a partition for the first one.
  const bool has_epochs = connection->Execute("SELECT * FROM damaged.muster_partition").ok();
  MUSTER_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(connection, "BEGIN"));
  MUSTER_ASSIGN_OR_RETURN(const auto groups, GroupTablesOf(connection, "damaged"));
  for (const auto& [name, sql] : groups) MUSTER_RETURN_IF_ERROR(connection->Execute(sql));
  for (const char* table : kCatalog) MUSTER_RETURN_IF_ERROR(Copy(connection, table, ""));
  MUSTER_ASSIGN_OR_RETURN(const bool has_outputs, HasTable(connection, "damaged", kOutputColumns));
  if (has_outputs) MUSTER_RETURN_IF_ERROR(Copy(connection, kOutputColumns, ""));
  if (has_epochs) MUSTER_RETURN_IF_ERROR(Copy(connection, "muster_partition", ""));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<BatchTable> tables,
                          BatchTablesOf(connection, "damaged"));
  for (const uint64_t batch : batches) {
    for (const BatchTable& table : tables) {
      MUSTER_RETURN_IF_ERROR(Copy(connection, table.name, table.Where(batch)));
    }
  }
  return transaction.Commit();
}

absl::Status Make(const std::string& path, const std::string& from,
                  absl::Span<const uint64_t> batches) {
  MUSTER_ASSIGN_OR_RETURN(const auto connection, Connection::Open(path, OpenMode::kCreate));
  MUSTER_RETURN_IF_ERROR(connection->Execute("PRAGMA journal_mode = WAL"));
  MUSTER_RETURN_IF_ERROR(EnsureSchema(connection.get()));
  MUSTER_RETURN_IF_ERROR(EnsureIdentity(connection.get()));
  MUSTER_RETURN_IF_ERROR(CopyIdentity(connection.get(), from));
  // Where no batch is sound, not even the list of the tables may be.
  if (!batches.empty()) MUSTER_RETURN_IF_ERROR(CopyAll(connection.get(), from, batches));
  return connection->Execute("PRAGMA wal_checkpoint(TRUNCATE)");
}

}  // namespace

absl::Status CheckCatalog(Connection* connection) {
  MUSTER_RETURN_IF_ERROR(GroupTablesOf(connection, "main").status());
  for (const char* table : kCatalog) {
    MUSTER_RETURN_IF_ERROR(connection->Execute(absl::StrCat("SELECT * FROM ", table)));
  }
  MUSTER_ASSIGN_OR_RETURN(const bool has_outputs, HasTable(connection, "main", kOutputColumns));
  if (has_outputs) {
    MUSTER_RETURN_IF_ERROR(connection->Execute(absl::StrCat("SELECT * FROM ", kOutputColumns)));
  }
  return absl::OkStatus();
}

absl::Status CheckCopyable(Connection* connection, uint64_t batch) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<BatchTable> tables, BatchTablesOf(connection, "main"));
  for (const BatchTable& table : tables) {
    MUSTER_RETURN_IF_ERROR(connection->Execute(
        absl::StrCat("SELECT * FROM ", QuoteIdentifier(table.name), table.Where(batch))));
  }
  return absl::OkStatus();
}

absl::Status Rebuild(const std::string& path, absl::Span<const uint64_t> batches) {
  Checkpoint(path);
  const std::string mended = path + "-mended";
  MUSTER_RETURN_IF_ERROR(RemoveDatabase(mended));  // of a repair that was killed
  MUSTER_RETURN_IF_ERROR(Make(mended, path, batches));
  MUSTER_RETURN_IF_ERROR(os::SyncPath(mended));
  // A log would be taken for the new file's.
  MUSTER_RETURN_IF_ERROR(RemoveFile(path + "-wal"));
  MUSTER_RETURN_IF_ERROR(RemoveFile(path + "-shm"));
  MUSTER_RETURN_IF_ERROR(os::SyncFolderOf(path));
  MUSTER_FAILPOINT("repair.before_report_replaced");
  return os::Rename(mended, path);
}

}  // namespace muster::report::sqlite
