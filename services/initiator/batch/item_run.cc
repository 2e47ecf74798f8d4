// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/batch/item_run.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/status.h"
#include "muster/item/queue_names.h"

namespace muster::initiator::batch {
namespace {

using ledger::Batch;
using ledger::ItemBoundary;

// A run ends early when its bodies reach this size, so that runs of large items stay small in
// memory.
constexpr size_t kRunBytes = size_t{8} << 20;

item::BatchIdentity IdentityOf(const Batch& batch, const input::Header& header) {
  item::BatchIdentity identity;
  identity.batch = batch.number;
  identity.job = batch.job;
  identity.job_revision = batch.job_revision;
  identity.handler_version = batch.handler_version;
  if (batch.sla.has_value()) identity.deadline = batch.created + *batch.sla;
  identity.positions = header.positions;
  identity.header_fields = static_cast<int>(header.fields.size());
  identity.trace = batch.trace;
  identity.owner = batch.owner;
  return identity;
}

// The queue recognises a put that is repeated after a crash by this id; a refill has ids of its
// own, and so has another initiator's batch that was given the same number.
std::string DedupId(const Batch& batch, uint64_t index) {
  return absl::StrCat("b", batch.number, batch.owner.empty() ? "" : "-", batch.owner, ".", index,
                      ".", batch.refills);
}

}  // namespace

ItemRun::ItemRun(const Batch* batch, const job::JobDefinition* job, const input::Header& header,
                 blob::BlobStore* blobs)
    : messages(static_cast<size_t>(job->queue.partitions)),
      indexes(messages.size()),
      batch_(batch),
      job_(job),
      encoder_(IdentityOf(*batch, header), job->input.max_record_bytes, blobs,
               job->queue.content_inline ? item::Carriage::kInline : item::Carriage::kByReference) {
}

absl::Status ItemRun::Add(uint64_t index, const ItemBoundary& item, absl::string_view slice) {
  MUSTER_ASSIGN_OR_RETURN(std::string body,
                          encoder_.Encode(static_cast<uint32_t>(index), item, slice));
  transactions += item.transactions;
  AddMessage(index, std::move(body), nullptr);
  return absl::OkStatus();
}

absl::Status ItemRun::AddInOrder(uint64_t index, const OrderedItem& item) {
  if (item.boundary.oversized) return Add(index, item.boundary, "");
  MUSTER_ASSIGN_OR_RETURN(std::string body,
                          encoder_.EncodeOrdered(static_cast<uint32_t>(index), item.boundary,
                                                 item.slice, item.records));
  transactions += item.boundary.transactions;
  AddMessage(index, std::move(body), item.records.key.has_value() ? &*item.records.key : nullptr);
  return absl::OkStatus();
}

bool ItemRun::IsFull(int wanted) const {
  const size_t most_bytes = std::min<uint64_t>(kRunBytes, static_cast<uint64_t>(room.bytes));
  return items >= wanted || items >= room.items || bytes >= most_bytes ||
         unrecorded.size() >= static_cast<size_t>(wanted);
}

void ItemRun::AddMessage(uint64_t index, std::string body, const std::string* key) {
  // A run is recorded and marked by its last index alone.
  MUSTER_CHECK(again || items == 0 || index == next_index, "batch ", batch_->number, ", item ",
               index, ", next ", next_index);
  bytes += body.size();
  next_index = index + 1;
  ++items;
  queue::NewMessage message;
  message.body = std::move(body);
  // The batch waits for its item, however long: an expired one would only be put again.
  message.ttl = queue::kNeverExpires;
  message.dedup_id = DedupId(*batch_, index);
  const size_t partition =
      key == nullptr
          ? index % messages.size()
          : static_cast<size_t>(item::PartitionOf(*key, static_cast<int>(messages.size())));
  messages[partition].push_back(std::move(message));
  indexes[partition].push_back(index);
}

}  // namespace muster::initiator::batch
