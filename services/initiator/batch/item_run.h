// SPDX-License-Identifier: Apache-2.0

// ItemRun: consecutive items of a batch on their way into ledger and queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "muster/blob/blob_store.h"
#include "muster/input/slice_reader.h"
#include "muster/item/work_item_codec.h"
#include "muster/job/job.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/queue/queue_store.h"
#include "services/initiator/batch/back_pressure.h"
#include "services/initiator/batch/ordered_items.h"

namespace muster::initiator::batch {

// Not thread-safe.
class ItemRun {
 public:
  // `batch`, `job` and `blobs` are not owned, and outlive the run.
  ItemRun(const ledger::Batch* batch, const job::JobDefinition* job, const input::Header& header,
          blob::BlobStore* blobs);

  // Adds the message of an item, with its bytes where NeedsSlice says so. It may store a blob.
  absl::Status Add(uint64_t index, const ledger::ItemBoundary& item, absl::string_view slice);
  // The same of a job with order_by: into the partition of its key.
  absl::Status AddInOrder(uint64_t index, const OrderedItem& item);

  bool NeedsSlice(const ledger::ItemBoundary& item) const { return encoder_.NeedsSlice(item); }
  // Of `wanted` items.
  bool IsFull(int wanted) const;

  std::vector<std::vector<queue::NewMessage>> messages;  // by partition
  std::vector<std::vector<uint64_t>> indexes;            // of the items in `messages`
  std::vector<ledger::ItemBoundary> unrecorded;          // not yet in the ledger
  uint64_t next_index = 0;                               // behind the last item of this run
  uint64_t transactions = 0;
  int items = 0;  // to be put
  size_t bytes = 0;
  bool again = false;  // its items were put before
  // In the queue; repairs have no bound.
  BackPressure::Room room = {INT64_MAX, INT64_MAX};

 private:
  // The key says into which partition the message goes; nullptr: the index does.
  void AddMessage(uint64_t index, std::string body, const std::string* key);

  const ledger::Batch* const batch_;     // not owned
  const job::JobDefinition* const job_;  // not owned
  item::WorkItemEncoder encoder_;
};

}  // namespace muster::initiator::batch
