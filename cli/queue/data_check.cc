#include "cli/queue/data_check.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/run/local_run.h"
#include "muster/backend/backend.h"
#include "muster/backend/check.h"
#include "muster/base/status_macros.h"
#include "muster/item/queue_names.h"
#include "muster/item/work_item_codec.h"
#include "muster/os/shelf.h"
#include "services/controller/result_decoder.h"

namespace muster::cli {
namespace {

// Queues that no job names hold what they like.
absl::Status CheckBody(const queue::QueueId& queue, absl::string_view body,
                       blob::BlobStore* blobs) {
  const std::optional<item::Direction> direction = item::DirectionOf(queue.name);
  if (!direction.has_value()) return absl::OkStatus();
  const absl::Status decoded = *direction == item::Direction::kOutput
                                   ? controller::FirstError(controller::DecodeResults(body, blobs))
                                   : item::DecodeWorkItem(body, blobs).status();
  return absl::IsDataLoss(decoded) ? decoded : absl::OkStatus();
}

// 0 when there is no report, or none that can be read: that is not for this check to say.
uint64_t LastReported(const backend::DataDirUrls& urls, base::Clock* clock) {
  const auto store = backend::OpenReportStore(urls.report, backend::Mode::kReadOnly, clock);
  if (!store.ok()) return 0;
  const auto reader = (*store)->Read();
  if (!reader.ok()) return 0;
  const auto batches = (*reader)->Batches();
  return batches.ok() && !batches->empty() ? batches->back().batch : 0;
}

// Absent where there is no sync store. An error is one that the check of the sync store has told.
absl::StatusOr<sync::VersionedData> NextBatchNumber(const backend::DataDirUrls& urls) {
  const auto sync = backend::OpenSyncStore(urls.sync, backend::Mode::kReadOnly);
  if (absl::IsNotFound(sync.status())) return sync::VersionedData();
  MUSTER_RETURN_IF_ERROR(sync.status());
  return (*sync)->Get(kBatchNumbers);
}

// A number that came twice would count one batch's items as another's.
absl::Status CheckBatchNumbers(const backend::DataDirUrls& urls, uint64_t last_batch,
                               const os::CheckOptions& options, os::CheckSummary* summary) {
  const absl::StatusOr<sync::VersionedData> record = NextBatchNumber(urls);
  if (absl::IsDataLoss(record.status())) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(record.status());
  uint64_t next = 0;
  if (absl::SimpleAtoi(record->data, &next) && next > last_batch) return absl::OkStatus();
  if (record->version == sync::kAbsent && last_batch == 0) return absl::OkStatus();
  ++summary->damaged;
  os::Damage damage{.part = "sync",
                    .kind = "record",
                    .name = absl::StrCat("key '", kBatchNumbers, "'"),
                    .why = absl::StrCat("it would give a number again up to ", last_batch),
                    .remedy = absl::StrCat("the next batch is ", last_batch + 1)};
  if (record->version != sync::kAbsent) damage.records = {{"data", kBatchNumbers, record->data}};
  MUSTER_RETURN_IF_ERROR(options.findings->Add(damage));
  if (options.quarantine == nullptr) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(options.quarantine->Keep(damage));
  MUSTER_RETURN_IF_ERROR(options.quarantine->Sync());
  MUSTER_ASSIGN_OR_RETURN(const auto sync,
                          backend::OpenSyncStore(urls.sync, backend::Mode::kReadWrite));
  MUSTER_ASSIGN_OR_RETURN(
      const bool written,
      sync->TryWrite(kBatchNumbers, absl::StrCat(last_batch + 1), record->version));
  if (written) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("somebody else wrote ", damage.name, ": try again"));
}

}  // namespace

absl::StatusOr<os::CheckSummary> CheckRunData(const std::string& data_dir,
                                              const os::CheckOptions& options, base::Clock* clock) {
  backend::DataDirCheck check;
  check.check = options;
  check.account = item::kLocalAccount;
  check.clock = clock;
  check.check_body = CheckBody;
  MUSTER_ASSIGN_OR_RETURN(backend::DataDirSummary summary, backend::CheckDataDir(data_dir, check));
  const backend::DataDirUrls urls(data_dir);
  const uint64_t last_batch = std::max(summary.last_batch, LastReported(urls, clock));
  MUSTER_RETURN_IF_ERROR(CheckBatchNumbers(urls, last_batch, options, &summary));
  return summary;
}

}  // namespace muster::cli
