// SPDX-License-Identifier: Apache-2.0

// The proto forms of a batch (proto/muster/v1/batch.proto): a ledger stores them, and sends them to
// other processes. Fields that a newer muster has added are kept as they are.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "muster/ledger/batch_ledger.h"

namespace muster::v1 {
class BatchProgress;
class BatchRecord;
class ItemBoundary;
class MultilineRecords;
}  // namespace muster::v1

namespace muster::ledger {

using ItemBoundaryProtos = google::protobuf::RepeatedPtrField<v1::ItemBoundary>;

v1::BatchRecord RecordOf(const Batch& batch);
v1::BatchProgress ProgressOf(const Batch& batch);
v1::MultilineRecords ToProto(const base::MultilineRecords& multiline);
base::MultilineRecords FromProto(const v1::MultilineRecords& form);
void AddTo(absl::Span<const ItemBoundary> items, ItemBoundaryProtos* protos);

// Each fills its own fields of `batch`. DataLoss: a hash or a state is invalid.
absl::Status Fill(const v1::BatchRecord& record, Batch* batch);
absl::Status Fill(const v1::BatchProgress& progress, Batch* batch);
absl::StatusOr<std::vector<ItemBoundary>> FromProtos(const ItemBoundaryProtos& protos);

}  // namespace muster::ledger
