#include "muster/rocks/salvage.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/failpoint.h"
#include "muster/base/status_macros.h"
#include "muster/rocks/slice.h"
#include "muster/rocks/status.h"
#include "rocksdb/db.h"
#include "rocksdb/iterator.h"
#include "rocksdb/write_batch.h"

namespace muster::rocks {
namespace {

namespace fs = std::filesystem;

// Of a batch that fills a new database.
constexpr size_t kCopyBytes = size_t{4} << 20;
// Keys are looked for behind a gap as numbers of so many bytes; longer ones differ before.
constexpr size_t kProbeBytes = 24;

absl::Status FileError(const std::error_code& error, absl::string_view doing) {
  return absl::ErrnoToStatus(error.value(), doing);
}

// The smallest key above `key`.
std::string After(std::string key) { return key.append(1, '\0'); }

// The middle between two keys, as numbers of kProbeBytes bytes behind a point.
std::string Middle(std::string low, std::string high) {
  low.resize(kProbeBytes);
  high.resize(kProbeBytes, '\xff');
  std::string sum(kProbeBytes + 1, '\0');
  int carry = 0;
  for (size_t i = kProbeBytes; i-- > 0;) {
    const int digit =
        static_cast<unsigned char>(low[i]) + static_cast<unsigned char>(high[i]) + carry;
    sum[i + 1] = static_cast<char>(digit);
    carry = digit >> 8;
  }
  sum[0] = static_cast<char>(carry);
  for (size_t i = kProbeBytes; i > 0; --i) {
    const int digit = static_cast<unsigned char>(sum[i]) | static_cast<unsigned char>(sum[i - 1])
                                                               << 8;
    sum[i] = static_cast<char>(digit >> 1);
  }
  return sum.substr(1);
}

rocksdb::SequenceNumber ChangesUpTo(const std::string& dir, DatabaseOptions options,
                                    LogReplay replay) {
  options.read_only = true;
  options.log_replay = replay;
  const auto database = Database::Open(dir, options);
  return database.ok() ? (*database)->db()->GetLatestSequenceNumber() : 0;
}

// Copies the logs of `dir` to `folder`; answers how many bytes they have.
absl::StatusOr<uint64_t> KeepLogs(const std::string& dir, const std::string& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(dir, error)) {
    if (entry.path().extension() != ".log") continue;
    const fs::path copy = fs::path(folder) / entry.path().filename();
    if (fs::copy_file(entry.path(), copy, error); error) break;
    bytes += entry.file_size(error);
  }
  if (error) return FileError(error, absl::StrCat("keeping the logs of ", dir));
  return bytes;
}

// In one step, so that no instant is without a database.
absl::Status Exchange(const std::string& a, const std::string& b) {
  if (renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, absl::StrCat("exchanging ", a, " and ", b));
}

// Writes what can be read of `from` into a new database.
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
    *gaps += record.gaps();
  }
  rocksdb::WriteBatch nothing;
  return copy->Write(&nothing, Durability::kPower);
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
    if (absl::IsDataLoss(database.status())) database = OpenWithoutLog(database.status());
    if (absl::IsDataLoss(database.status())) database = BeginAnew(database.status());
    MUSTER_RETURN_IF_ERROR(database.status());
    const rocksdb::Status tables = (*database)->db()->VerifyChecksum();
    if (tables.ok()) return database;
    if (!tables.IsCorruption()) return ToStatus(tables, dir_);
    return OpenWithoutTables(*std::move(database), tables.ToString());
  }

 private:
  bool repairs() const { return salvage_.keep_in != nullptr; }

  absl::Status Tell(std::string kind, std::string why, std::string remedy,
                    bool mendable = true) const {
    return salvage_.on_damage({std::move(kind), std::move(why), std::move(remedy), mendable});
  }

  // Whatever a log cannot be blamed for stays an error.
  absl::StatusOr<std::unique_ptr<Database>> OpenWithoutLog(const absl::Status& why) {
    const uint64_t before = ChangesUpTo(dir_, options_, LogReplay::kStopAtDamage);
    if (before == 0) return why;
    const uint64_t all = ChangesUpTo(dir_, options_, LogReplay::kSkipDamage);
    MUSTER_RETURN_IF_ERROR(Tell(
        "log", std::string(why.message()),
        absl::StrCat("goes on with the ", before, " changes before the damage; at least ",
                     std::max<uint64_t>(1, all - std::min(all, before)), " after it are lost")));
    if (repairs()) {
      MUSTER_ASSIGN_OR_RETURN(const std::string folder, salvage_.keep_in());
      MUSTER_RETURN_IF_ERROR(KeepLogs(dir_, folder).status());
      MUSTER_FAILPOINT("repair.after_logs_kept");
    }
    DatabaseOptions options = options_;
    options.log_replay = LogReplay::kStopAtDamage;
    return Database::Open(dir_, options);
  }

  absl::StatusOr<std::unique_ptr<Database>> OpenWithoutTables(std::unique_ptr<Database> database,
                                                              const std::string& why) {
    if (!repairs()) {
      MUSTER_RETURN_IF_ERROR(Tell("table", why, "all that can be read of it is kept"));
      return database;
    }
    uint64_t gaps = 0;
    MUSTER_RETURN_IF_ERROR(CopyReadable(*database, fresh_, options_, &gaps));
    MUSTER_RETURN_IF_ERROR(
        Tell("table", why,
             absl::StrCat("all that can be read of it is kept; stretches that cannot: ", gaps)));
    database.reset();
    MUSTER_RETURN_IF_ERROR(Exchange(fresh_, dir_));
    MUSTER_FAILPOINT("repair.after_exchange");
    MUSTER_RETURN_IF_ERROR(MoveAside(fresh_));
    return Database::Open(dir_, options_);
  }

  absl::StatusOr<std::unique_ptr<Database>> BeginAnew(const absl::Status& why) {
    const bool possible = repairs() && salvage_.may_begin_anew;
    MUSTER_RETURN_IF_ERROR(Tell("files", std::string(why.message()),
                                salvage_.may_begin_anew
                                    ? "begins empty; all its files are kept"
                                    : "cannot be repaired: restore it from a backup",
                                salvage_.may_begin_anew));
    if (!possible) return why;
    MUSTER_RETURN_IF_ERROR(MoveAside(dir_));
    DatabaseOptions options = options_;
    options.create_if_missing = true;
    return Database::Open(dir_, options);
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
                                                        DatabaseOptions options,
                                                        const SalvageOptions& salvage) {
  return Salvage(dir, options, salvage).Open();
}

RecordCursor::RecordCursor(const Database* database, size_t family, absl::string_view from)
    : database_(database), family_(family) {
  Open(std::string(from));
  PassGap(std::string(from));
}

RecordCursor::~RecordCursor() = default;

bool RecordCursor::valid() const { return it_->Valid(); }
absl::string_view RecordCursor::key() const { return ToView(it_->key()); }
absl::string_view RecordCursor::value() const { return ToView(it_->value()); }

void RecordCursor::Next() {
  std::string from = After(std::string(key()));
  it_->Next();
  PassGap(std::move(from));
}

void RecordCursor::Open(const std::string& from) {
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  options.verify_checksums = false;
  it_.reset(database_->db()->NewIterator(options, database_->family(family_)));
  it_->Seek(from);
}

// Where the gap ends is found by halves: a seek into it fails, one behind it does not. An iterator
// that failed once stays so, hence a new one for each look.
void RecordCursor::PassGap(std::string from) {
  if (it_->Valid() || it_->status().ok()) return;
  ++gaps_;
  std::string behind;  // a key that can be sought; "" stands for the end
  for (int i = 0; i < static_cast<int>(8 * kProbeBytes); ++i) {
    const std::string middle = Middle(from, behind);
    if (middle <= from) break;
    Open(middle);
    (it_->Valid() || it_->status().ok() ? behind : from) = middle;
  }
  if (behind.empty()) return;  // nothing can be read up to the end
  Open(behind);
}

}  // namespace muster::rocks
