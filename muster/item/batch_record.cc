// SPDX-License-Identifier: Apache-2.0
#include "muster/item/batch_record.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "muster/base/status.h"

namespace muster::item {
namespace {

constexpr int kMaxRaces = 25;

}  // namespace

BatchRecord::BatchRecord(sync::OptimisticSyncStore* store, std::string name)
    : store_(store), name_(std::move(name)) {}

absl::StatusOr<BatchRecord::Batches> BatchRecord::Parse(absl::string_view data) const {
  Batches batches;
  for (const absl::string_view text : absl::StrSplit(data, ',', absl::SkipEmpty())) {
    uint64_t batch = 0;
    if (!absl::SimpleAtoi(text, &batch)) {
      return absl::DataLossError(
          absl::StrCat("the record of ", name_, " has '", text, "' for a number"));
    }
    batches.insert(batch);
  }
  return batches;
}

absl::StatusOr<BatchRecord::Batches> BatchRecord::Read() const {
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData record, store_->Get(name_));
  return Parse(record.data);
}

absl::StatusOr<BatchRecord::Batches> BatchRecord::Change(
    absl::FunctionRef<bool(Batches*)> change) const {
  for (int race = 0; race < kMaxRaces; ++race) {
    MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData record, store_->Get(name_));
    MUSTER_ASSIGN_OR_RETURN(Batches batches, Parse(record.data));
    if (!change(&batches)) return batches;
    Bound(&batches);
    MUSTER_ASSIGN_OR_RETURN(const bool written,
                            store_->TryWrite(name_, absl::StrJoin(batches, ","), record.version));
    if (written) return batches;
  }
  return absl::AbortedError(absl::StrCat("others change the record of ", name_, " all the time"));
}

void Bound(BatchRecord::Batches* batches) {
  while (batches->size() > kMaxRecorded) batches->erase(batches->begin());
}

}  // namespace muster::item
