#include "muster/item/work_item_codec.h"

#include <lz4.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/check.h"
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
  return item.compression() > v1::COMPRESSION_LZ4 ||
         (item.payload_case() == v1::WorkItem::PAYLOAD_NOT_SET && has_unknown_fields);
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
  if (!AreSound(item.csv())) return Damaged(item, "it names fields that no record has");
  return item;
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
    decoded.identity.deadline = absl::FromUnixSeconds(item->deadline().seconds()) +
                                absl::Nanoseconds(item->deadline().nanos());
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
  return decoded;
}

absl::StatusOr<std::string> Decompress(const v1::WorkItem& item, absl::string_view payload) {
  if (item.compression() == v1::COMPRESSION_NONE) return std::string(payload);
  if (item.compression() != v1::COMPRESSION_LZ4) return Damaged(item, "unknown compression");
  std::string raw(item.raw_bytes(), '\0');
  const int size = LZ4_decompress_safe(payload.data(), raw.data(), static_cast<int>(payload.size()),
                                       static_cast<int>(raw.size()));
  if (size < 0 || static_cast<uint64_t>(size) != item.raw_bytes()) {
    return Damaged(item, "its slice cannot be decompressed");
  }
  return raw;
}

}  // namespace

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

WorkItemEncoder::WorkItemEncoder(BatchIdentity identity, uint64_t record_limit_bytes,
                                 blob::BlobStore* blobs)
    : identity_(std::move(identity)), record_limit_bytes_(record_limit_bytes), blobs_(blobs) {}

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
    const int64_t nanos = absl::ToUnixNanos(*identity_.deadline);
    message.mutable_deadline()->set_seconds(nanos / 1'000'000'000);
    message.mutable_deadline()->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
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
  MUSTER_CHECK(!item.oversized || slice.empty(), "item ", identity_.batch, "/", index, ", bytes ",
               slice.size());
  v1::WorkItem message = Header(index, item);
  message.set_raw_bytes(slice.size());
  if (item.oversized) {
    message.mutable_oversized()->set_record_bytes(item.length);
    message.mutable_oversized()->set_limit_bytes(record_limit_bytes_);
    return message.SerializeAsString();
  }
  compressed_.resize(LZ4_compressBound(static_cast<int>(slice.size())));
  const int size =
      LZ4_compress_fast(slice.data(), compressed_.data(), static_cast<int>(slice.size()),
                        static_cast<int>(compressed_.size()), kAcceleration);
  const bool pays = size > 0 && static_cast<size_t>(size) < slice.size();
  message.set_compression(pays ? v1::COMPRESSION_LZ4 : v1::COMPRESSION_NONE);
  const absl::string_view payload =
      pays ? absl::string_view(compressed_.data(), static_cast<size_t>(size)) : slice;
  if (payload.size() <= kInlinePayloadBytes) {
    message.set_inline_(payload.data(), payload.size());
  } else {
    const std::string name = BlobName(identity_.batch, index, identity_.owner);
    MUSTER_RETURN_IF_ERROR(blobs_->Put(name, payload));
    message.set_blob(name);
  }
  return message.SerializeAsString();
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
  if (item.has_oversized()) return HeaderOf(&item);
  std::string slice;
  if (item.has_blob()) {
    absl::StatusOr<std::string> payload = blobs->Get(item.blob());
    if (absl::IsNotFound(payload.status())) {
      return Damaged(item, absl::StrCat("its blob ", item.blob(), " is gone"));
    }
    MUSTER_RETURN_IF_ERROR(payload.status());
    MUSTER_ASSIGN_OR_RETURN(slice, Decompress(item, *payload));
  } else {
    MUSTER_ASSIGN_OR_RETURN(slice, Decompress(item, item.inline_()));
  }
  WorkItem decoded = HeaderOf(&item);
  if (base::Fingerprint(slice) != decoded.content) {
    return Damaged(item, "its content does not match its hash");
  }
  decoded.slice = std::move(slice);
  return decoded;
}

}  // namespace muster::item
