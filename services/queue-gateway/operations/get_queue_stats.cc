// SPDX-License-Identifier: Apache-2.0
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "services/queue-gateway/operations/json_reply.h"
#include "services/queue-gateway/operations/operations.h"
#include "services/queue-gateway/operations/queue_settings.h"

namespace muster::queue_gateway::operations {

Outcome GetQueueStats(const Call& call, const Stores& stores) {
  const auto stats = stores.queues->Stats(call.queue());
  if (!stats.ok()) return protocol::FromStore(stats.status());
  const auto settings = SettingsOf(call.queue(), stores);
  if (!settings.ok()) return protocol::FromStore(settings.status());
  nlohmann::ordered_json document = {
      {"queue", call.resource.queue},
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

}  // namespace muster::queue_gateway::operations
