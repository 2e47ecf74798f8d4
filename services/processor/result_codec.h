// How the result of a work item becomes a message body (proto/muster/v1/item_result.proto).
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "muster/handler/results.h"
#include "muster/wire/work_item_codec.h"

namespace muster::processor {

// Who computed a result, and in which attempt.
struct Provenance {
  std::string handler_version;
  std::string worker;
  int attempt = 1;
};

// The item was processed: its rows, sorted, and its rejections, by line.
std::string EncodeAggregated(const wire::WorkItem& item, const Provenance& provenance,
                             const std::vector<handler::GroupPartial>& groups,
                             const std::vector<handler::Rejection>& rejections);

// The item was given up.
std::string EncodeDeadLettered(const wire::WorkItem& item, const Provenance& provenance,
                               absl::string_view cause);

}  // namespace muster::processor
