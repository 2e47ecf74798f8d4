#include "muster/item/cancelled_batches.h"

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "muster/base/check.h"
#include "muster/base/status.h"

namespace muster::item {
namespace {

constexpr char kRecord[] = "cancelled-batches";  // decimal numbers with commas between, ascending
constexpr int kMaxRaces = 25;

absl::StatusOr<std::set<uint64_t>> Parse(absl::string_view data) {
  std::set<uint64_t> batches;
  for (const absl::string_view text : absl::StrSplit(data, ',', absl::SkipEmpty())) {
    uint64_t batch = 0;
    if (!absl::SimpleAtoi(text, &batch)) {
      return absl::DataLossError(
          absl::StrCat("the record of cancelled batches has '", text, "' for a number"));
    }
    batches.insert(batch);
  }
  return batches;
}

}  // namespace

CancelledBatches::~CancelledBatches() {
  base::MutexLock lock(&mu_);
  MUSTER_CHECK(running_.empty(), "items that still run ", running_.size());
}

absl::Status CancelledBatches::Add(uint64_t batch) {
  Note(batch);
  for (int race = 0; race < kMaxRaces; ++race) {
    MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData record, store_->Get(kRecord));
    MUSTER_ASSIGN_OR_RETURN(std::set<uint64_t> batches, Parse(record.data));
    if (!batches.insert(batch).second) return absl::OkStatus();
    while (batches.size() > kMaxRemembered) batches.erase(batches.begin());
    MUSTER_ASSIGN_OR_RETURN(const bool written,
                            store_->TryWrite(kRecord, absl::StrJoin(batches, ","), record.version));
    if (written) return absl::OkStatus();
  }
  return absl::AbortedError("others cancel batches all the time");
}

absl::Status CancelledBatches::Refresh() {
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData record, store_->Get(kRecord));
  MUSTER_ASSIGN_OR_RETURN(const std::set<uint64_t> batches, Parse(record.data));
  base::MutexLock lock(&mu_);
  for (const uint64_t batch : batches) NoteLocked(batch);
  return absl::OkStatus();
}

void CancelledBatches::Note(uint64_t batch) {
  base::MutexLock lock(&mu_);
  NoteLocked(batch);
}

void CancelledBatches::NoteLocked(uint64_t batch) {
  batches_.insert(batch);
  while (batches_.size() > kMaxRemembered) batches_.erase(batches_.begin());
  any_ = true;
}

CancelledBatches::Running::Running(CancelledBatches* owner, uint64_t batch, std::stop_token also)
    : owner_(owner), relay_(std::move(also), Relay{stop_}) {
  base::MutexLock lock(&owner_->mu_);
  entry_ = owner_->running_.emplace(batch, stop_);
}

CancelledBatches::Running::~Running() {
  base::MutexLock lock(&owner_->mu_);
  owner_->running_.erase(entry_);
}

std::unique_ptr<CancelledBatches::Running> CancelledBatches::Run(uint64_t batch,
                                                                 std::stop_token also) {
  std::unique_ptr<Running> running(new Running(this, batch, std::move(also)));
  // The batch was cancelled between the worker's check and this one.
  if (Contains(batch)) running->stop_.request_stop();
  return running;
}

// Requests the stop without the lock: a stopped item may end at once, and remove itself from the
// list.
void CancelledBatches::StopRunning(uint64_t batch) {
  std::vector<std::stop_source> stops;
  {
    base::MutexLock lock(&mu_);
    const auto [begin, end] = running_.equal_range(batch);
    for (auto entry = begin; entry != end; ++entry) stops.push_back(entry->second);
  }
  for (std::stop_source& stop : stops) stop.request_stop();
}

bool CancelledBatches::Contains(uint64_t batch) const {
  if (!any_) return false;
  base::MutexLock lock(&mu_);
  return batches_.contains(batch);
}

}  // namespace muster::item
