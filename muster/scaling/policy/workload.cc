#include "muster/scaling/policy/workload.h"

#include <algorithm>

namespace muster::scaling::policy {
namespace {

constexpr int kCountedMisses = 1'000'000'000;

}  // namespace

void Workload::Announce(const Announcement& announcement) {
  tracker_.Announce(announcement);
  arrivals_.SeeBatch(announcement.items);
}

void Workload::See(const Observation& observation, double items_per_second) {
  const auto fresh = [&](const QueueReading& reading) {
    return observation.now - reading.at <= stale_after_;
  };
  const bool read = !observation.queues.empty() &&
                    std::all_of(observation.queues.begin(), observation.queues.end(), fresh);
  misses_ = read ? 0 : std::min(misses_ + 1, kCountedMisses);
  if (read) tracker_.Reconcile(observation.queues, observation.now);
  speed_.See(observation.now, observation.fleet,
             read ? absl::MakeConstSpan(observation.queues) : absl::Span<const QueueReading>());
  arrivals_.See(observation.now, tracker_.ever());
  completed_.See(observation.now, items_per_second);
  done_ = completed_.DoneSince(tracker_.read_at());
}

void Workload::StepBack(absl::Time now) {
  tracker_.StepBack(now);
  completed_.Reset();
  arrivals_.Reset();
  speed_.StepBack();
}

}  // namespace muster::scaling::policy
