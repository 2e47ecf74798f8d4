// How the streams and consumers of queues are set, in the words of the server's API.
#pragma once

#include "absl/time/time.h"
#include "muster/queue/limits.h"
#include "muster/queue/queue_store.h"
#include "nlohmann/json_fwd.hpp"

namespace muster::queue::jetstream {

struct Settings {
  int replicas = 1;  // 1, 3 or 5
  // How long a lease lasts: a consumer has one for all its messages. Of queues whose metadata says
  // nothing (queue/lease_metadata.h).
  absl::Duration lease = absl::Seconds(30);
  absl::Duration dedup_window = queue::kDedupWindow;
};

nlohmann::json StreamSettings(const queue::QueueId& queue, const Settings& settings);
nlohmann::json ConsumerSettings(absl::Duration lease);
nlohmann::json AsideStreamSettings(const queue::QueueId& queue, const Settings& settings);
nlohmann::json AttemptsStreamSettings(const Settings& settings);

}  // namespace muster::queue::jetstream
