// From a message of an output queue to the item that it counts (proto/muster/v1/item_result.proto).
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/blob/blob_store.h"
#include "muster/report/counted_item.h"

namespace muster::controller {

struct DecodedResult {
  report::CountedItem item;
  std::string blob;  // claim-checked under this name; empty: it was all in the message
};

// DataLoss when the body is no result, or one that nobody could count: an unreadable number, a
// malformed hash, more rejections than transactions, a blob that is gone. Unimplemented: a newer
// muster says what became of the item in a way that this one does not know. Other errors are the
// blob store's.
absl::StatusOr<DecodedResult> DecodeResult(absl::string_view body, blob::BlobStore* blobs);

}  // namespace muster::controller
