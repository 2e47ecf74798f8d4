// SPDX-License-Identifier: Apache-2.0

// ItemsInMessage: which items a message of a job's queues is about. For a reader that looks at
// messages which it neither works on nor counts, of any form.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::item {

struct ItemsInMessage {
  uint64_t batch = 0;
  std::vector<uint32_t> indexes = {};
  // The message is about further items of the batch, or may be: it is in a form that this muster
  // does not know, or a part of it cannot be read.
  bool and_others = false;
};

// Of the message of a work item (proto/muster/v1/work_item.proto). nullopt: it is none.
std::optional<ItemsInMessage> ItemsInWork(absl::string_view body);
// Of the message of one result or many (proto/muster/v1/item_result.proto). nullopt: it is none.
std::optional<ItemsInMessage> ItemsInResult(absl::string_view body);

}  // namespace muster::item
