// SPDX-License-Identifier: Apache-2.0

// The message bodies of work items, and a bound of the results (proto/muster/v1/item_result.proto)
// that their writers and readers share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/fingerprint.h"
#include "muster/base/trace_context.h"
#include "muster/blob/blob_store.h"
#include "muster/ledger/batch_ledger.h"

namespace muster::v1 {
class WorkItem;
}  // namespace muster::v1

namespace muster::item {

// The most results in one message of an output queue.
inline constexpr size_t kMaxTogether = 64;

// How a work item becomes a message body, and back. The form is proto/muster/v1/work_item.proto.
// The slice of the input travels
//
//   inline         inside the message, compressed
//   by reference   not at all: the message says whose it is, and its hash; the worker reads it from
//                  the batch's source (content/item_content.h)
//   as a blob      in the blob store, compressed; the message names the blob

enum class Carriage {
  // Inline, or as a blob if it is too large for a message: workers need no initiator.
  kInline,
  // By reference, unless the slice is so short that fetching it costs more than carrying it.
  kByReference,
};

// A slice up to this size travels inline in any case.
inline constexpr size_t kShortSliceBytes = size_t{4} << 10;

// A compressed slice above this goes to the blob store: it must fit a queue message (1 MiB) with
// room for the rest of the item.
inline constexpr size_t kInlinePayloadBytes = size_t{512} << 10;

// The largest slice that an item may claim; a body that claims more is damaged or hostile.
inline constexpr size_t kMaxRawBytes = size_t{64} << 20;

// The most fields of a record: one of a mebibyte, which is what a job allows unless it says
// otherwise, has room for no more.
inline constexpr uint32_t kMaxCsvFields = 1 << 20;

// What all items of a batch share.
struct BatchIdentity {
  uint64_t batch = 0;
  std::string job;
  std::string job_revision;
  std::string handler_version;  // empty: any may work on it
  std::optional<absl::Time> deadline;
  // CSV: position of each of the job's columns from 0, and how many names the header has (0: none).
  std::vector<int> positions;
  int header_fields = 0;
  // None: an older muster took it in.
  std::optional<base::TraceContext> trace = std::nullopt;
  // As ledger::Batch has it; in the names of the items' blobs, and in the messages of items whose
  // slice travels by reference.
  std::string owner = "";
};

// What the records of an item have in common whose job has order_by, and where they stand.
struct OrderedRecords {
  std::optional<std::string> key;  // as OrderKeyOf; nullopt: the records cannot be read
  std::vector<int64_t> lines;      // the physical line of each

  friend bool operator==(const OrderedRecords&, const OrderedRecords&) = default;
};

// A key up to this size travels as it is: messages of one key repeat it.
inline constexpr size_t kMaxOrderKeyBytes = 256;
// `field`, or for a longer one its beginning and its hash: equal fields give equal keys.
std::string OrderKeyOf(absl::string_view field);
// The partition, of `partitions`, for the items of a key. Must never change: it would break the
// order of what waits.
int PartitionOf(absl::string_view key, int partitions);

// A decoded item.
struct WorkItem {
  BatchIdentity identity;
  uint32_t index = 0;
  int64_t first_line = 1;
  uint32_t transactions = 0;
  base::Fingerprint128 content;
  std::string slice;          // uncompressed; empty when oversized_bytes is set, or by_reference
  bool by_reference = false;  // the slice has to be read from the batch's source
  std::optional<OrderedRecords> ordered;  // of a job with order_by, unless it is oversized
  uint64_t slice_bytes = 0;               // uncompressed
  // The item is one record of so many bytes, which is over `limit_bytes`: reject it.
  std::optional<uint64_t> oversized_bytes;
  uint64_t limit_bytes = 0;
};

// The name of the blob that holds the slice of an item. With the batch's owner, for two initiators
// may have drawn one number; that of a batch without an owner is as an older muster made it.
std::string BlobName(uint64_t batch, uint32_t index, absl::string_view owner = "");

// The item, or the result of an item, whose blob it is.
struct BlobOwner {
  uint64_t batch = 0;
  std::string owner;  // of the batch; empty: the name does not tell
  uint32_t item = 0;
  bool is_result = false;

  friend bool operator==(const BlobOwner&, const BlobOwner&) = default;
};

// nullopt: the name is not one that BlobName, or a processor's result, has made.
std::optional<BlobOwner> OwnerOfBlob(absl::string_view name);

// Compresses `raw` into `*compressed`. False: that would not make it shorter.
bool Compress(absl::string_view raw, std::string* compressed);
// The reverse, into `*raw`, whose size says how much that is. False: `compressed` is damaged.
bool Decompress(absl::string_view compressed, std::string* raw);

// Not thread-safe: keeps scratch space.
class WorkItemEncoder {
 public:
  // `blobs` is not owned and outlives the encoder. `record_limit_bytes` goes into oversized items
  // as their limit.
  WorkItemEncoder(BatchIdentity identity, uint64_t record_limit_bytes, blob::BlobStore* blobs,
                  Carriage carriage = Carriage::kInline);

  // Whether Encode needs the bytes of this item.
  bool NeedsSlice(const ledger::ItemBoundary& item) const;

  // The body of item `index`. `slice` are the bytes that `item` bounds; ignored unless NeedsSlice.
  // Equal items give equal bodies. Errors are the blob store's.
  absl::StatusOr<std::string> Encode(uint32_t index, const ledger::ItemBoundary& item,
                                     absl::string_view slice);
  // The same for an item of a job with order_by, which travels with its bytes in any case.
  absl::StatusOr<std::string> EncodeOrdered(uint32_t index, const ledger::ItemBoundary& item,
                                            absl::string_view slice, const OrderedRecords& records);

 private:
  // Compresses `slice`, and passes it to the message itself or the blob store.
  template <typename SetInline, typename SetBlob>
  absl::Status Carry(uint32_t index, absl::string_view slice, v1::WorkItem* message,
                     SetInline set_inline, SetBlob set_blob);
  v1::WorkItem Header(uint32_t index, const ledger::ItemBoundary& item) const;

  const BatchIdentity identity_;
  const uint64_t record_limit_bytes_;
  blob::BlobStore* const blobs_;  // not owned
  const Carriage carriage_;
  std::string compressed_;
};

// DataLoss when the body cannot be parsed, its positions are not those of any record, its blob is
// gone or not its own, or its content is not what its hash says. Unimplemented: it is sound, as far
// as its header goes, and a newer muster carries its slice in a way that this one does not know.
// Unavailable and the like from the blob store. An item by_reference comes without its slice.
absl::StatusOr<WorkItem> DecodeWorkItem(absl::string_view body, blob::BlobStore* blobs);

// The key of an item of a job with order_by; nullopt: the message is none, or has no key.
std::optional<std::string> OrderKeyIn(absl::string_view body);

// Identity and counts only: enough to report an item that cannot be worked on. DataLoss as above.
absl::StatusOr<WorkItem> DecodeWorkItemHeader(absl::string_view body);

}  // namespace muster::item
