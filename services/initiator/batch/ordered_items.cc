// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/batch/ordered_items.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/fingerprint.h"
#include "muster/base/status.h"

namespace muster::initiator::batch {

void OrderedItems::Begin(const input::SliceStart& start) {
  window_ = nullptr;
  next_ = 0;
  reader_.emplace(source_->bytes().get(), job_->input, source_->header(), *job_->order_by,
                  SliceLimitsOf(*job_), start);
}

absl::Status OrderedItems::Changed(const ledger::ItemBoundary& boundary) const {
  return absl::DataLossError(absl::StrCat(
      source_->path(), ": the item that begins at line ", boundary.first_line,
      " has changed since the batch was split. Put it back from a backup, or cancel the batch and "
      "submit it again"));
}

absl::StatusOr<size_t> OrderedItems::Find(const ledger::ItemBoundary& boundary) {
  if (!boundary.window.has_value()) return Changed(boundary);
  const input::SliceStart start{boundary.window->offset, boundary.window->line};
  if (window_ == nullptr || window_->start.offset != start.offset) {
    Begin(start);
    MUSTER_ASSIGN_OR_RETURN(window_, reader_->Next());
  }
  if (window_ == nullptr) return Changed(boundary);
  const auto& slices = window_->slices;
  const auto found = std::lower_bound(
      slices.begin(), slices.end(), boundary.offset,
      [](const input::KeyedSlice& slice, uint64_t offset) { return slice.offset < offset; });
  if (found == slices.end() || found->offset != boundary.offset ||
      found->length != boundary.length) {
    return Changed(boundary);
  }
  return static_cast<size_t>(found - slices.begin());
}

absl::Status OrderedItems::GoOnBehind(const ledger::ItemBoundary& last) {
  MUSTER_ASSIGN_OR_RETURN(const size_t place, Find(last));
  next_ = place + 1;
  return absl::OkStatus();
}

absl::StatusOr<std::optional<OrderedItem>> OrderedItems::Next() {
  if (!reader_.has_value()) Begin(source_->FirstRecord());
  if (window_ == nullptr || next_ == window_->slices.size()) {
    window_ = nullptr;
    next_ = 0;
    MUSTER_ASSIGN_OR_RETURN(window_, reader_->Next());
    if (window_ == nullptr) return std::optional<OrderedItem>();
  }
  MUSTER_ASSIGN_OR_RETURN(OrderedItem item, ItemAt(next_++));
  return std::optional<OrderedItem>(std::move(item));
}

absl::StatusOr<OrderedItem> OrderedItems::Read(const ledger::ItemBoundary& boundary) {
  MUSTER_ASSIGN_OR_RETURN(const size_t place, Find(boundary));
  MUSTER_ASSIGN_OR_RETURN(OrderedItem item, ItemAt(place));
  if (item.boundary.content != boundary.content) return Changed(boundary);
  return item;
}

absl::StatusOr<OrderedItem> OrderedItems::ItemAt(size_t place) const {
  const input::KeyedSlice& slice = window_->slices[place];
  OrderedItem item;
  item.boundary.offset = slice.offset;
  item.boundary.length = slice.length;
  item.boundary.transactions = slice.transactions;
  item.boundary.oversized = slice.oversized;
  if (place == 0) item.boundary.multiline = window_->multiline;
  item.boundary.window = ledger::ItemWindow{window_->start.offset, window_->start.line};
  if (slice.oversized) {
    item.boundary.first_line = window_->start.line;
    MUSTER_ASSIGN_OR_RETURN(item.boundary.content,
                            source_->Fingerprint(slice.offset, slice.length));
    return item;
  }
  item.slice = window_->TextOf(slice);
  item.records.lines = window_->LinesOf(slice);
  if (slice.key.has_value()) item.records.key = item::OrderKeyOf(*slice.key);
  item.boundary.first_line = item.records.lines.front();
  item.boundary.content = base::Fingerprint(item.slice);
  return item;
}

}  // namespace muster::initiator::batch
