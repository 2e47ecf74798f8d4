// SPDX-License-Identifier: Apache-2.0
#include "muster/rocksdb/salvage.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "muster/base/failpoint.h"
#include "muster/base/status.h"
#include "muster/os/durable_file.h"
#include "muster/os/quarantine.h"
#include "muster/rocksdb/database.h"
#include "muster/rocksdb/directory.h"
#include "muster/rocksdb/options.h"
#include "muster/rocksdb/record_cursor.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/sst_file_reader.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/write_batch.h"

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

// A table with one entry: a deletion of a key that does not exist, older than all other entries.
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
  return error ? os::FileError(error.value(), "adding tables to", dir) : absl::OkStatus();
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

// RocksDB sets aside every table that it could not read. Only damage is a good reason for that, so
// this fails if a table there can be read now.
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

// Makes RocksDB's list of a database's tables again where it is lost (the MANIFEST, which CURRENT
// names).
//
// Lists every readable log and table in `dir`, and drops the rest: call it on a copy that no
// process has open. DataLoss: there were files, and none can be read. Other errors say nothing
// about the files.
absl::Status RebuildManifest(const std::string& dir, const DatabaseOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const size_t before, CountData(dir));
  MUSTER_RETURN_IF_ERROR(AddTableOfEachFamily(dir, options));
  MUSTER_RETURN_IF_ERROR(Repair(dir, options));
  const std::string lost = absl::StrCat(dir, "/lost");
  MUSTER_RETURN_IF_ERROR(CheckSetAside(lost, ::rocksdb::Options(RepairOptions(options), {})));
  std::error_code error;
  fs::remove_all(lost, error);  // they are where they were, too
  if (error) return os::FileError(error.value(), "tidying", dir);
  MUSTER_ASSIGN_OR_RETURN(const size_t left, CountData(dir));
  if (before > 0 && left <= options.families.size()) {
    return absl::DataLossError(
        absl::StrCat("none of its ", before, " tables and logs can be read"));
  }
  return os::SyncTree(dir);
}

// Of a batch that fills a new database.
constexpr size_t kCopyBytes = size_t{4} << 20;

// After OK, the originals may be replayed and deleted.
absl::Status KeepLogs(const std::string& dir, const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<fs::path> files, FilesIn(dir));
  for (const fs::path& file : files) {
    if (file.extension() != ".log") continue;
    const fs::path copy = fs::path(folder) / file.filename();
    std::error_code error;
    fs::copy_file(file, copy, fs::copy_options::overwrite_existing, error);
    if (error) return os::FileError(error.value(), "keeping the logs of", dir);
    MUSTER_RETURN_IF_ERROR(os::SyncPath(copy));
  }
  return os::SyncPath(folder);
}

// Writes what can be read of `from` into a new database. DataLoss: not even its blocks can be told
// apart.
absl::Status CopyReadable(const Database& from, const std::string& to, DatabaseOptions options,
                          uint64_t* gaps) {
  options.read_only = false;
  options.create_if_missing = true;
  MUSTER_ASSIGN_OR_RETURN(const auto copy, Database::Open(to, options));
  for (size_t family = 0; family < options.families.size(); ++family) {
    RecordCursor record(&from, family);
    while (record.valid()) {
      ::rocksdb::WriteBatch batch;
      for (; record.valid() && batch.GetDataSize() < kCopyBytes; record.Next()) {
        batch.Put(copy->family(family), ToSlice(record.key()), ToSlice(record.value()));
      }
      MUSTER_RETURN_IF_ERROR(copy->Write(&batch, Durability::kProcess));
    }
    MUSTER_RETURN_IF_ERROR(record.status());
    *gaps += record.gaps();
  }
  ::rocksdb::WriteBatch nothing;
  return copy->Write(&nothing, Durability::kPower);
}

// The files of `from` under new names; what RocksDB never changes is shared, not copied.
absl::Status LinkFiles(const std::string& from, const std::string& to) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<fs::path> files, FilesIn(from));
  std::error_code error;
  fs::create_directory(to, error);
  for (const fs::path& file : files) {
    if (error) break;
    // Closing any descriptor of LOCK would drop this process's own lock.
    if (file.filename() == "LOCK" || !fs::is_regular_file(file, error)) continue;
    const fs::path name = fs::path(to) / file.filename();
    if (file.extension() == ".sst") {
      fs::create_hard_link(file, name, error);
    } else {
      fs::copy_file(file, name, error);
    }
  }
  return error ? os::FileError(error.value(), "linking the files of", from) : absl::OkStatus();
}

// One repair or look.
//
// A repair holds the directory's lock from before it reads until it has put another directory in
// its place. In between it opens read-only, which needs no lock. What another process may do after
// the repair releases the lock and before it opens the database for good, it may do to any sound
// database.
class Salvage {
 public:
  Salvage(const std::string& dir, const DatabaseOptions& options, const SalvageOptions& salvage)
      : dir_(dir), fresh_(absl::StrCat(dir, ".new")), options_(options), salvage_(salvage) {
    options_.read_only = !repairs();
    options_.create_if_missing = false;
  }

  absl::StatusOr<std::unique_ptr<Database>> Open() {
    MUSTER_RETURN_IF_ERROR(KeepOthersOut());
    MUSTER_RETURN_IF_ERROR(KeepLeftover());
    absl::StatusOr<std::unique_ptr<Database>> seen = View(LogReplay::kRefuseDamage);
    if (absl::IsDataLoss(seen.status())) return OpenDamaged(seen.status());
    MUSTER_RETURN_IF_ERROR(seen.status());
    return OpenListed(*std::move(seen), LogReplay::kRefuseDamage);
  }

 private:
  bool repairs() const { return salvage_.keep_in != nullptr; }

  absl::Status Tell(std::string kind, const absl::Status& why, std::string remedy,
                    bool mendable = true) const {
    return salvage_.on_damage(
        {std::move(kind), std::string(why.message()), std::move(remedy), mendable});
  }

  absl::Status KeepOthersOut() {
    if (!repairs()) return CheckNobodyOwns(dir_);
    if (std::error_code ignored; !fs::is_directory(dir_, ignored)) {
      return absl::NotFoundError(absl::StrCat("no data in directory ", dir_));
    }
    ::rocksdb::Env* const env = options_.env == nullptr ? ::rocksdb::Env::Default() : options_.env;
    MUSTER_ASSIGN_OR_RETURN(DirectoryLock lock, DirectoryLock::Take(dir_, env));
    lock_.emplace(std::move(lock));
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<Database>> View(LogReplay replay) const {
    DatabaseOptions options = options_;
    options.read_only = true;
    options.log_replay = replay;
    return Database::Open(dir_, options);
  }

  absl::StatusOr<uint64_t> ChangesUpTo(LogReplay replay) const {
    MUSTER_ASSIGN_OR_RETURN(const auto database, View(replay));
    return database->db()->GetLatestSequenceNumber();
  }

  // Opens the database for the caller; the files are in their final state.
  absl::StatusOr<std::unique_ptr<Database>> OpenForGood(const DatabaseOptions& options) {
    lock_.reset();
    return Database::Open(dir_, options);
  }

  absl::StatusOr<std::unique_ptr<Database>> OpenDamaged(const absl::Status& why) {
    absl::StatusOr<std::unique_ptr<Database>> before = View(LogReplay::kStopAtDamage);
    if (absl::IsDataLoss(before.status())) return OpenWithoutTables(why);
    MUSTER_RETURN_IF_ERROR(before.status());
    MUSTER_RETURN_IF_ERROR(CutLog(why, (*before)->db()->GetLatestSequenceNumber()));
    return OpenListed(*std::move(before), LogReplay::kStopAtDamage);
  }

  // Its logs are damaged, `before` changes precede that.
  absl::Status CutLog(const absl::Status& why, uint64_t before) {
    const uint64_t all = ChangesUpTo(LogReplay::kSkipDamage).value_or(0);
    const uint64_t lost = all > before ? all - before : 1;
    MUSTER_RETURN_IF_ERROR(
        Tell("log", why,
             absl::StrCat("goes on with the ", before, " changes before the damage; at least ",
                          lost, " after it are lost")));
    if (!repairs()) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(const std::string folder, salvage_.keep_in());
    MUSTER_RETURN_IF_ERROR(KeepLogs(dir_, folder));
    MUSTER_FAILPOINT("repair.after_logs_kept");
    return absl::OkStatus();
  }

  // `seen` is what its list of tables and its logs, up to their damage, make of it.
  absl::StatusOr<std::unique_ptr<Database>> OpenListed(std::unique_ptr<Database> seen,
                                                       LogReplay replay) {
    const ::rocksdb::Status blocks = seen->db()->VerifyChecksum();
    if (!blocks.ok() && !blocks.IsCorruption()) return ToStatus(blocks, dir_);
    if (!blocks.ok()) return OpenWithoutBlocks(std::move(seen), ToStatus(blocks, dir_));
    if (!repairs()) return seen;
    seen.reset();
    DatabaseOptions options = options_;
    options.log_replay = replay;
    return OpenForGood(options);
  }

  // Some blocks of its tables are damaged.
  absl::StatusOr<std::unique_ptr<Database>> OpenWithoutBlocks(std::unique_ptr<Database> seen,
                                                              const absl::Status& why) {
    if (!repairs()) {
      MUSTER_RETURN_IF_ERROR(Tell("table", why, "all that can be read of it is kept"));
      return seen;
    }
    uint64_t gaps = 0;
    const absl::Status copied = CopyReadable(*seen, fresh_, options_, &gaps);
    seen.reset();
    if (!copied.ok()) RemoveFresh();
    if (absl::IsDataLoss(copied)) return OpenWithoutTables(why);
    MUSTER_RETURN_IF_ERROR(copied);
    MUSTER_RETURN_IF_ERROR(
        Tell("table", why,
             absl::StrCat("all that can be read of it is kept, but for ", gaps, " blocks")));
    return OpenFresh();
  }

  // Some tables, or the list of them, cannot be read at all.
  absl::StatusOr<std::unique_ptr<Database>> OpenWithoutTables(const absl::Status& why) {
    MUSTER_RETURN_IF_ERROR(Tell("table", why, "all tables that can be read are kept"));
    if (!repairs()) return why;
    absl::Status listed = LinkFiles(dir_, fresh_);
    if (listed.ok()) listed = RebuildManifest(fresh_, options_);
    if (listed.ok()) return OpenFresh();
    RemoveFresh();
    if (!absl::IsDataLoss(listed)) return listed;
    MUSTER_RETURN_IF_ERROR(Tell("files", listed,
                                salvage_.may_begin_anew ? "begins empty; all its files are kept"
                                                        : "restore it from a backup",
                                salvage_.may_begin_anew));
    if (!salvage_.may_begin_anew) return listed;
    MUSTER_RETURN_IF_ERROR(MoveAside(dir_));
    DatabaseOptions options = options_;
    options.create_if_missing = true;
    return OpenForGood(options);
  }

  // Takes the new database for the damaged one.
  absl::StatusOr<std::unique_ptr<Database>> OpenFresh() {
    MUSTER_FAILPOINT("repair.before_exchange");
    MUSTER_RETURN_IF_ERROR(os::Exchange(fresh_, dir_));
    MUSTER_FAILPOINT("repair.after_exchange");
    MUSTER_RETURN_IF_ERROR(MoveAside(fresh_));
    return OpenForGood(options_);
  }

  void RemoveFresh() const {
    std::error_code ignored;
    fs::remove_all(fresh_, ignored);
  }

  // A repair that was cut short left its half of an exchange: a copy, or what it was a copy of.
  absl::Status KeepLeftover() const {
    std::error_code ignored;
    return repairs() && fs::exists(fresh_, ignored) ? MoveAside(fresh_) : absl::OkStatus();
  }

  absl::Status MoveAside(const std::string& files) const {
    MUSTER_ASSIGN_OR_RETURN(const std::string folder, salvage_.keep_in());
    fs::path to = fs::path(folder) / "files";
    std::error_code error;
    for (int i = 2; fs::exists(to, error); ++i) to = fs::path(folder) / absl::StrCat("files", i);
    if (error) return os::FileError(error.value(), "keeping", files);
    return base::Annotate(os::Rename(files, to), absl::StrCat("keeping ", files));
  }

  const std::string dir_;
  const std::string fresh_;
  DatabaseOptions options_;
  const SalvageOptions& salvage_;
  std::optional<DirectoryLock> lock_;  // a repair's
};

}  // namespace

absl::StatusOr<std::unique_ptr<Database>> OpenToSalvage(const std::string& dir,
                                                        const DatabaseOptions& options,
                                                        const SalvageOptions& salvage) {
  return Salvage(dir, options, salvage).Open();
}

}  // namespace muster::rocksdb
