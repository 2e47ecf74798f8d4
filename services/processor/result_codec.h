// Encodes the result of a work item as a message body (proto/muster/v1/item_result.proto).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/blob/blob_store.h"
#include "muster/handler/results.h"
#include "muster/item/work_item_codec.h"
#include "muster/queue/queue_store.h"

namespace muster::processor {

// The worker and handler version that computed a result, and the attempt.
struct Provenance {
  std::string handler_version;
  std::string worker;
  int attempt = 1;
};

// Rows and rejections that are larger than this go to the blob store: the message must stay below 1
// MiB.
inline constexpr size_t kInlineResultBytes = size_t{512} << 10;

// Encodes the result of a processed item: its rows, sorted, and its rejections, ordered by line.
// Errors are the blob store's.
absl::StatusOr<std::string> EncodeAggregated(const item::WorkItem& item,
                                             const Provenance& provenance,
                                             const std::vector<handler::GroupPartial>& groups,
                                             const std::vector<handler::Rejection>& rejections,
                                             blob::BlobStore* blobs);

// Encodes the result of an item that was given up.
std::string EncodeDeadLettered(const item::WorkItem& item, const Provenance& provenance,
                               absl::string_view cause);

// Results above kSmallResultBytes travel alone; smaller ones share messages of up to
// kTogetherBytes.
inline constexpr size_t kSmallResultBytes = size_t{32} << 10;
inline constexpr size_t kTogetherBytes = size_t{256} << 10;

// Packs small results of one batch into shared messages. Other messages stay as they are.
std::vector<queue::NewMessage> PackResults(std::vector<queue::NewMessage> messages);

}  // namespace muster::processor
