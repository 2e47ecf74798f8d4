// SPDX-License-Identifier: Apache-2.0

// OrderedItems: the items of a batch whose job has order_by, each with records of one key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/input/key_groups.h"
#include "muster/item/work_item_codec.h"
#include "muster/job/job.h"
#include "muster/ledger/batch_ledger.h"
#include "services/initiator/batch/source.h"

namespace muster::initiator::batch {

struct OrderedItem {
  ledger::ItemBoundary boundary;
  std::string slice;             // empty: oversized
  item::OrderedRecords records;  // likewise
};

// Holds a window of the source at a time (input::kKeyWindowBytes). Not thread-safe.
class OrderedItems {
 public:
  // Neither is owned; the job has order_by.
  OrderedItems(const BatchSource* source, const job::JobDefinition* job)
      : source_(source), job_(job) {}

  // Next goes on behind this item, the last one that is recorded. DataLoss: the source has changed.
  absl::Status GoOnBehind(const ledger::ItemBoundary& last);

  // The next item; nullopt at the end. Errors as of SliceReader::Next.
  absl::StatusOr<std::optional<OrderedItem>> Next();

  // A recorded item again. Items of one window one after the other cost one look at the source.
  // DataLoss: the source does not have the item any more.
  absl::StatusOr<OrderedItem> Read(const ledger::ItemBoundary& boundary);

 private:
  void Begin(const input::SliceStart& start);
  // Has the window that begins there in hand, and finds the item in it.
  absl::StatusOr<size_t> Find(const ledger::ItemBoundary& boundary);
  absl::StatusOr<OrderedItem> ItemAt(size_t place) const;
  absl::Status Changed(const ledger::ItemBoundary& boundary) const;

  const BatchSource* const source_;      // not owned
  const job::JobDefinition* const job_;  // not owned
  std::optional<input::KeyGroupReader> reader_;
  const input::KeyedWindow* window_ = nullptr;  // of reader_
  size_t next_ = 0;                             // in window_
};

}  // namespace muster::initiator::batch
