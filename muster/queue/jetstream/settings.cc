#include "muster/queue/jetstream/settings.h"

#include "muster/queue/jetstream/names.h"
#include "nlohmann/json.hpp"

namespace muster::queue::jetstream {
namespace {

using nlohmann::json;

// Deliveries that nobody has acknowledged, over all processes. The server's default, 1,000, would
// hold up a fleet; each costs the server some hundred bytes.
constexpr int64_t kMaxAckPending = 20'000;
// Pulls that wait at the server. Ours never do.
constexpr int64_t kMaxWaiting = 512;
// Notes are small, and worthless once they are old.
// Of a page there is a note by each of those who took a part of it.
constexpr int kMaxRecordsOfPage = 8;
constexpr int64_t kMaxAttemptsBytes = int64_t{64} << 20;
constexpr absl::Duration kMaxAttemptsAge = absl::Hours(24 * 7);

int64_t Nanoseconds(absl::Duration duration) { return absl::ToInt64Nanoseconds(duration); }

}  // namespace

json StreamSettings(const queue::QueueId& queue, const Settings& settings) {
  return {
      {"name", StreamOf(queue)},
      {"subjects", {SubjectOf(queue)}},
      {"storage", "file"},
      {"num_replicas", settings.replicas},
      {"retention", "workqueue"},
      {"discard", "new"},
      {"max_age", 0},
      {"duplicate_window", Nanoseconds(settings.dedup_window)},
  };
}

json ConsumerSettings(absl::Duration lease) {
  return {
      {"durable_name", kConsumer},
      {"ack_policy", "explicit"},
      {"ack_wait", Nanoseconds(lease)},
      {"deliver_policy", "all"},
      {"replay_policy", "instant"},
      {"max_deliver", -1},  // muster counts attempts, and gives up by itself
      {"max_ack_pending", kMaxAckPending},
      {"max_waiting", kMaxWaiting},
  };
}

json AsideStreamSettings(const queue::QueueId& queue, const Settings& settings) {
  return {
      {"name", AsideStreamOf(queue)},
      {"subjects", {MetadataSubjectOf(queue), PoisonSubjectOf(queue, "*")}},
      {"storage", "file"},
      {"num_replicas", settings.replicas},
      {"retention", "limits"},
      {"discard", "new"},
      {"max_age", 0},  // poison waits for people
      {"max_msgs_per_subject", 1},
  };
}

json AttemptsStreamSettings(const Settings& settings) {
  return {
      {"name", kAttemptsStream},
      {"subjects", {"muster.attempts.>"}},
      {"storage", "memory"},
      // Without it no handler starts: it must not be gone with one server of a cluster.
      {"num_replicas", settings.replicas},
      {"retention", "limits"},
      {"discard", "old"},
      {"max_age", Nanoseconds(kMaxAttemptsAge)},
      {"max_bytes", kMaxAttemptsBytes},
      {"max_msgs_per_subject", kMaxRecordsOfPage},
  };
}

}  // namespace muster::queue::jetstream
