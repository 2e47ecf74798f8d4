// SPDX-License-Identifier: Apache-2.0

// MeshReopener: reopens batches of any initiator, for a redrive: the poison queue of a job holds
// messages of all initiators' batches.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "muster/item/redrive.h"
#include "muster/ledger/remote/remote_batch_records.h"

namespace muster::initiator::api {

// Thread-safe. Unavailable: no initiator that answers has the batch.
class MeshReopener final : public item::BatchReopener {
 public:
  // Neither is owned; both outlive this. `here` reopens the batches of this initiator.
  MeshReopener(item::BatchReopener* here, ledger::remote::RemoteBatchRecords* elsewhere)
      : here_(here), elsewhere_(elsewhere) {}

  absl::StatusOr<item::RefusedItems> Grant(uint64_t batch,
                                           absl::Span<const uint64_t> items) override {
    absl::StatusOr<item::RefusedItems> refused = here_->Grant(batch, items);
    if (!absl::IsNotFound(refused.status())) return refused;
    return elsewhere_->ReopenItems(batch, items);
  }

 private:
  item::BatchReopener* const here_;                      // not owned
  ledger::remote::RemoteBatchRecords* const elsewhere_;  // not owned
};

}  // namespace muster::initiator::api
