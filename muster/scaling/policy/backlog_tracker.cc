// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/policy/backlog_tracker.h"

#include <algorithm>

#include "muster/base/check.h"
#include "muster/scaling/policy/policy.h"
namespace muster::scaling::policy {
namespace {

int64_t Sane(int64_t items) { return std::clamp<int64_t>(items, 0, kMaxItems); }

absl::Duration SaneAge(absl::Duration age) {
  return std::clamp(age, absl::ZeroDuration(), kOldestWork);
}

}  // namespace

// The sums over all queues of the target.
struct BacklogTracker::Totals {
  int64_t waiting = 0;  // ready and in flight
  int64_t out = 0;
  absl::Duration oldest_age = absl::ZeroDuration();
};

void BacklogTracker::Announce(const Announcement& announcement) {
  if (announcement.items <= 0 || announcement.at <= read_at_) return;
  if (announcement.at == absl::InfiniteFuture() || IsKnown(announcement.id)) return;
  Add(announcement.at, Sane(announcement.items));
}

bool BacklogTracker::IsKnown(uint64_t id) {
  if (id == 0) return false;
  if (std::find(known_ids_.begin(), known_ids_.end(), id) != known_ids_.end()) return true;
  known_ids_.push_back(id);
  if (known_ids_.size() > kRememberedAnnouncements) known_ids_.pop_front();
  return false;
}

void BacklogTracker::Reconcile(absl::Span<const QueueReading> readings, absl::Time now) {
  StepBack(now);
  if (readings.empty()) return;
  absl::Time at = now;
  Totals totals;
  for (const QueueReading& reading : readings) {
    at = std::min(at, reading.at);
    totals.waiting = Sane(totals.waiting + Sane(reading.ready) + Sane(reading.in_flight));
    totals.out = Sane(totals.out + Sane(reading.total_out));
    totals.oldest_age = std::max(totals.oldest_age, SaneAge(reading.oldest_age));
  }
  if (at > read_at_) Agree(totals, at);
}

void BacklogTracker::Agree(const Totals& totals, absl::Time at) {
  const int64_t done = totals.out - read_out_;
  if (read_at_ != absl::InfinitePast() && done > 0) {
    TakeOldest(std::min(done, PutBy(at)));  // work cannot be done before it is put
  }
  const int64_t known = PutBy(at);
  if (known < totals.waiting) {
    // The last readings are accounted for, so the new work arrived after them.
    Add(std::max(at - totals.oldest_age, std::min(read_at_, at)), totals.waiting - known);
  } else if (known > totals.waiting) {
    // With totals, finished work was taken out above, so the excess was announced twice. Without
    // totals, the excess is the finished work.
    const int64_t excess = known - totals.waiting;
    if (totals.out > 0) {
      ever_ -= TakeNewest(excess, at);
    } else {
      TakeOldest(excess);
    }
  }
  read_at_ = at;
  read_out_ = totals.out;
}

int64_t BacklogTracker::PutBy(absl::Time at) const {
  int64_t items = items_;
  for (auto cohort = cohorts_.rbegin(); cohort != cohorts_.rend() && cohort->arrived > at;
       ++cohort) {
    items -= cohort->items;
  }
  return items;
}

void BacklogTracker::StepBack(absl::Time now) {
  for (auto cohort = cohorts_.rbegin(); cohort != cohorts_.rend() && cohort->arrived > now;
       ++cohort) {
    cohort->arrived = now;
  }
  read_at_ = std::min(read_at_, now);
}

void BacklogTracker::Add(absl::Time arrived, int64_t items) {
  items = std::min(items, kMaxItems - items_);
  if (items <= 0) return;
  items_ += items;
  ever_ += items;
  auto after = cohorts_.end();
  while (after != cohorts_.begin() && std::prev(after)->arrived > arrived) --after;
  const bool joins = after != cohorts_.begin() &&
                     arrived - std::prev(after)->arrived <= resolution_ &&
                     (std::prev(after)->arrived > read_at_) == (arrived > read_at_);
  if (joins) {
    std::prev(after)->items += items;
  } else {
    cohorts_.insert(after, {arrived, items});
  }
  if (cohorts_.size() > kMaxCohorts) MergeNeighbours();
}

void BacklogTracker::TakeOldest(int64_t items) {
  int64_t taken = 0;
  while (taken < items && !cohorts_.empty()) {
    const int64_t part = std::min(items - taken, cohorts_.front().items);
    taken += part;
    cohorts_.front().items -= part;
    if (cohorts_.front().items == 0) cohorts_.pop_front();
  }
  MUSTER_CHECK(taken <= items_, "took ", taken, " of ", items_);
  items_ -= taken;
}

int64_t BacklogTracker::TakeNewest(int64_t items, absl::Time not_after) {
  int64_t taken = 0;
  for (size_t i = cohorts_.size(); i-- > 0 && taken < items;) {
    if (cohorts_[i].arrived > not_after) continue;
    const int64_t part = std::min(items - taken, cohorts_[i].items);
    taken += part;
    cohorts_[i].items -= part;
  }
  std::erase_if(cohorts_, [](const Cohort& cohort) { return cohort.items == 0; });
  MUSTER_CHECK(taken <= items_, "took ", taken, " of ", items_);
  items_ -= taken;
  return taken;
}

// Merges each two neighbours. This visits all cohorts, but only once for each kMaxCohorts / 2 new
// ones.
void BacklogTracker::MergeNeighbours() {
  std::deque<Cohort> merged;
  for (size_t i = 0; i < cohorts_.size(); i += 2) {
    merged.push_back(cohorts_[i]);
    if (i + 1 < cohorts_.size()) merged.back().items += cohorts_[i + 1].items;
  }
  cohorts_.swap(merged);
}

}  // namespace muster::scaling::policy
