// From a message of an output queue to the item that it counts (proto/muster/v1/item_result.proto).
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/report/counted_item.h"

namespace muster::controller {

// DataLoss when the body is no result, or one that nobody could count: an unreadable number, a
// malformed hash, more rejections than transactions.
absl::StatusOr<report::CountedItem> DecodeResult(absl::string_view body);

}  // namespace muster::controller
