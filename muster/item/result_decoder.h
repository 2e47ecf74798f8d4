// SPDX-License-Identifier: Apache-2.0

// DecodeResults: decodes a message of an output queue into the items that it counts
// (proto/muster/v1/item_result.proto).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/trace_context.h"
#include "muster/blob/blob_store.h"
#include "muster/report/counted_item.h"

namespace muster::item {

struct DecodedResult {
  report::CountedItem item;
  std::string
      blob;  // the name of its claim-checked blob; empty: the message holds the whole result
  // The trace of its batch; none: an older muster sent the result.
  std::optional<base::TraceContext> trace = std::nullopt;
  // When the item was put into its queue; the infinite past: an older muster sent the result.
  absl::Time put = absl::InfinitePast();
};

// All results of a message belong to one batch. A result that cannot be counted has an error of its
// own and does not affect the others. DataLoss: the bytes are no result, or no controller could
// count it: an unreadable number, a malformed hash, more rejections than transactions, a blob that
// is gone, or that is not the result's own. Unimplemented: a newer muster reports the item's
// outcome in a form that this one does not know.
using DecodedResults = std::vector<absl::StatusOr<DecodedResult>>;

// At least one. Errors are the blob store's.
absl::StatusOr<DecodedResults> DecodeResults(absl::string_view body, blob::BlobStore* blobs);

// The first error of a message's results, or of decoding them.
absl::Status FirstError(const absl::StatusOr<DecodedResults>& results);

}  // namespace muster::item
