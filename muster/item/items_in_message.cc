// SPDX-License-Identifier: Apache-2.0
#include "muster/item/items_in_message.h"

#include <limits>
#include <string>

#include "google/protobuf/arena.h"
#include "muster/v1/item_result.pb.h"
#include "muster/v1/work_item.pb.h"

namespace muster::item {
namespace {

template <typename Form>
bool HasUnknownFields(const Form& message) {
  return !message.GetReflection()->GetUnknownFields(message).empty();
}

// nullptr: these bytes are no such message of a batch.
template <typename Form>
const Form* Parse(absl::string_view body, google::protobuf::Arena* arena) {
  auto* const message = google::protobuf::Arena::CreateMessage<Form>(arena);
  const bool fits = body.size() <= std::numeric_limits<int>::max();
  const bool parsed = fits && message->ParseFromArray(body.data(), static_cast<int>(body.size()));
  return parsed && message->batch() != 0 ? message : nullptr;
}

// Adds the item of a message with one result.
void AddResult(const v1::ItemResult& result, ItemsInMessage* items) {
  items->indexes.push_back(result.index());
  items->and_others |=
      result.outcome_case() == v1::ItemResult::OUTCOME_NOT_SET && HasUnknownFields(result);
}

}  // namespace

std::optional<ItemsInMessage> ItemsInWork(absl::string_view body) {
  google::protobuf::Arena arena;
  const auto* const item = Parse<v1::WorkItem>(body, &arena);
  if (item == nullptr) return std::nullopt;
  return ItemsInMessage{.batch = item->batch(),
                        .indexes = {item->index()},
                        .and_others = item->payload_case() == v1::WorkItem::PAYLOAD_NOT_SET &&
                                      HasUnknownFields(*item)};
}

std::optional<ItemsInMessage> ItemsInResult(absl::string_view body) {
  google::protobuf::Arena arena;
  const auto* const whole = Parse<v1::ItemResult>(body, &arena);
  if (whole == nullptr) return std::nullopt;
  ItemsInMessage items{.batch = whole->batch()};
  if (whole->together().empty()) AddResult(*whole, &items);
  for (const std::string& bytes : whole->together()) {
    const auto* const part = Parse<v1::ItemResult>(bytes, &arena);
    if (part != nullptr && part->batch() == whole->batch() && part->together().empty()) {
      AddResult(*part, &items);
    } else {
      items.and_others = true;
    }
  }
  return items;
}

}  // namespace muster::item
