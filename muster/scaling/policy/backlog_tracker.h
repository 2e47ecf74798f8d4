// SPDX-License-Identifier: Apache-2.0

// BacklogTracker: the unfinished work of one target, by the time when it was put. Announcements add
// work at once; readings of the queues correct the numbers.
//
//   announced, later than the readings    the readings cannot know it: it is added to what they say
//   announced, not later                  it is part of what the readings say
//   in the readings, but not announced    its trigger was lost: a cohort of its own
//   announced, but not in the readings    done, or announced twice
#pragma once

#include <cstdint>
#include <deque>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/scaling/policy/backlog.h"
#include "muster/scaling/policy/policy.h"

namespace muster::scaling::policy {

// Not thread-safe. Its memory is bounded: it merges neighbouring cohorts, and a merged cohort has
// the time of the older one.
class BacklogTracker {
 public:
  // Announcements within `resolution` of a cohort join it.
  explicit BacklogTracker(absl::Duration resolution) : resolution_(resolution) {}

  // Ignores item numbers that are not above 0, an id that was announced before, and work that the
  // readings include already.
  void Announce(const Announcement& announcement);

  // Corrects the cohorts by the readings. The readings describe the time of the oldest of them;
  // work announced later stays as it is. Ignores readings older than the last ones; without
  // readings nothing changes. `now` bounds all times: no work was put in the future.
  void Reconcile(absl::Span<const QueueReading> readings, absl::Time now);

  // Call it when time went backwards: moves times after `now` to `now`.
  void StepBack(absl::Time now);

  // Oldest first, none empty.
  const std::deque<Cohort>& cohorts() const { return cohorts_; }
  int64_t items() const { return items_; }

  // The time that the readings describe. InfinitePast: there were none.
  absl::Time read_at() const { return read_at_; }

  // All items that ever became known, for rates.
  int64_t ever() const { return ever_; }

 private:
  struct Totals;

  void Add(absl::Time arrived, int64_t items);
  void TakeOldest(int64_t items);
  // Returns how many items it took.
  int64_t TakeNewest(int64_t items, absl::Time not_after);
  int64_t PutBy(absl::Time at) const;
  void Agree(const Totals& totals, absl::Time at);
  void MergeNeighbours();
  bool IsKnown(uint64_t id);

  const absl::Duration resolution_;
  std::deque<Cohort> cohorts_;
  int64_t items_ = 0;
  int64_t ever_ = 0;
  absl::Time read_at_ = absl::InfinitePast();
  int64_t read_out_ = 0;
  std::deque<uint64_t> known_ids_;
};

}  // namespace muster::scaling::policy
