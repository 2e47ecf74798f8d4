// SPDX-License-Identifier: Apache-2.0
#include "muster/backend/data_dir_check.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/backend/backend.h"
#include "muster/base/status.h"
#include "muster/blob/file/file_blob_store.h"
#include "muster/ledger/rocksdb/ledger_check.h"
#include "muster/queue/rocksdb/check.h"
#include "muster/report/sqlite/connection.h"
#include "muster/report/sqlite/report_check.h"
#include "muster/rocksdb/directory.h"
#include "muster/stream/rocksdb/check.h"
#include "muster/sync/rocksdb/rocksdb_sync_store.h"

namespace muster::backend {
namespace {

class Check {
 public:
  Check(const std::string& data_dir, const DataDirCheck& options)
      : data_dir_(data_dir), options_(options) {}

  absl::StatusOr<DataDirSummary> Run() {
    // Check the ownership of all parts before repairing any.
    for (const char* part : {"queue", "ledger", "sync", "stream"}) {
      MUSTER_RETURN_IF_ERROR(rocksdb::CheckNobodyOwns(PathOf(part)));
    }
    const DataDirUrls urls(data_dir_);
    MUSTER_RETURN_IF_ERROR(report::sqlite::CheckNobodyWrites(urls.report_file));
    MUSTER_RETURN_IF_ERROR(Add(blob::file::CheckBlobs(PathOf("blobs"), options_.check)));
    MUSTER_RETURN_IF_ERROR(Add(CheckQueues()));
    ledger::rocksdb::LedgerCheckOptions ledger;
    ledger.check = options_.check;
    ledger.clock = options_.clock;
    const auto checked = ledger::rocksdb::CheckLedger(PathOf("ledger"), ledger);
    if (checked.ok()) summary_.last_batch = checked->last_batch;
    MUSTER_RETURN_IF_ERROR(Add(checked));
    MUSTER_RETURN_IF_ERROR(CheckReport(urls, checked));
    MUSTER_RETURN_IF_ERROR(Add(sync::rocksdb::CheckSync(PathOf("sync"), options_.check)));
    MUSTER_RETURN_IF_ERROR(
        Add(stream::rocksdb::CheckStreams(PathOf("stream"), {.check = options_.check})));
    if (parts_ > 0) return summary_;
    return absl::NotFoundError(absl::StrCat("no data in directory ", data_dir_));
  }

 private:
  std::string PathOf(absl::string_view part) const { return absl::StrCat(data_dir_, "/", part); }

  template <typename CheckSummary>
  absl::Status Add(const absl::StatusOr<CheckSummary>& part) {
    if (absl::IsNotFound(part.status())) return absl::OkStatus();
    ++parts_;
    if (absl::IsDataLoss(part.status())) {
      ++summary_.damaged;  // already reported in the findings
      return absl::OkStatus();
    }
    MUSTER_RETURN_IF_ERROR(part.status());
    summary_.records += part->records;
    summary_.damaged += part->damaged;
    return absl::OkStatus();
  }

  absl::Status CheckReport(const DataDirUrls& urls,
                           const absl::StatusOr<ledger::rocksdb::LedgerSummary>& ledger) {
    std::vector<report::sqlite::KnownBatch> known;
    report::sqlite::ReportCheckOptions report;
    report.check = options_.check;
    if (ledger.ok()) {
      for (const ledger::rocksdb::CheckedBatch& batch : ledger->batches) {
        known.push_back({batch.number, batch.items, batch.complete, batch.items_deleted});
      }
      report.ledger_batches = &known;
    }
    const auto checked = report::sqlite::CheckReport(urls.report_file, report);
    if (checked.ok()) {
      summary_.last_batch = std::max(summary_.last_batch, checked->last_batch);
      const bool is_repair = options_.check.quarantine != nullptr;
      if (is_repair) MUSTER_RETURN_IF_ERROR(OpenAgain(urls, checked->lacking));
    }
    return Add(checked);
  }

  static absl::Status OpenAgain(const DataDirUrls& urls, const std::vector<uint64_t>& batches) {
    if (batches.empty()) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(const auto ledger, OpenBatchLedger(urls.ledger, Mode::kReadWrite));
    for (const uint64_t batch : batches) MUSTER_RETURN_IF_ERROR(ledger->Reopen(batch));
    return absl::OkStatus();
  }

  absl::StatusOr<os::CheckSummary> CheckQueues() {
    blob::file::Options read_only;
    read_only.read_only = true;
    const auto blobs = blob::file::FileBlobStore::Open(PathOf("blobs"), read_only);
    queue::rocksdb::QueueCheckOptions queue;
    queue.check = options_.check;
    queue.account = options_.account;
    queue.clock = options_.clock;
    if (options_.check_body && blobs.ok()) {
      queue.check_body = [&](const queue::QueueId& id, absl::string_view body) {
        return options_.check_body(id, body, blobs->get());
      };
    }
    return queue::rocksdb::CheckQueues(PathOf("queue"), queue);
  }

  const std::string& data_dir_;
  const DataDirCheck& options_;
  DataDirSummary summary_;
  int parts_ = 0;
};

}  // namespace

absl::StatusOr<DataDirSummary> CheckDataDir(const std::string& data_dir,
                                            const DataDirCheck& options) {
  return Check(data_dir, options).Run();
}

}  // namespace muster::backend
