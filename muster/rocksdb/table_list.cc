#include "muster/rocksdb/table_list.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "muster/base/status_macros.h"
#include "muster/rocksdb/files.h"
#include "muster/rocksdb/options.h"
#include "muster/rocksdb/status.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/sst_file_reader.h"
#include "rocksdb/sst_file_writer.h"

namespace muster::rocksdb {
namespace {

namespace fs = std::filesystem;

// Tables, and logs in which something is.
absl::StatusOr<size_t> CountData(const std::string& dir) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<fs::path> files, FilesIn(dir));
  size_t count = 0;
  for (const fs::path& file : files) {
    std::error_code ignored;
    if (file.extension() == ".sst") ++count;
    if (file.extension() == ".log" && fs::file_size(file, ignored) > 0) ++count;
  }
  return count;
}

// RocksDB counts tables, logs and lists with one counter.
absl::StatusOr<uint64_t> HighestNumberIn(const std::string& dir) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<fs::path> files, FilesIn(dir));
  uint64_t highest = 0;
  for (const fs::path& file : files) {
    if (file.extension() != ".sst" && file.extension() != ".log") continue;
    highest = std::max<uint64_t>(highest, std::strtoull(file.stem().c_str(), nullptr, 10));
  }
  return highest;
}

// Says one thing: that a key which nobody has is not there. That is older than all else.
absl::Status MakeTable(const std::string& file, ::rocksdb::DB* db,
                       ::rocksdb::ColumnFamilyHandle* family) {
  ::rocksdb::SstFileWriter table(::rocksdb::EnvOptions(), db->GetOptions(family), family);
  ::rocksdb::Status status = table.Open(file);
  if (status.ok()) status = table.Delete("");
  if (status.ok()) status = table.Finish();
  return ToStatus(status, file);
}

// RocksDB learns a family's number from its tables, and drops what a log says of one without: so
// every family gets a table. Families are numbered by their place, in any database.
absl::Status AddTableOfEachFamily(const std::string& dir, DatabaseOptions options) {
  options.read_only = false;
  options.create_if_missing = true;
  MUSTER_ASSIGN_OR_RETURN(uint64_t number, HighestNumberIn(dir));
  const std::string example = absl::StrCat(dir, "/example");
  {
    MUSTER_ASSIGN_OR_RETURN(const auto database, Database::Open(example, options));
    for (size_t family = 0; family < options.families.size(); ++family) {
      MUSTER_RETURN_IF_ERROR(MakeTable(absl::StrFormat("%s/%06d.sst", dir, ++number),
                                       database->db(), database->family(family)));
    }
  }
  std::error_code error;
  fs::remove_all(example, error);
  return error ? FileError(error, absl::StrCat("adding tables to ", dir)) : absl::OkStatus();
}

::rocksdb::DBOptions RepairOptions(const DatabaseOptions& options) {
  ::rocksdb::DBOptions db = DbOptionsFor(options);
  db.create_if_missing = true;
  if (options.env != nullptr) db.env = options.env;
  return db;
}

absl::Status Repair(const std::string& dir, const DatabaseOptions& options) {
  const std::vector<::rocksdb::ColumnFamilyDescriptor> families = FamiliesOf(options);
  return ToStatus(::rocksdb::RepairDB(dir, RepairOptions(options), families), dir);
}

// RocksDB sets a table aside whatever kept it from reading it. Only damage is a reason to.
absl::Status CheckSetAside(const std::string& lost, const ::rocksdb::Options& options) {
  if (std::error_code ignored; !fs::exists(lost, ignored)) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const std::vector<fs::path> files, FilesIn(lost));
  for (const fs::path& file : files) {
    if (file.extension() != ".sst") continue;
    ::rocksdb::SstFileReader table(options);
    ::rocksdb::Status read = table.Open(file);
    if (read.ok()) read = table.VerifyChecksum();
    if (read.IsCorruption()) continue;
    MUSTER_RETURN_IF_ERROR(ToStatus(read, file.string()));
    return absl::UnavailableError(
        absl::StrCat(file.string(), " could not be read, but now it can: try again"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RebuildManifest(const std::string& dir, const DatabaseOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const size_t before, CountData(dir));
  MUSTER_RETURN_IF_ERROR(AddTableOfEachFamily(dir, options));
  MUSTER_RETURN_IF_ERROR(Repair(dir, options));
  const std::string lost = absl::StrCat(dir, "/lost");
  MUSTER_RETURN_IF_ERROR(CheckSetAside(lost, ::rocksdb::Options(RepairOptions(options), {})));
  std::error_code error;
  fs::remove_all(lost, error);  // they are where they were, too
  if (error) return FileError(error, absl::StrCat("tidying ", dir));
  MUSTER_ASSIGN_OR_RETURN(const size_t left, CountData(dir));
  if (before > 0 && left <= options.families.size()) {
    return absl::DataLossError(
        absl::StrCat("none of its ", before, " tables and logs can be read"));
  }
  return SyncFilesIn(dir);
}

}  // namespace muster::rocksdb
