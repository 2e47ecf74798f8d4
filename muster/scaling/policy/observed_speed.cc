#include "muster/scaling/policy/observed_speed.h"

#include <algorithm>

namespace muster::scaling::policy {
namespace {

// A random service time's mean is known to about a tenth after this many.
constexpr double kEnoughItems = 100;

// Of more than this, the older ones count less: the work of the evening may be another.
constexpr double kRememberedItems = 2000;

}  // namespace

void ObservedSpeed::See(absl::Time now, const Fleet& fleet,
                        absl::Span<const QueueReading> readings) {
  if (fleet.tasks != tasks_) {
    items_ = replica_seconds_ = 0;
    last_.reset();
  }
  tasks_ = fleet.tasks;
  replicas_.See(now, fleet.ready);
  if (readings.empty()) return;
  Reading reading{now};
  for (const QueueReading& queue : readings) {
    reading.at = std::min(reading.at, queue.at);
    reading.waiting += std::clamp<int64_t>(queue.ready, 0, int64_t{1} << 40);
    reading.out += std::clamp<int64_t>(queue.total_out, 0, int64_t{1} << 50);
  }
  if (last_.has_value() && reading.at <= last_->at) return;
  if (last_.has_value()) Learn(*last_, reading);
  last_ = reading;
}

void ObservedSpeed::Learn(const Reading& from, const Reading& to) {
  const auto done = static_cast<double>(to.out - from.out);
  // Where less waits than was just done, some may have found nothing to do.
  if (done <= 0 || static_cast<double>(std::min(from.waiting, to.waiting)) < done) return;
  const double there = replicas_.DoneSince(from.at) - replicas_.DoneSince(to.at);
  if (there <= 0) return;
  items_ += done;
  replica_seconds_ += there;
  if (items_ <= kRememberedItems) return;
  replica_seconds_ *= kRememberedItems / items_;
  items_ = kRememberedItems;
}

double ObservedSpeed::ItemsPerSecond() const {
  return items_ < kEnoughItems ? 0 : items_ / replica_seconds_;
}

void ObservedSpeed::StepBack() {
  replicas_.Reset();
  last_.reset();
}

}  // namespace muster::scaling::policy
