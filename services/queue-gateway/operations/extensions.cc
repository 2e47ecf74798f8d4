// SPDX-License-Identifier: Apache-2.0

// What Azure's API does not have: the counts of a queue, its poison with the causes, and its
// redrive. All answer JSON.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "services/queue-gateway/operations/limits.h"
#include "services/queue-gateway/operations/message_text.h"
#include "services/queue-gateway/operations/operations.h"
#include "services/queue-gateway/operations/queue_settings.h"
#include "services/queue-gateway/protocol/parameters.h"

namespace muster::queue_gateway::operations {
namespace {

using nlohmann::ordered_json;

constexpr char kMarker[] = "marker";
constexpr int64_t kMaxRedrive = 1000;  // in one call

http::Reply Json(const ordered_json& document) {
  // A text of the dialect of 2008 may be any bytes; ShownText has made base64 of it.
  return {200,
          {{"Content-Type", "application/json"}, {"Cache-Control", "no-cache"}},
          document.dump(-1, ' ', false, ordered_json::error_handler_t::replace)};
}

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

Outcome GetQueueStats(const Call& call, const Stores& stores) {
  const auto stats = stores.queues->Stats(call.queue());
  if (!stats.ok()) return protocol::FromStore(stats.status());
  const auto settings = SettingsOf(call.queue(), stores);
  if (!settings.ok()) return protocol::FromStore(settings.status());
  ordered_json document = {{"queue", call.resource.queue},
                           {"ready", stats->ready},
                           {"in_flight", stats->in_flight},
                           {"delayed", stats->delayed},
                           {"poison", stats->poison},
                           {"oldest_age_seconds", absl::ToDoubleSeconds(stats->oldest_age)},
                           {"total_in", stats->total_in},
                           {"total_out", stats->total_out},
                           {"total_expired", stats->total_expired},
                           {"stale_receipts", stats->stale_receipts}};
  if (settings->max_dequeues > 0) {
    // The poison queue is made with its first message.
    const auto poison = stores.queues->Stats({call.resource.account, settings->poison_queue});
    if (!poison.ok() && !absl::IsNotFound(poison.status())) {
      return protocol::FromStore(poison.status());
    }
    document["poison_queue"] = {{"name", settings->poison_queue},
                                {"messages", poison.ok() ? poison->stored() : 0}};
  }
  return Json(document);
}

Outcome ListPoison(const Call& call, const Stores& stores) {
  protocol::Parameters parameters(call.target);
  const auto count =
      static_cast<int>(parameters.Integer(kCount, 1, kMaxMessages).value_or(int64_t{kMaxMessages}));
  if (parameters.error().has_value()) return *parameters.error();
  const std::string marker = parameters.Text(kMarker);
  const auto page = stores.queues->ListPoison(call.queue(), marker, count);
  if (absl::IsInvalidArgument(page.status())) return protocol::ErrorCode::kInvalidMarker;
  if (!page.ok()) return protocol::FromStore(page.status());
  ordered_json messages = ordered_json::array();
  for (const queue::PoisonMessage& message : *page) messages.push_back(Shown(message));
  const std::string next = page->empty() ? "" : page->back().message_id;
  return Json(
      {{"queue", call.resource.queue}, {"messages", std::move(messages)}, {"next_marker", next}});
}

Outcome RedrivePoison(const Call& call, const Stores& stores) {
  protocol::Parameters parameters(call.target);
  const int64_t count = parameters.RequiredInteger(kCount, 1, kMaxRedrive);
  if (parameters.error().has_value()) return *parameters.error();
  const auto redriven = stores.queues->Redrive(call.queue(), {}, count);
  if (absl::IsFailedPrecondition(redriven.status())) return protocol::ErrorCode::kQueueNotFound;
  if (!redriven.ok()) return protocol::FromStore(redriven.status());
  return Json({{"queue", call.resource.queue}, {"redriven", *redriven}});
}

}  // namespace muster::queue_gateway::operations
