#include "muster/rocks/salvage.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/failpoint.h"
#include "muster/base/status_macros.h"
#include "muster/rocks/options.h"
#include "muster/rocks/record_cursor.h"
#include "muster/rocks/slice.h"
#include "muster/rocks/status.h"
#include "rocksdb/cache.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"

namespace muster::rocks {
namespace {

namespace fs = std::filesystem;

// Of a batch that fills a new database.
constexpr size_t kCopyBytes = size_t{4} << 20;

absl::Status FileError(const std::error_code& error, absl::string_view doing) {
  return absl::ErrnoToStatus(error.value(), doing);
}

absl::Status KeepLogs(const std::string& dir, const std::string& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(dir, error)) {
    if (entry.path().extension() != ".log") continue;
    const fs::path copy = fs::path(folder) / entry.path().filename();
    if (fs::copy_file(entry.path(), copy, fs::copy_options::overwrite_existing, error); error)
      break;
  }
  return error ? FileError(error, absl::StrCat("keeping the logs of ", dir)) : absl::OkStatus();
}

// In one step, so that no instant is without a database.
absl::Status Exchange(const std::string& a, const std::string& b) {
  if (renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, absl::StrCat("exchanging ", a, " and ", b));
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
      rocksdb::WriteBatch batch;
      for (; record.valid() && batch.GetDataSize() < kCopyBytes; record.Next()) {
        batch.Put(copy->family(family), ToSlice(record.key()), ToSlice(record.value()));
      }
      MUSTER_RETURN_IF_ERROR(copy->Write(&batch, Durability::kProcess));
    }
    MUSTER_RETURN_IF_ERROR(record.status());
    *gaps += record.gaps();
  }
  rocksdb::WriteBatch nothing;
  return copy->Write(&nothing, Durability::kPower);
}

// The files of `from` under new names; what RocksDB never changes is shared, not copied.
absl::Status LinkFiles(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::create_directory(to, error);
  for (const auto& entry : fs::directory_iterator(from, error)) {
    const fs::path name = fs::path(to) / entry.path().filename();
    if (error || !entry.is_regular_file() || name.filename() == "LOCK") continue;
    if (entry.path().extension() == ".sst") {
      fs::create_hard_link(entry.path(), name, error);
    } else {
      fs::copy_file(entry.path(), name, error);
    }
    if (error) break;
  }
  return error ? FileError(error, absl::StrCat("linking the files of ", from)) : absl::OkStatus();
}

// Makes RocksDB's list of files again of those that can be read.
absl::Status ListTablesAgain(const std::string& dir, const DatabaseOptions& options) {
  const auto cache = rocksdb::NewLRUCache(options.block_cache_bytes);
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  families.emplace_back(rocksdb::kDefaultColumnFamilyName, rocksdb::ColumnFamilyOptions());
  for (const Family& family : options.families) {
    families.emplace_back(family.name, FamilyOptionsFor(family, cache));
  }
  rocksdb::DBOptions db = DbOptionsFor(options);
  db.create_if_missing = true;
  if (options.env != nullptr) db.env = options.env;
  MUSTER_RETURN_IF_ERROR(ToStatus(rocksdb::RepairDB(dir, db, families), dir));
  std::error_code error;
  fs::remove_all(fs::path(dir) / "lost", error);  // they are where they were, too
  return error ? FileError(error, absl::StrCat("tidying ", dir)) : absl::OkStatus();
}

// One repair or look.
class Salvage {
 public:
  Salvage(const std::string& dir, const DatabaseOptions& options, const SalvageOptions& salvage)
      : dir_(dir), fresh_(absl::StrCat(dir, ".new")), options_(options), salvage_(salvage) {
    options_.read_only = !repairs();
    options_.create_if_missing = false;
  }

  absl::StatusOr<std::unique_ptr<Database>> Open() {
    MUSTER_RETURN_IF_ERROR(CheckNobodyOwns(dir_));
    MUSTER_RETURN_IF_ERROR(KeepLeftover());
    absl::StatusOr<std::unique_ptr<Database>> database = Database::Open(dir_, options_);
    if (absl::IsDataLoss(database.status())) {
      const absl::Status why = database.status();
      database =
          ChangesUpTo(LogReplay::kStopAtDamage).ok() ? OpenWithoutLog(why) : OpenWithoutTables(why);
    }
    MUSTER_RETURN_IF_ERROR(database.status());
    const rocksdb::Status blocks = (*database)->db()->VerifyChecksum();
    if (blocks.ok()) return database;
    if (!blocks.IsCorruption()) return ToStatus(blocks, dir_);
    return OpenWithoutBlocks(*std::move(database), ToStatus(blocks, dir_));
  }

 private:
  bool repairs() const { return salvage_.keep_in != nullptr; }

  absl::Status Tell(std::string kind, const absl::Status& why, std::string remedy,
                    bool mendable = true) const {
    return salvage_.on_damage(
        {std::move(kind), std::string(why.message()), std::move(remedy), mendable});
  }

  absl::StatusOr<uint64_t> ChangesUpTo(LogReplay replay) const {
    DatabaseOptions options = options_;
    options.read_only = true;
    options.log_replay = replay;
    MUSTER_ASSIGN_OR_RETURN(const auto database, Database::Open(dir_, options));
    return database->db()->GetLatestSequenceNumber();
  }

  absl::StatusOr<std::unique_ptr<Database>> OpenWithoutLog(const absl::Status& why) {
    MUSTER_ASSIGN_OR_RETURN(const uint64_t before, ChangesUpTo(LogReplay::kStopAtDamage));
    const uint64_t all = ChangesUpTo(LogReplay::kSkipDamage).value_or(0);
    const uint64_t lost = all > before ? all - before : 1;
    MUSTER_RETURN_IF_ERROR(
        Tell("log", why,
             absl::StrCat("goes on with the ", before, " changes before the damage; at least ",
                          lost, " after it are lost")));
    if (repairs()) {
      MUSTER_ASSIGN_OR_RETURN(const std::string folder, salvage_.keep_in());
      MUSTER_RETURN_IF_ERROR(KeepLogs(dir_, folder));
      MUSTER_FAILPOINT("repair.after_logs_kept");
    }
    DatabaseOptions options = options_;
    options.log_replay = LogReplay::kStopAtDamage;
    return Database::Open(dir_, options);
  }

  // Some blocks of its tables are damaged.
  absl::StatusOr<std::unique_ptr<Database>> OpenWithoutBlocks(std::unique_ptr<Database> database,
                                                              const absl::Status& why) {
    if (!repairs()) {
      MUSTER_RETURN_IF_ERROR(Tell("table", why, "all that can be read of it is kept"));
      return database;
    }
    uint64_t gaps = 0;
    const absl::Status copied = CopyReadable(*database, fresh_, options_, &gaps);
    database.reset();
    if (absl::IsDataLoss(copied)) {
      std::error_code ignored;
      fs::remove_all(fresh_, ignored);
      return OpenWithoutTables(why);
    }
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
    MUSTER_RETURN_IF_ERROR(LinkFiles(dir_, fresh_));
    const absl::Status listed = ListTablesAgain(fresh_, options_);
    if (listed.ok()) return OpenFresh();
    MUSTER_RETURN_IF_ERROR(Tell("files", listed,
                                salvage_.may_begin_anew ? "begins empty; all its files are kept"
                                                        : "restore it from a backup",
                                salvage_.may_begin_anew));
    std::error_code ignored;
    fs::remove_all(fresh_, ignored);
    if (!salvage_.may_begin_anew) return listed;
    MUSTER_RETURN_IF_ERROR(MoveAside(dir_));
    DatabaseOptions options = options_;
    options.create_if_missing = true;
    return Database::Open(dir_, options);
  }

  // Takes the new database for the damaged one.
  absl::StatusOr<std::unique_ptr<Database>> OpenFresh() {
    MUSTER_RETURN_IF_ERROR(Exchange(fresh_, dir_));
    MUSTER_FAILPOINT("repair.after_exchange");
    MUSTER_RETURN_IF_ERROR(MoveAside(fresh_));
    return Database::Open(dir_, options_);
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
    fs::rename(files, to, error);
    if (error) return FileError(error, absl::StrCat("keeping ", files));
    return absl::OkStatus();
  }

  const std::string dir_;
  const std::string fresh_;
  DatabaseOptions options_;
  const SalvageOptions& salvage_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Database>> OpenToSalvage(const std::string& dir,
                                                        const DatabaseOptions& options,
                                                        const SalvageOptions& salvage) {
  return Salvage(dir, options, salvage).Open();
}

}  // namespace muster::rocks
