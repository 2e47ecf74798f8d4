// SPDX-License-Identifier: Apache-2.0

// The message of a work item. The first byte says whether to fit the hash to the content, which a
// mutation would never do; the rest is the message, and also the slice of an item to encode.
#include <google/protobuf/stubs/logging.h>

#include <string>

#include "muster/base/fingerprint.h"
#include "muster/item/work_item_codec.h"
#include "muster/v1/work_item.pb.h"
#include "tests/fuzz/one_blob.h"
#include "tests/fuzz/property.h"

namespace muster::fuzz {
namespace {

using item::WorkItem;

constexpr uint64_t kMaxRoom = 1 << 16;  // to decompress: more would cost time and find nothing

std::string Encode(const WorkItem& item, blob::BlobStore* blobs) {
  ledger::ItemBoundary boundary;
  boundary.length = item.oversized_bytes.value_or(item.slice.size());
  boundary.first_line = item.first_line;
  boundary.transactions = item.transactions;
  boundary.content = item.content;
  boundary.oversized = item.oversized_bytes.has_value();
  return *item::WorkItemEncoder(item.identity, item.limit_bytes, blobs)
              .Encode(item.index, boundary, item.slice);
}

void CheckSame(const WorkItem& a, const WorkItem& b) {
  Must(a.identity.batch == b.identity.batch && a.index == b.index, "the item is the same");
  Must(a.identity.job == b.identity.job && a.identity.positions == b.identity.positions &&
           a.identity.job_revision == b.identity.job_revision &&
           a.identity.handler_version == b.identity.handler_version,
       "the identity is the same");
  Must(a.first_line == b.first_line && a.transactions == b.transactions && a.content == b.content,
       "the boundary is the same");
  Must(a.oversized_bytes == b.oversized_bytes && a.limit_bytes == b.limit_bytes,
       "what is oversized is the same");
}

void CheckMessage(absl::string_view body, blob::BlobStore* blobs) {
  const absl::StatusOr<WorkItem> header = item::DecodeWorkItemHeader(body);
  const absl::StatusOr<WorkItem> item = item::DecodeWorkItem(body, blobs);
  Must(header.ok() || absl::IsDataLoss(header.status()), "a damaged header is DataLoss");
  const bool is_newer = absl::IsUnimplemented(item.status());
  Must(item.ok() || is_newer || absl::IsDataLoss(item.status()), "a damaged item is DataLoss");
  Must(!is_newer || header.ok(), "an item of a newer muster has a header that can be read");
  if (!item.ok()) return;
  Must(header.ok(), "an item that can be read has a header that can");
  CheckSame(*item, *header);
  const std::string again = Encode(*item, blobs);
  const absl::StatusOr<WorkItem> twice = item::DecodeWorkItem(again, blobs);
  Must(twice.ok() && twice->slice == item->slice, "an item that is written is read as it was");
  CheckSame(*item, *twice);
  Must(Encode(*twice, blobs) == again, "equal items are equal bodies");
}

// Sets the hash to that of the uncompressed content.
std::string Fit(v1::WorkItem message) {
  message.set_content_hash(base::Fingerprint(message.inline_()).ToBytes());
  message.set_compression(v1::COMPRESSION_NONE);
  return message.SerializeAsString();
}

void CheckSlice(absl::string_view slice, blob::BlobStore* blobs) {
  WorkItem item;
  item.identity.batch = 1 + slice.size();
  item.identity.job = "bills";
  item.identity.positions = {0, 2};
  item.identity.header_fields = 3;
  item.transactions = 1;
  item.content = base::Fingerprint(slice);
  item.slice = std::string(slice);
  const absl::StatusOr<WorkItem> decoded = item::DecodeWorkItem(Encode(item, blobs), blobs);
  Must(decoded.ok() && decoded->slice == slice, "a slice comes out as it went in");
  CheckSame(item, *decoded);
}

}  // namespace
}  // namespace muster::fuzz

// protobuf reports each text that is no UTF-8 on stderr, which takes more time than to read it.
extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  google::protobuf::SetLogHandler(nullptr);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::fuzz;
  if (size == 0) return 0;
  const absl::string_view text = Text(data + 1, size - 1);
  OneBlob blobs;
  (void)blobs.Put("b", text.substr(0, 32));
  CheckSlice(text, &blobs);
  muster::v1::WorkItem message;
  const bool parsed = message.ParseFromArray(text.data(), static_cast<int>(text.size()));
  if (parsed && message.raw_bytes() > kMaxRoom) return 0;
  CheckMessage(parsed && data[0] % 2 == 1 ? Fit(message) : std::string(text), &blobs);
  return 0;
}
