// SPDX-License-Identifier: Apache-2.0
#include "muster/report/sqlite/report_check.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/os/durable_file.h"
#include "muster/os/file_descriptor.h"
#include "muster/report/audit.h"
#include "muster/report/report_store.h"
#include "muster/report/sqlite/connection.h"
#include "muster/report/sqlite/page_sums.h"
#include "muster/report/sqlite/rebuild.h"
#include "muster/report/sqlite/sqlite_report_reader.h"
#include "muster/report/sqlite/write_ahead_log.h"

namespace muster::report::sqlite {
namespace {

using os::Damage;

constexpr char kPart[] = "report";

class Check {
 public:
  Check(const std::string& path, const ReportCheckOptions& options)
      : path_(path), options_(options) {}

  absl::StatusOr<ReportSummary> Run() {
    os::FileDescriptor lock;
    if (is_repair()) {
      MUSTER_ASSIGN_OR_RETURN(lock, LockForWriting(path_));
    } else {
      MUSTER_RETURN_IF_ERROR(CheckNobodyWrites(path_));
    }
    MUSTER_RETURN_IF_ERROR(CheckLog());
    MUSTER_RETURN_IF_ERROR(CheckPages());
    MUSTER_RETURN_IF_ERROR(CheckBatches());
    connection_.reset();
    MUSTER_RETURN_IF_ERROR(CheckComplete());
    if (is_repair() && (summary_.damaged > 0 || lacks_sums_)) MUSTER_RETURN_IF_ERROR(Mend());
    return std::move(summary_);
  }

 private:
  bool is_repair() const { return options_.check.quarantine != nullptr; }

  absl::Status Found(Damage damage) {
    damage.part = kPart;
    ++summary_.damaged;
    return options_.check.findings->Add(damage);
  }
  absl::Status TakeAway(uint64_t batch, absl::string_view why) {
    taken_away_.insert(batch);
    return Found({.kind = "batch",
                  .name = absl::StrCat("batch ", batch),
                  .why = std::string(why),
                  .remedy = "the batch is taken away; running its input again counts it again"});
  }
  absl::Status TakeAllAway(absl::string_view why) {
    all_taken_away_ = true;
    return Found({.kind = "batch",
                  .name = "every batch",
                  .why = std::string(why),
                  .remedy = "all are taken away; running their inputs again counts them again"});
  }

  absl::Status CheckLog();
  absl::Status CheckPages();
  absl::Status FoundPages(int64_t first, int64_t last);
  absl::Status CheckBatches();
  // What all batches share. DataLoss: none of them can be told from the others.
  absl::Status ReadCommon(const absl::StatusOr<std::unique_ptr<report::ReportReader>>& reader,
                          std::vector<report::Progress>* batches);
  // nullptr: the ledger does not know it, or there is none.
  const KnownBatch* InLedger(uint64_t batch) const;
  absl::Status CheckBatch(report::ReportReader& reader, const report::Progress& batch);
  absl::Status CheckComplete();
  absl::Status CheckStructure();
  absl::Status Mend();

  const std::string& path_;
  const ReportCheckOptions& options_;
  ReportSummary summary_;
  std::unique_ptr<Connection> connection_;  // while the batches are checked
  bool has_sums_ = false;
  bool lacks_sums_ = false;             // somewhere
  std::map<uint64_t, uint64_t> sound_;  // batches and their items
  std::set<uint64_t> taken_away_;
  bool all_taken_away_ = false;
};

absl::Status Check::CheckLog() {
  const std::string log = path_ + "-wal";
  MUSTER_ASSIGN_OR_RETURN(const int64_t lost, CommitsBehindDamage(log));
  if (lost == 0) return absl::OkStatus();
  return Found({.kind = "log",
                .name = "report.db-wal",
                .why = absl::StrCat(lost, " commits follow a record whose checksum does not match"),
                .remedy = "the report goes on with what precedes the damage; running the inputs "
                          "again counts what is missing"});
}

absl::Status Check::FoundPages(int64_t first, int64_t last) {
  const bool one = first == last;
  return Found(
      {.kind = "pages",
       .name = one ? absl::StrCat("page ", first) : absl::StrCat("pages ", first, " to ", last),
       .why = one ? "its checksum does not match" : "their checksums do not match",
       .remedy = "the report is made again of the batches that are sound"});
}

// Reads the file itself: a page that is in no table is a part of it, too. SQLite must not have it
// open in this process: it would lose its locks when the file is closed here.
absl::Status Check::CheckPages() {
  const os::FileDescriptor file(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return os::FileError(errno, "opening", path_);
  std::string page(kPageBytes, '\0');
  int64_t unsummed = 0;
  int64_t damaged_from = 0;  // the run of damaged pages that is being read; 0: none
  for (int64_t number = 1;; ++number) {
    const ssize_t bytes = pread(file.get(), page.data(), kPageBytes, (number - 1) * kPageBytes);
    if (bytes < 0) return os::FileError(errno, "reading", path_);
    if (number == 1) {
      has_sums_ = HasPageSums({page.data(), static_cast<size_t>(bytes)});
      lacks_sums_ = !has_sums_ && bytes > 0;
    }
    if (bytes > 0) ++summary_.records;
    const bool is_damaged = has_sums_ && bytes > 0 &&
                            (bytes < kPageBytes || CheckPage(page, number) == PageState::kDamaged);
    if (is_damaged && damaged_from == 0) damaged_from = number;
    if (!is_damaged && damaged_from != 0) {
      MUSTER_RETURN_IF_ERROR(FoundPages(std::exchange(damaged_from, 0), number - 1));
    }
    if (bytes == 0) break;
    const bool is_empty = page.find_first_not_of('\0') == std::string::npos;
    if (has_sums_ && !is_damaged && !is_empty && CheckPage(page, number) == PageState::kUnsummed) {
      ++unsummed;
    }
  }
  if (lacks_sums_) {
    options_.check.findings->Note(
        absl::StrCat("report: an older muster made it, without checksums",
                     is_repair() ? "; they are added" : ": --repair adds them"));
  } else if (unsummed > 0) {
    lacks_sums_ = true;
    options_.check.findings->Note(
        absl::StrCat("report: another program wrote ", unsummed, " pages, without checksums",
                     is_repair() ? "; they are added" : ": --repair adds them"));
  }
  return absl::OkStatus();
}

// What the batches do not show: trees that share a page, indexes. Only of a file without page sums:
// elsewhere the pages are as muster wrote them.
absl::Status Check::CheckStructure() {
  MUSTER_ASSIGN_OR_RETURN(const auto connection, Connection::Open(path_, OpenMode::kReadOnly));
  MUSTER_ASSIGN_OR_RETURN(Statement query, connection->Prepare("PRAGMA integrity_check(1)"));
  MUSTER_ASSIGN_OR_RETURN(const bool found, query.Step());
  if (found && query.Text(0) == "ok") return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("SQLite: ", found ? query.Text(0) : "no answer"));
}

const KnownBatch* Check::InLedger(uint64_t batch) const {
  const std::vector<KnownBatch>* const known = options_.ledger_batches;
  if (known == nullptr) return nullptr;
  const auto it =
      std::lower_bound(known->begin(), known->end(), batch,
                       [](const KnownBatch& one, uint64_t number) { return one.number < number; });
  return it != known->end() && it->number == batch ? &*it : nullptr;
}

// OK: the rows of a batch are what its totals and its receipt say.
absl::Status Prove(report::ReportReader& reader, const report::Progress& batch, bool by_receipt) {
  MUSTER_RETURN_IF_ERROR(report::TakeTally(reader, batch.batch).status());
  if (!by_receipt) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const report::Verification verified,
                          report::VerifyReceipt(reader, batch.batch));
  return verified.ok() ? absl::OkStatus() : absl::DataLossError(verified.differences.front());
}

absl::Status Check::CheckBatch(report::ReportReader& reader, const report::Progress& batch) {
  const KnownBatch* const known = InLedger(batch.batch);
  if (options_.ledger_batches != nullptr && known == nullptr) {
    return TakeAway(batch.batch, "the ledger does not know it");
  }
  // A batch that is open again has the receipt of an earlier state.
  const bool is_over = known == nullptr ? !has_sums_ : known->complete;
  absl::Status proved = Prove(reader, batch, is_over && batch.receipt_revision > 0);
  if (proved.ok()) proved = CheckCopyable(connection_.get(), batch.batch);
  if (absl::IsUnavailable(proved) || absl::IsResourceExhausted(proved)) return proved;
  // The pages show damage by themselves, and CheckComplete what is missing.
  if (!proved.ok() && known != nullptr && known->items_deleted) return absl::OkStatus();
  if (!proved.ok()) return TakeAway(batch.batch, proved.message());
  sound_.emplace(batch.batch, static_cast<uint64_t>(batch.items()));
  return absl::OkStatus();
}

// The log may have held the last commits of a batch, or the report may be an older copy.
absl::Status Check::CheckComplete() {
  if (options_.ledger_batches == nullptr) return absl::OkStatus();
  for (const KnownBatch& batch : *options_.ledger_batches) {
    const auto it = sound_.find(batch.number);
    const uint64_t counted = it == sound_.end() ? 0 : it->second;
    if (!batch.complete || counted >= batch.items) continue;
    if (batch.items_deleted) {
      options_.check.findings->Note(absl::StrCat(
          "report: batch ", batch.number, " is not whole: its items are deleted, as its retention ",
          "says, so nothing counts it again; the retention, or `muster batch delete`, takes the ",
          "rest away"));
      continue;
    }
    summary_.lacking.push_back(batch.number);
    if (all_taken_away_ || taken_away_.contains(batch.number)) continue;
    MUSTER_RETURN_IF_ERROR(
        Found({.kind = "batch",
               .name = absl::StrCat("batch ", batch.number),
               .why = absl::StrCat("it has ", counted, " of the ", batch.items,
                                   " items that the ledger has as counted"),
               .remedy = "the batch is open again; running its input again counts the others"}));
  }
  return absl::OkStatus();
}

absl::Status Check::ReadCommon(const absl::StatusOr<std::unique_ptr<report::ReportReader>>& reader,
                               std::vector<report::Progress>* batches) {
  MUSTER_RETURN_IF_ERROR(reader.status());
  if (!has_sums_) MUSTER_RETURN_IF_ERROR(CheckStructure());
  MUSTER_ASSIGN_OR_RETURN(connection_, Connection::Open(path_, OpenMode::kReadOnly));
  MUSTER_RETURN_IF_ERROR(CheckCatalog(connection_.get()));
  MUSTER_ASSIGN_OR_RETURN(*batches, (*reader)->Batches());
  return absl::OkStatus();
}

absl::Status Check::CheckBatches() {
  const auto reader = OpenReader(path_);
  // A file that its maker did not get to fill.
  if (absl::IsNotFound(reader.status())) return absl::OkStatus();
  std::vector<report::Progress> batches;
  const absl::Status readable = ReadCommon(reader, &batches);
  if (absl::IsDataLoss(readable)) return TakeAllAway(readable.message());
  MUSTER_RETURN_IF_ERROR(readable);
  for (const report::Progress& batch : batches) {
    MUSTER_RETURN_IF_ERROR(CheckBatch(**reader, batch));
  }
  if (!batches.empty()) summary_.last_batch = batches.back().batch;
  return absl::OkStatus();
}

absl::Status Check::Mend() {
  namespace fs = std::filesystem;
  if (summary_.damaged > 0) {
    MUSTER_ASSIGN_OR_RETURN(const std::string folder, options_.check.quarantine->FolderOf(kPart));
    for (const char* suffix : {"", "-wal"}) {
      const fs::path file = path_ + suffix;
      std::error_code error;
      if (!fs::exists(file, error)) continue;
      fs::copy_file(file, folder / file.filename(), fs::copy_options::overwrite_existing, error);
      if (error) return os::FileError(error.value(), "copying", file.string());
    }
    MUSTER_RETURN_IF_ERROR(options_.check.quarantine->Sync());
  }
  std::vector<uint64_t> batches;
  for (const auto& [batch, items] : sound_) batches.push_back(batch);
  return Rebuild(path_, batches);
}

}  // namespace

absl::StatusOr<ReportSummary> CheckReport(const std::string& path,
                                          const ReportCheckOptions& options) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return absl::NotFoundError(absl::StrCat("there is no report ", path));
  }
  return Check(path, options).Run();
}

}  // namespace muster::report::sqlite
