// SPDX-License-Identifier: Apache-2.0
#include "muster/item/work_item_codec.h"

#include <lz4.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/check.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/v1/work_item.pb.h"

namespace muster::item {
namespace {

// Trades a few per cent of size for half of the time: an item lives in the queue for moments.
constexpr int kAcceleration = 8;

absl::Status Damaged(const v1::WorkItem& item, absl::string_view why) {
  return absl::DataLossError(
      absl::StrCat("work item ", item.batch(), "/", item.index(), ": ", why));
}

// Whether a newer muster carries the slice in a way that this one does not know.
bool IsOfANewerForm(const v1::WorkItem& item) {
  const bool has_unknown_fields = !item.GetReflection()->GetUnknownFields(item).empty();
  const bool lacks_content =
      item.payload_case() == v1::WorkItem::PAYLOAD_NOT_SET ||
      (item.has_ordered() && item.ordered().content_case() == v1::OrderedSlice::CONTENT_NOT_SET &&
       !item.ordered().GetReflection()->GetUnknownFields(item.ordered()).empty());
  return item.compression() > v1::COMPRESSION_LZ4 ||
         (item.payload_case() == v1::WorkItem::PAYLOAD_NOT_SET ? has_unknown_fields
                                                               : lacks_content);
}

// No hash covers them, and a parser goes by them: a damaged one must not lead it out of the record.
bool AreSound(const v1::CsvLayout& csv) {
  const uint32_t fields = csv.header_fields() == 0 ? kMaxCsvFields : csv.header_fields();
  return fields <= kMaxCsvFields &&
         std::all_of(csv.positions().begin(), csv.positions().end(),
                     [&](uint32_t position) { return position < fields; });
}

absl::StatusOr<v1::WorkItem> ParseWorkItem(absl::string_view body) {
  v1::WorkItem item;
  if (body.size() > std::numeric_limits<int>::max() ||
      !item.ParseFromArray(body.data(), static_cast<int>(body.size()))) {
    return absl::DataLossError("work item: its message cannot be parsed");
  }
  if (item.batch() == 0 || item.transactions() == 0 || item.content_hash().size() != 16) {
    return absl::DataLossError("work item: its message lacks an identity");
  }
  if (item.raw_bytes() > kMaxRawBytes) return Damaged(item, "its slice claims to be too large");
  // Its parser counts on from there, at most one line a byte.
  if (item.first_line() < 0 || item.first_line() > std::numeric_limits<int64_t>::max() -
                                                       static_cast<int64_t>(kMaxRawBytes)) {
    return Damaged(item, "no input has so many lines");
  }
  if (item.has_ordered() &&
      static_cast<uint64_t>(item.ordered().line_steps_size()) + 1 != item.transactions()) {
    return Damaged(item, "it has another number of lines than of records");
  }
  if (!AreSound(item.csv())) return Damaged(item, "it names fields that no record has");
  return item;
}

OrderedRecords OrderedOf(const v1::WorkItem& item) {
  OrderedRecords records;
  if (item.ordered().has_key()) records.key = item.ordered().key();
  uint64_t line = static_cast<uint64_t>(item.first_line());
  records.lines.push_back(static_cast<int64_t>(line));
  for (const uint64_t step : item.ordered().line_steps()) {
    line += step;  // of a damaged message it may wrap around
    records.lines.push_back(static_cast<int64_t>(line));
  }
  return records;
}

WorkItem HeaderOf(v1::WorkItem* item) {
  WorkItem decoded;
  decoded.identity.batch = item->batch();
  decoded.identity.job = std::move(*item->mutable_job());
  decoded.identity.job_revision = std::move(*item->mutable_job_revision());
  decoded.identity.handler_version = std::move(*item->mutable_handler_version());
  decoded.identity.positions.assign(item->csv().positions().begin(), item->csv().positions().end());
  decoded.identity.header_fields = static_cast<int>(item->csv().header_fields());
  if (item->has_deadline()) {
    decoded.identity.deadline = base::FromProto(item->deadline());
  }
  decoded.identity.trace = base::TraceContext::FromBytes(item->trace_context());
  if (decoded.identity.trace.has_value()) {
    decoded.identity.trace->state = std::move(*item->mutable_trace_state());
  }
  decoded.index = item->index();
  decoded.first_line = item->first_line();
  decoded.transactions = item->transactions();
  decoded.content = *base::Fingerprint128::FromBytes(item->content_hash());
  if (item->has_oversized()) {
    decoded.oversized_bytes = item->oversized().record_bytes();
    decoded.limit_bytes = item->oversized().limit_bytes();
  }
  decoded.slice_bytes = item->raw_bytes();
  if (item->has_source()) {
    decoded.by_reference = true;
    decoded.identity.owner = std::move(*item->mutable_source()->mutable_owner());
  }
  if (item->has_ordered()) decoded.ordered = OrderedOf(*item);
  return decoded;
}

// No item may name what belongs to another item, or to a result.
bool IsItsBlob(absl::string_view name, const v1::WorkItem& item) {
  const std::optional<BlobOwner> owner = OwnerOfBlob(name);
  return blob::ValidateBlobName(name).ok() && owner.has_value() && !owner->is_result &&
         owner->batch == item.batch() && owner->item == item.index();
}

absl::StatusOr<std::string> SliceIn(const v1::WorkItem& item, absl::string_view payload) {
  if (item.compression() == v1::COMPRESSION_NONE) return std::string(payload);
  if (item.compression() != v1::COMPRESSION_LZ4) return Damaged(item, "unknown compression");
  std::string raw(item.raw_bytes(), '\0');
  if (!Decompress(payload, &raw)) return Damaged(item, "its slice cannot be decompressed");
  return raw;
}

}  // namespace

std::string OrderKeyOf(absl::string_view field) {
  if (field.size() <= kMaxOrderKeyBytes) return std::string(field);
  const std::string hash = base::Fingerprint(field).ToHex();
  return absl::StrCat(field.substr(0, kMaxOrderKeyBytes - hash.size()), hash);
}

int PartitionOf(absl::string_view key, int partitions) {
  MUSTER_CHECK(partitions > 0, "partitions ", partitions);
  return static_cast<int>(base::Fingerprint(key).high % static_cast<uint64_t>(partitions));
}

std::string BlobName(uint64_t batch, uint32_t index, absl::string_view owner) {
  return absl::StrCat("batch-", batch, owner.empty() ? "" : "-of-", owner, "-item-", index);
}

std::optional<BlobOwner> OwnerOfBlob(absl::string_view name) {
  std::vector<absl::string_view> words = absl::StrSplit(name, '-');
  BlobOwner owner;
  if (words.size() > 4 && words[2] == "of") {
    owner.owner = std::string(words[3]);
    words.erase(words.begin() + 2, words.begin() + 4);
  }
  if (words.size() < 4 || words[0] != "batch" || words[2] != "item") return std::nullopt;
  owner.is_result = words.size() > 4;
  if (owner.is_result && words[4] != "result") return std::nullopt;
  if (!absl::SimpleAtoi(words[1], &owner.batch) || !absl::SimpleAtoi(words[3], &owner.item)) {
    return std::nullopt;
  }
  return owner;
}

bool Compress(absl::string_view raw, std::string* compressed) {
  compressed->resize(static_cast<size_t>(LZ4_compressBound(static_cast<int>(raw.size()))));
  const int size = LZ4_compress_fast(raw.data(), compressed->data(), static_cast<int>(raw.size()),
                                     static_cast<int>(compressed->size()), kAcceleration);
  if (size <= 0 || static_cast<size_t>(size) >= raw.size()) return false;
  compressed->resize(static_cast<size_t>(size));
  return true;
}

bool Decompress(absl::string_view compressed, std::string* raw) {
  const int size =
      LZ4_decompress_safe(compressed.data(), raw->data(), static_cast<int>(compressed.size()),
                          static_cast<int>(raw->size()));
  return size >= 0 && static_cast<size_t>(size) == raw->size();
}

WorkItemEncoder::WorkItemEncoder(BatchIdentity identity, uint64_t record_limit_bytes,
                                 blob::BlobStore* blobs, Carriage carriage)
    : identity_(std::move(identity)),
      record_limit_bytes_(record_limit_bytes),
      blobs_(blobs),
      carriage_(carriage) {}

bool WorkItemEncoder::NeedsSlice(const ledger::ItemBoundary& item) const {
  if (item.oversized) return false;
  return carriage_ == Carriage::kInline || item.length <= kShortSliceBytes;
}

v1::WorkItem WorkItemEncoder::Header(uint32_t index, const ledger::ItemBoundary& item) const {
  v1::WorkItem message;
  message.set_batch(identity_.batch);
  message.set_index(index);
  message.set_job(identity_.job);
  message.set_job_revision(identity_.job_revision);
  message.set_handler_version(identity_.handler_version);
  message.set_first_line(item.first_line);
  message.set_transactions(item.transactions);
  message.set_content_hash(item.content.ToBytes());
  if (identity_.deadline.has_value()) {
    *message.mutable_deadline() = base::ToProto(*identity_.deadline);
  }
  if (!identity_.positions.empty()) {
    message.mutable_csv()->mutable_positions()->Add(identity_.positions.begin(),
                                                    identity_.positions.end());
    message.mutable_csv()->set_header_fields(static_cast<uint32_t>(identity_.header_fields));
  }
  if (identity_.trace.has_value()) {
    message.set_trace_context(identity_.trace->ToBytes());
    message.set_trace_state(identity_.trace->state);
  }
  return message;
}

absl::StatusOr<std::string> WorkItemEncoder::Encode(uint32_t index,
                                                    const ledger::ItemBoundary& item,
                                                    absl::string_view slice) {
  v1::WorkItem message = Header(index, item);
  if (item.oversized) {
    message.mutable_oversized()->set_record_bytes(item.length);
    message.mutable_oversized()->set_limit_bytes(record_limit_bytes_);
    return message.SerializeAsString();
  }
  message.set_raw_bytes(item.length);
  if (!NeedsSlice(item)) {
    message.mutable_source()->set_owner(identity_.owner);
    return message.SerializeAsString();
  }
  MUSTER_CHECK(slice.size() == item.length, "item ", identity_.batch, "/", index, ", bytes ",
               slice.size(), " of ", item.length);
  MUSTER_RETURN_IF_ERROR(Carry(
      index, slice, &message,
      [&message](absl::string_view payload) {
        message.set_inline_(payload.data(), payload.size());
      },
      [&message](const std::string& blob) { message.set_blob(blob); }));
  return message.SerializeAsString();
}

absl::StatusOr<std::string> WorkItemEncoder::EncodeOrdered(uint32_t index,
                                                           const ledger::ItemBoundary& item,
                                                           absl::string_view slice,
                                                           const OrderedRecords& records) {
  MUSTER_CHECK(slice.size() == item.length && records.lines.size() == item.transactions, "item ",
               identity_.batch, "/", index, ", bytes ", slice.size(), " of ", item.length,
               ", lines ", records.lines.size(), " of ", item.transactions);
  v1::WorkItem message = Header(index, item);
  message.set_raw_bytes(item.length);
  v1::OrderedSlice& ordered = *message.mutable_ordered();
  if (records.key.has_value()) ordered.set_key(*records.key);
  for (size_t i = 1; i < records.lines.size(); ++i) {
    ordered.add_line_steps(static_cast<uint64_t>(records.lines[i] - records.lines[i - 1]));
  }
  MUSTER_RETURN_IF_ERROR(Carry(
      index, slice, &message,
      [&ordered](absl::string_view payload) {
        ordered.set_inline_(payload.data(), payload.size());
      },
      [&ordered](const std::string& blob) { ordered.set_blob(blob); }));
  return message.SerializeAsString();
}

template <typename SetInline, typename SetBlob>
absl::Status WorkItemEncoder::Carry(uint32_t index, absl::string_view slice, v1::WorkItem* message,
                                    SetInline set_inline, SetBlob set_blob) {
  const bool pays = Compress(slice, &compressed_);
  message->set_compression(pays ? v1::COMPRESSION_LZ4 : v1::COMPRESSION_NONE);
  const absl::string_view payload = pays ? absl::string_view(compressed_) : slice;
  if (payload.size() <= kInlinePayloadBytes) {
    set_inline(payload);
    return absl::OkStatus();
  }
  const std::string name = BlobName(identity_.batch, index, identity_.owner);
  MUSTER_RETURN_IF_ERROR(blobs_->Put(name, payload));
  set_blob(name);
  return absl::OkStatus();
}

std::optional<std::string> OrderKeyIn(absl::string_view body) {
  absl::StatusOr<v1::WorkItem> item = ParseWorkItem(body);
  if (!item.ok() || !item->ordered().has_key()) return std::nullopt;
  return std::move(*item->mutable_ordered()->mutable_key());
}

absl::StatusOr<WorkItem> DecodeWorkItemHeader(absl::string_view body) {
  MUSTER_ASSIGN_OR_RETURN(v1::WorkItem item, ParseWorkItem(body));
  return HeaderOf(&item);
}

absl::StatusOr<WorkItem> DecodeWorkItem(absl::string_view body, blob::BlobStore* blobs) {
  MUSTER_ASSIGN_OR_RETURN(v1::WorkItem item, ParseWorkItem(body));
  if (IsOfANewerForm(item)) {
    return absl::UnimplementedError(
        absl::StrCat("work item ", item.batch(), "/", item.index(),
                     ": a newer muster has put it in a form that this one cannot read"));
  }
  if (item.has_oversized() || item.has_source()) return HeaderOf(&item);
  std::string slice;
  const bool in_order = item.has_ordered();
  if (in_order ? item.ordered().has_blob() : item.has_blob()) {
    const std::string& blob = in_order ? item.ordered().blob() : item.blob();
    if (!IsItsBlob(blob, item)) {
      return Damaged(item, absl::StrCat("'", blob, "' is not the name of its blob"));
    }
    absl::StatusOr<std::string> payload = blobs->Get(blob);
    if (absl::IsNotFound(payload.status())) {
      return Damaged(item, absl::StrCat("its blob ", blob, " is gone"));
    }
    MUSTER_RETURN_IF_ERROR(payload.status());
    absl::StatusOr<std::string> content = SliceIn(item, *payload);
    // Retention of earlier releases replaced the blobs of dead letters by their bare content.
    if (!content.ok() && base::Fingerprint(*payload).ToBytes() == item.content_hash()) {
      content = *std::move(payload);
    }
    MUSTER_ASSIGN_OR_RETURN(slice, std::move(content));
  } else {
    MUSTER_ASSIGN_OR_RETURN(slice,
                            SliceIn(item, in_order ? item.ordered().inline_() : item.inline_()));
  }
  WorkItem decoded = HeaderOf(&item);
  if (base::Fingerprint(slice) != decoded.content) {
    return Damaged(item, "its content does not match its hash");
  }
  decoded.slice = std::move(slice);
  return decoded;
}

}  // namespace muster::item
