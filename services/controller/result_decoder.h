// From a message of an output queue to the items that it counts
// (proto/muster/v1/item_result.proto).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/base/trace_context.h"
#include "muster/blob/blob_store.h"
#include "muster/report/counted_item.h"

namespace muster::controller {

struct DecodedResult {
  report::CountedItem item;
  std::string blob;  // claim-checked under this name; empty: it was all in the message
  // Of its batch; none: an older muster sent it.
  std::optional<base::TraceContext> trace = std::nullopt;
};

// All results of a message are of one batch. What cannot be counted does not keep others from it:
// it has an error of its own. DataLoss: it is no result, or one that nobody could count: an
// unreadable number, a malformed hash, more rejections than transactions, a blob that is gone.
// Unimplemented: a newer muster says what became of the item in a way that this one does not know.
using DecodedResults = std::vector<absl::StatusOr<DecodedResult>>;

// At least one. Errors are the blob store's.
absl::StatusOr<DecodedResults> DecodeResults(absl::string_view body, blob::BlobStore* blobs);

// The first error of a message's results, or of decoding them.
absl::Status FirstError(const absl::StatusOr<DecodedResults>& results);

}  // namespace muster::controller
