// SPDX-License-Identifier: Apache-2.0
#include "services/processor/job_key_holds.h"

#include <cstdint>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/item/held_key_admin.h"
#include "muster/item/work_item_codec.h"

namespace muster::processor {
namespace {

std::string NameOf(uint64_t batch, uint64_t item) { return absl::StrCat(batch, "/", item); }

}  // namespace

std::string JobKeyHolds::ItemOf(const queue::Message& message) const {
  const absl::StatusOr<item::WorkItem> item = item::DecodeWorkItemHeader(message.body);
  return item.ok() ? NameOf(item->identity.batch, item->index) : "";
}

absl::StatusOr<std::vector<listener::KeyHolds::Held>> JobKeyHolds::Read(int partition,
                                                                        bool with_dead) {
  const queue::QueueId& queue = partitions_.at(static_cast<size_t>(partition));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<item::HeldKey> read, keys_.Read(queue));
  std::vector<item::HeldKey> held, ended;
  for (const item::HeldKey& key : read) {
    const bool is_over = deps_.cancelled != nullptr && deps_.cancelled->Contains(key.batch);
    (is_over ? ended : held).push_back(key);
  }
  if (!ended.empty()) MUSTER_RETURN_IF_ERROR(keys_.Release(queue, ended).status());
  std::vector<Held> all;
  if (!with_dead) {
    for (const item::HeldKey& key : held) {
      all.push_back({key.key, NameOf(key.batch, key.item), false});
    }
    return all;
  }
  MUSTER_ASSIGN_OR_RETURN(const auto views, item::FindDeadLetters(queue, held, *deps_.queues));
  for (const item::HeldKeyView& view : views) {
    all.push_back(
        {view.held.key, NameOf(view.held.batch, view.held.item), !view.message_id.empty()});
  }
  return all;
}

absl::Status JobKeyHolds::Hold(int partition, const std::string& key,
                               const queue::Message& message) {
  const queue::QueueId& queue = partitions_.at(static_cast<size_t>(partition));
  MUSTER_ASSIGN_OR_RETURN(const item::WorkItem item, item::DecodeWorkItemHeader(message.body));
  item::HeldKey held{key, item.identity.batch, item.index, deps_.clock->Now()};
  held.message = {"", message.position, message.insertion_time};
  MUSTER_RETURN_IF_ERROR(keys_.Hold(queue, held));
  base::Log(base::kWarning, "a key is held behind a dead letter",
            {{"queue", queue.ToString()},
             {"batch", absl::StrCat(item.identity.batch)},
             {"item", absl::StrCat(item.index)}});
  return absl::OkStatus();
}

absl::Status JobKeyHolds::Release(int partition, const std::string& key, const std::string& item) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(item, '/');
  item::HeldKey held{key, 0, 0, {}};
  if (!absl::SimpleAtoi(parts.first, &held.batch) || !absl::SimpleAtoi(parts.second, &held.item)) {
    return absl::InvalidArgumentError(absl::StrCat("'", item, "' is no item"));
  }
  return keys_.Release(partitions_.at(static_cast<size_t>(partition)), {held}).status();
}

}  // namespace muster::processor
