// SPDX-License-Identifier: Apache-2.0

// Encodes the result of a work item as a message body (proto/muster/v1/item_result.proto).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/output_record.h"
#include "muster/blob/blob_store.h"
#include "muster/handler/results.h"
#include "muster/item/work_item_codec.h"
#include "muster/queue/queue_store.h"

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

}  // namespace muster::item
