// SPDX-License-Identifier: Apache-2.0
#include "muster/rocksdb/database.h"

#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/base/config.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/clock.h"
#include "muster/base/failpoint.h"
#include "muster/base/status.h"
#include "muster/os/durable_file.h"
#include "muster/rocksdb/directory.h"
#include "muster/rocksdb/log_guard.h"
#include "muster/rocksdb/options.h"
#include "muster/telemetry/catalogue.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/status.h"
#include "rocksdb/write_batch.h"

#ifdef ABSL_HAVE_THREAD_SANITIZER
// Debian's RocksDB and Abseil are not instrumented: ThreadSanitizer sees what they copy but not
// what orders it, and would call every shared write group a race, and a table of error texts that
// is made once. Our own code stays under watch.
extern "C" const char* __tsan_default_suppressions() {
  return "race:librocksdb\n"
         "race:muster::rocksdb::Database::Write\n"
         "race:muster::rocksdb::Copy\n"
         "race:libabsl_strerror\n";
}
#endif

namespace muster::rocksdb {

namespace {

namespace fs = std::filesystem;

// How often a read-only open starts again because the owner replaced a file under its eyes.
constexpr int kReadOnlyTries = 5;

absl::Status OpenError(const ::rocksdb::Status& status, const std::string& dir) {
  const std::string text = status.ToString();
  MUSTER_RETURN_IF_ERROR(LockHeldError(status, dir));
  // Its first open did not come to its end, so nothing was ever written to it.
  if (status.IsInvalidArgument() && absl::StrContains(text, "Column family not found")) {
    return absl::NotFoundError(absl::StrCat("no data in directory ", dir, " yet"));
  }
  if (status.IsIOError() && absl::StrContains(text, "Read-only file system")) {
    return absl::FailedPreconditionError(
        absl::StrCat("data directory ", dir, " is on a file system that is read-only"));
  }
  const absl::Status error = ToStatus(status, absl::StrCat("open data directory ", dir));
  if (!status.IsCorruption()) return error;
  return absl::DataLossError(
      absl::StrCat(error.message(), "; `muster check` tells what is damaged"));
}

// Not inlined, so that Database::Write is a frame of its own in what a sanitizer reports.
ABSL_ATTRIBUTE_NOINLINE ::rocksdb::Status WriteTo(::rocksdb::DB* db,
                                                  const ::rocksdb::WriteOptions& options,
                                                  ::rocksdb::WriteBatch* batch) {
  return db->Write(options, batch);
}

// Whether a first open can have left this file when it was cut short before it wrote CURRENT, which
// names the list of tables. The list is RocksDB's first then; logs and tables come after CURRENT.
bool IsOfACutFirstOpen(const fs::path& file) {
  const std::string name = file.filename();
  if (absl::StartsWith(name, "MANIFEST-")) return name == "MANIFEST-000001";
  return file.extension() != ".sst" && file.extension() != ".log";
}

// DataLoss when `dir`, which has no CURRENT, once had. To create a database there would hide what
// was stored, and delete it.
absl::Status CheckNothingRemains(const std::string& dir) {
  const absl::StatusOr<std::vector<fs::path>> files = FilesIn(dir);
  if (absl::IsNotFound(files.status())) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(files.status());
  for (const fs::path& file : *files) {
    if (IsOfACutFirstOpen(file)) continue;
    // The owner may have finished its first open meanwhile.
    if (std::error_code ignored; fs::exists(fs::path(dir) / "CURRENT", ignored)) break;
    return absl::DataLossError(absl::StrCat("data directory ", dir, " has lost its file CURRENT: ",
                                            file.filename().string(), " is there"));
  }
  return absl::OkStatus();
}

struct Opened {
  ::rocksdb::DB* db = nullptr;
  std::vector<::rocksdb::ColumnFamilyHandle*> handles;

  void Close() {
    for (::rocksdb::ColumnFamilyHandle* handle : handles) db->DestroyColumnFamilyHandle(handle);
    handles.clear();
    delete std::exchange(db, nullptr);
  }
};

// All families at once: each one that an open finds missing costs a file of options, written, read
// back and synced. A crash in between leaves some missing, which the next open makes.
::rocksdb::Status CreateIn(const std::string& dir, const ::rocksdb::DBOptions& db,
                           std::vector<::rocksdb::ColumnFamilyDescriptor> families,
                           Opened* opened) {
  const std::vector<::rocksdb::ColumnFamilyDescriptor> only_default(families.begin(),
                                                                    families.begin() + 1);
  const ::rocksdb::Status status =
      ::rocksdb::DB::Open(db, dir, only_default, &opened->handles, &opened->db);
  if (!status.ok()) return status;
  families.erase(families.begin());
  std::vector<::rocksdb::ColumnFamilyHandle*> created;
  const ::rocksdb::Status all = opened->db->CreateColumnFamilies(families, &created);
  opened->handles.insert(opened->handles.end(), created.begin(), created.end());
  if (!all.ok()) opened->Close();
  return all;
}

::rocksdb::Status OpenOnce(const std::string& dir, const DatabaseOptions& options, bool exists,
                           ::rocksdb::Env* env, Opened* opened) {
  const std::vector<::rocksdb::ColumnFamilyDescriptor> families = FamiliesOf(options);
  ::rocksdb::DBOptions db = DbOptionsFor(options);
  db.env = env;
  if (options.read_only) {
    return ::rocksdb::DB::OpenForReadOnly(db, dir, families, &opened->handles, &opened->db);
  }
  if (!exists) return CreateIn(dir, db, families, opened);
  return ::rocksdb::DB::Open(db, dir, families, &opened->handles, &opened->db);
}

// Bytes of the write-ahead logs in `dir`.
uintmax_t LogBytes(const std::string& dir) {
  uintmax_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator file(dir, error), end; !error && file != end; file.increment(error)) {
    if (file->path().extension() != ".log") continue;
    std::error_code gone;  // a log may be deleted meanwhile
    const uintmax_t size = file->file_size(gone);
    if (!gone) bytes += size;
  }
  return bytes;
}

// For how long `db` has held writers up, as RocksDB itself counts it. Its events of stalls may come
// in another order than the stalls.
absl::Duration StallsOf(::rocksdb::DB* db) {
  std::map<std::string, std::string> stats;
  int64_t microseconds = 0;
  if (db->GetMapProperty(::rocksdb::DB::Properties::kDBStats, &stats)) {
    static_cast<void>(absl::SimpleAtoi(stats["db.user_write_stall_micros"], &microseconds));
  }
  return absl::Microseconds(microseconds);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Database>> Database::Open(const std::string& dir,
                                                         const DatabaseOptions& options) {
  std::error_code ignored;
  const bool exists = fs::exists(fs::path(dir) / "CURRENT", ignored);
  if (!exists) MUSTER_RETURN_IF_ERROR(CheckNothingRemains(dir));
  if (!exists && (options.read_only || !options.create_if_missing)) {
    return absl::NotFoundError(absl::StrCat("no data in directory ", dir));
  }
  if (!exists) MUSTER_RETURN_IF_ERROR(os::CreateFolder(dir));
  ::rocksdb::Env* const machine = options.env == nullptr ? ::rocksdb::Env::Default() : options.env;
  const auto log_guard = std::make_shared<LogGuard>(machine->GetFileSystem());
  std::unique_ptr<::rocksdb::Env> env = ::rocksdb::NewCompositeEnv(log_guard);
  Opened opened;
  ::rocksdb::Status status = OpenOnce(dir, options, exists, env.get(), &opened);
  for (int tries = 1; !status.ok() && options.read_only && tries < kReadOnlyTries; ++tries) {
    status = OpenOnce(dir, options, exists, env.get(), &opened);
  }
  if (!status.ok()) return OpenError(status, dir);
  std::unique_ptr<Database> database(
      new Database(dir, std::move(env), log_guard.get(), options.on_failure));
  database->Adopt(opened.db, opened.handles);
  database->Measure(options.metrics);
  return database;
}

Database::Database(std::string dir, std::unique_ptr<::rocksdb::Env> env, const LogGuard* log_guard,
                   std::function<void(const absl::Status&)> on_failure)
    : dir_(std::move(dir)),
      env_(std::move(env)),
      log_guard_(log_guard),
      on_failure_(std::move(on_failure)) {}

void Database::Adopt(::rocksdb::DB* db,
                     const std::vector<::rocksdb::ColumnFamilyHandle*>& handles) {
  db_.reset(db);
  default_family_ = handles.front();
  families_.assign(handles.begin() + 1, handles.end());
}

// Called before others have the database.
void Database::Measure(telemetry::Registry* metrics) {
  const std::string store = fs::path(dir_).filename().string();
  sync_seconds_ = telemetry::Histograms<1>(metrics, telemetry::kRocksDbSync).With({store});
  sizes_ = telemetry::ReadAtScrape(
      metrics, absl::StrCat("rocksdb ", store),
      {telemetry::kRocksDbMemtables.entry(), telemetry::kRocksDbWal.entry(),
       telemetry::kRocksDbStall.entry()},
      [this, store](telemetry::Samples* samples) {
        uint64_t memtables = 0;
        db_->GetAggregatedIntProperty(::rocksdb::DB::Properties::kCurSizeAllMemTables, &memtables);
        samples->Set(telemetry::kRocksDbMemtables, {store}, static_cast<double>(memtables));
        samples->Set(telemetry::kRocksDbWal, {store}, static_cast<double>(LogBytes(dir_)));
        samples->Set(telemetry::kRocksDbStall, {store}, absl::ToDoubleSeconds(StallsOf(db_.get())));
        return absl::OkStatus();
      });
}

Database::~Database() {
  sizes_.reset();
  on_failure_ = nullptr;
  for (::rocksdb::ColumnFamilyHandle* family : families_) db_->DestroyColumnFamilyHandle(family);
  db_->DestroyColumnFamilyHandle(default_family_);
  // What was written unsynced survives an orderly stop even if the power goes right after it. A
  // failure changes nothing of what was promised.
  SyncLog().PermitUncheckedError();
}

// Not WriteOptions::sync: RocksDB would hold up every other write, synced or not, while the disk is
// busy. Written first and synced by a call of its own, a lease or an attempt never waits for a
// disk.
absl::Status Database::Write(::rocksdb::WriteBatch* batch, Durability durability) {
  MUSTER_RETURN_IF_ERROR(CheckWritable());
  ::rocksdb::Status written = WriteTo(db_.get(), ::rocksdb::WriteOptions(), batch);
  if (written.ok()) written = log_guard_->failure();
  if (written.IsIOError() || written.IsCorruption()) Break(written);
  MUSTER_RETURN_IF_ERROR(ToStatus(written, absl::StrCat("write to ", dir_)));
  return durability == Durability::kProcess ? absl::OkStatus() : Sync();
}

// What was written but not synced can be read here and may be gone after a restart: nothing more
// may be built on it.
absl::Status Database::CheckWritable() const {
  if (!broken_) return absl::OkStatus();
  base::MutexLock lock(&failure_mu_);
  return failure_;
}

void Database::Break(const ::rocksdb::Status& failure) {
  const absl::Status why = absl::UnavailableError(
      absl::StrCat(IsDiskFull(failure)
                       ? absl::StrCat("the disk of ", dir_, " is full: make room and start again")
                       : absl::StrCat(dir_, " failed before and must be opened again"),
                   ": ", failure.ToString()));
  {
    base::MutexLock lock(&failure_mu_);
    if (broken_) return;
    failure_ = why;
    broken_ = true;
  }
  if (on_failure_) on_failure_(why);
}

::rocksdb::Status Database::SyncLog() {
  if (broken_) return ::rocksdb::Status::IOError("an earlier write failed");
  base::Clock* const clock = base::RealClock();
  const absl::Duration began = sync_seconds_.records() ? clock->Monotonic() : absl::ZeroDuration();
  ::rocksdb::Status synced = db_->SyncWAL();
  if (sync_seconds_.records()) sync_seconds_.Observe(clock->Monotonic() - began);
  if (synced.ok()) synced = log_guard_->failure();
  if (!synced.ok()) Break(synced);
  return synced;
}

absl::Status Database::Sync() {
  MUSTER_FAILPOINT("rocks.before_sync");
  base::MutexLock lock(&sync_mu_);
  const uint64_t mine = syncs_begun_ + 1;  // one that is under way may have missed the write
  while (syncs_ended_ < mine) {
    if (syncing_) {
      sync_ended_.Wait(&sync_mu_);
      continue;
    }
    MUSTER_CHECK(syncs_begun_ == syncs_ended_, "begun ", syncs_begun_, ", ended ", syncs_ended_);
    syncing_ = true;
    ++syncs_begun_;
    sync_mu_.Unlock();
    const ::rocksdb::Status synced = SyncLog();
    sync_mu_.Lock();
    syncing_ = false;
    syncs_ended_ = syncs_begun_;
    if (!synced.ok()) sync_failure_ = ToStatus(synced, absl::StrCat("sync ", dir_));
    sync_ended_.NotifyAll();
  }
  return sync_failure_;
}

}  // namespace muster::rocksdb
