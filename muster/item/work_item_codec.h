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

// How a work item becomes a message body, and back. The form is proto/muster/v1/work_item.proto;
// the slice of the input travels inside it, compressed, or as a claim check.

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
  // As ledger::Batch has it; in no message, but in the names of the items' blobs.
  std::string owner = "";
};

// A decoded item.
struct WorkItem {
  BatchIdentity identity;
  uint32_t index = 0;
  int64_t first_line = 1;
  uint32_t transactions = 0;
  base::Fingerprint128 content;
  std::string slice;  // uncompressed; empty when oversized_bytes is set
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

// Not thread-safe: keeps scratch space.
class WorkItemEncoder {
 public:
  // `blobs` is not owned and outlives the encoder. `record_limit_bytes` goes into oversized items
  // as their limit.
  WorkItemEncoder(BatchIdentity identity, uint64_t record_limit_bytes, blob::BlobStore* blobs);

  // The body of item `index`. `slice` are the bytes that `item` bounds (empty when oversized).
  // Equal items give equal bodies. Errors are the blob store's.
  absl::StatusOr<std::string> Encode(uint32_t index, const ledger::ItemBoundary& item,
                                     absl::string_view slice);

 private:
  v1::WorkItem Header(uint32_t index, const ledger::ItemBoundary& item) const;

  const BatchIdentity identity_;
  const uint64_t record_limit_bytes_;
  blob::BlobStore* const blobs_;  // not owned
  std::string compressed_;
};

// DataLoss when the body cannot be parsed, its positions are not those of any record, its blob is
// gone, or its content is not what its hash says. Unimplemented: it is sound, as far as its header
// goes, and a newer muster carries its slice in a way that this one does not know. Unavailable and
// the like from the blob store.
absl::StatusOr<WorkItem> DecodeWorkItem(absl::string_view body, blob::BlobStore* blobs);

// Identity and counts only: enough to report an item that cannot be worked on. DataLoss as above.
absl::StatusOr<WorkItem> DecodeWorkItemHeader(absl::string_view body);

}  // namespace muster::item
