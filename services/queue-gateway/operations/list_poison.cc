// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "services/queue-gateway/operations/json_reply.h"
#include "services/queue-gateway/operations/limits.h"
#include "services/queue-gateway/operations/message_text.h"
#include "services/queue-gateway/operations/operations.h"
#include "services/queue-gateway/protocol/parameters.h"

namespace muster::queue_gateway::operations {

namespace {

using nlohmann::ordered_json;

std::string Rfc3339(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

ordered_json Shown(const queue::PoisonMessage& message) {
  ordered_json shown = {{"message_id", message.message_id}};
  if (!message.origin.name.empty()) {
    shown["from_queue"] = message.origin.name;
    shown["from_message_id"] = message.origin_id;
  }
  shown["inserted"] = Rfc3339(message.insertion_time);
  shown["given_up"] = Rfc3339(message.cause.time);
  shown["dequeue_count"] = message.cause.attempts;
  shown["cause"] = message.cause.reason;
  shown["last_holder"] = message.cause.holder;
  shown["message_text"] = ShownText(message.body, /*is_2008=*/false);
  return shown;
}

}  // namespace

Outcome ListPoison(const Call& call, const Stores& stores) {
  protocol::Parameters parameters(call.target);
  const auto count =
      static_cast<int>(parameters.Integer(kCount, 1, kMaxMessages).value_or(int64_t{kMaxMessages}));
  if (parameters.error().has_value()) return *parameters.error();
  const std::string marker = parameters.Text("marker");
  const auto page = stores.queues->ListPoison(call.queue(), marker, count);
  if (absl::IsInvalidArgument(page.status())) return protocol::ErrorCode::kInvalidMarker;
  if (!page.ok()) return protocol::FromStore(page.status());
  ordered_json messages = ordered_json::array();
  for (const queue::PoisonMessage& message : *page) messages.push_back(Shown(message));
  const std::string next = page->empty() ? "" : page->back().message_id;
  return Json(
      {{"queue", call.resource.queue}, {"messages", std::move(messages)}, {"next_marker", next}});
}

}  // namespace muster::queue_gateway::operations
