#include "muster/item/suspended_batches.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "muster/base/status.h"

namespace muster::item {
namespace {

// Decimal numbers with commas between, ascending.
constexpr char kSuspendedRecord[] = "suspended-batches";
constexpr int kMaxSuspendRaces = 25;

absl::StatusOr<std::set<uint64_t>> ParseSuspended(absl::string_view data) {
  std::set<uint64_t> batches;
  for (const absl::string_view text : absl::StrSplit(data, ',', absl::SkipEmpty())) {
    uint64_t batch = 0;
    if (!absl::SimpleAtoi(text, &batch)) {
      return absl::DataLossError(
          absl::StrCat("the record of suspended batches has '", text, "' for a number"));
    }
    batches.insert(batch);
  }
  return batches;
}

}  // namespace

absl::Status SuspendedBatches::Add(uint64_t batch) {
  return Change([batch](Batches* batches) {
    const bool is_new = batches->insert(batch).second;
    while (batches->size() > kMaxSuspended) batches->erase(batches->begin());
    return is_new;
  });
}

absl::Status SuspendedBatches::Remove(uint64_t batch) {
  return Change([batch](Batches* batches) { return batches->erase(batch) > 0; });
}

absl::Status SuspendedBatches::Refresh() {
  return Change([](Batches*) { return false; });
}

absl::Status SuspendedBatches::Change(absl::FunctionRef<bool(Batches*)> change) {
  for (int race = 0; race < kMaxSuspendRaces; ++race) {
    MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData record, store_->Get(kSuspendedRecord));
    MUSTER_ASSIGN_OR_RETURN(Batches batches, ParseSuspended(record.data));
    bool is_done = !change(&batches);
    if (!is_done) {
      MUSTER_ASSIGN_OR_RETURN(
          is_done, store_->TryWrite(kSuspendedRecord, absl::StrJoin(batches, ","), record.version));
    }
    if (!is_done) continue;
    base::MutexLock lock(&mu_);
    batches_ = std::move(batches);
    return absl::OkStatus();
  }
  return absl::AbortedError("others suspend batches all the time");
}

bool SuspendedBatches::Contains(uint64_t batch) const {
  base::MutexLock lock(&mu_);
  return batches_.contains(batch);
}

}  // namespace muster::item
