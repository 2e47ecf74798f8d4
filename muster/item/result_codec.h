// SPDX-License-Identifier: Apache-2.0

// The result of a work item as a message body (proto/muster/v1/item_result.proto): processors
// encode it, controllers decode it into the items that it counts.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/output_record.h"
#include "muster/base/trace_context.h"
#include "muster/blob/blob_store.h"
#include "muster/handler/results.h"
#include "muster/item/work_item_codec.h"
#include "muster/queue/queue_store.h"
#include "muster/report/counted_item.h"

namespace muster::item {

// The worker and handler version that computed a result, the attempt, and the item's beginning.
struct Provenance {
  std::string handler_version;
  std::string worker;
  int attempt = 1;
  absl::Time put = absl::InfinitePast();  // when the item was put into its queue; else: not known
};

// Rows, rejections and output records that are larger than this go to the blob store: the message
// must stay below 1 MiB.
inline constexpr size_t kInlineResultBytes = size_t{512} << 10;

// What a handler made of an item.
struct ItemContribution {
  std::vector<handler::GroupPartial> groups;   // rows sorted
  std::vector<handler::Rejection> rejections;  // by line
  // By line; nullopt: its job has no outputs.
  std::optional<std::vector<base::OutputRecord>> outputs = std::nullopt;
};

// Encodes the result of a processed item. Errors are the blob store's.
absl::StatusOr<std::string> EncodeAggregated(const WorkItem& item, const Provenance& provenance,
                                             const ItemContribution& contribution,
                                             blob::BlobStore* blobs);

// Encodes the result of an item that was given up.
std::string EncodeDeadLettered(const WorkItem& item, const Provenance& provenance,
                               absl::string_view cause);

// Results above kSmallResultBytes travel alone; smaller ones share messages of up to
// kTogetherBytes.
inline constexpr size_t kSmallResultBytes = size_t{32} << 10;
inline constexpr size_t kTogetherBytes = size_t{256} << 10;

// Packs small results of one batch into shared messages. Other messages stay as they are.
std::vector<queue::NewMessage> PackResults(std::vector<queue::NewMessage> messages);

struct DecodedResult {
  report::CountedItem item;
  // The name of its claim-checked blob; empty: the message holds the whole result.
  std::string blob;
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
