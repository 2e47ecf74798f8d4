// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/policy/workload.h"

#include <algorithm>
#include <vector>

namespace muster::scaling::policy {

namespace {

constexpr absl::Duration kSpacing = absl::Milliseconds(500);

}  // namespace

void CompletionEstimate::See(absl::Time now, double items_per_second) {
  Look look{now, 0, items_per_second};
  if (!looks_.empty()) {
    const Look& last = looks_.back();
    look.done = last.done + last.items_per_second * absl::ToDoubleSeconds(now - last.at);
  }
  // Looks in quick succession (a burst of triggers) share one entry; the sum stays exact.
  if (looks_.size() > 1 && now - looks_[looks_.size() - 2].at < kSpacing) looks_.pop_back();
  looks_.push_back(look);
  while (looks_.size() > 1 && looks_[1].at <= now - kEstimateHorizon) looks_.pop_front();
}

double CompletionEstimate::DoneSince(absl::Time since) const {
  if (looks_.empty() || since >= looks_.back().at) return 0;
  const auto after =
      std::upper_bound(looks_.begin(), looks_.end(), since,
                       [](absl::Time time, const Look& look) { return time < look.at; });
  if (after == looks_.begin()) return looks_.back().done - looks_.front().done;
  const Look& before = *std::prev(after);
  const double share = absl::FDivDuration(since - before.at, after->at - before.at);
  const double at_since = before.done + share * (after->done - before.done);
  return looks_.back().done - at_since;
}

namespace {

constexpr absl::Duration kWindow = absl::Minutes(1);
constexpr absl::Duration kApart = absl::Milliseconds(500);  // bounds the looks of a window

// The 99th percentile of far fewer batches would be the largest of them.
constexpr size_t kBatches = 512;
// From a batch's first piece to its last one. Longer, it would take a stream of single items for
// batches.
constexpr absl::Duration kPieces = absl::Seconds(1);

}  // namespace

void RecentArrivals::See(absl::Time now, int64_t ever) {
  is_coming_ = is_coming_ && absl::AbsDuration(now - began_) < kPieces;
  if (looks_.size() > 1 && now - looks_[looks_.size() - 2].at < kApart) looks_.pop_back();
  looks_.push_back({now, ever});
  while (looks_.size() > 2 && looks_[1].at <= now - kWindow) looks_.pop_front();
}

void RecentArrivals::SeeBatch(absl::Time at, int64_t items) {
  if (items <= 0) return;
  if (is_coming_ && absl::AbsDuration(at - began_) < kPieces) {
    batches_.back() = std::min(batches_.back() + std::min(items, kMaxItems), kMaxItems);
    return;
  }
  began_ = at;
  is_coming_ = true;
  batches_.push_back(std::min(items, kMaxItems));
  if (batches_.size() > kBatches) batches_.pop_front();
}

double RecentArrivals::PerSecond() const {
  if (looks_.size() < 2) return 0;
  const double seconds = absl::ToDoubleSeconds(looks_.back().at - looks_.front().at);
  const auto items = static_cast<double>(looks_.back().ever - looks_.front().ever);
  return seconds > 0 ? std::max(0.0, items / seconds) : 0;
}

double RecentArrivals::LargeBatch() const {
  if (batches_.empty()) return 0;
  std::vector<int64_t> sorted(batches_.begin(), batches_.end());
  if (is_coming_ && sorted.size() > 1) sorted.pop_back();
  const auto at = sorted.begin() + static_cast<ptrdiff_t>((sorted.size() - 1) * 99 / 100);
  std::nth_element(sorted.begin(), at, sorted.end());
  return static_cast<double>(*at);
}

namespace {

// After this many items the mean of a random service time is known to about a tenth.
constexpr double kEnoughItems = 100;

// Beyond this many items the older ones count less, because the kind of work may change during a
// day.
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
  // Skip readings with fewer waiting items than were done in between: some replicas may have been
  // idle.
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

namespace {

constexpr int kCountedMisses = 1'000'000'000;

}  // namespace

void Workload::Announce(const Announcement& announcement) {
  tracker_.Announce(announcement);
  arrivals_.SeeBatch(announcement.at, announcement.items);
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
