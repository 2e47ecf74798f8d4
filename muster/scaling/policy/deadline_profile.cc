// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/policy/deadline_profile.h"

#include <algorithm>
#include <cmath>

namespace muster::scaling::policy {
namespace {

double Seconds(absl::Duration duration) { return absl::ToDoubleSeconds(duration); }

// Rounds up, but ignores rounding errors.
int CeilReplicas(double replicas) {
  if (!(replicas > 0)) return 0;
  return static_cast<int>(std::ceil(std::min<double>(replicas, kMaxReplicas) - 1e-9));
}

// The items that the committed replicas can do by a time, in seconds from now. Callers ask for
// ascending times.
class Capacity {
 public:
  explicit Capacity(const Supply& supply) : supply_(supply) {}

  double ItemsBy(double time) { return supply_.items_per_second * ReplicaSecondsBy(time); }

  // Counts only the starting replicas.
  double StartingItemsBy(double time) {
    Advance(time);
    return supply_.items_per_second * (started_ * time - delays_);
  }

 private:
  double ReplicaSecondsBy(double time) {
    Advance(time);
    return supply_.ready * std::max(0.0, time) + started_ * time - delays_;
  }

  void Advance(double time) {
    for (; started_ < supply_.starting.size(); ++started_) {
      const double delay = Seconds(supply_.starting[started_] - supply_.now);
      if (delay >= time) return;
      delays_ += delay;
    }
  }

  const Supply& supply_;
  size_t started_ = 0;
  double delays_ = 0;
};

// Calls `visit(seconds since its arrival until now, W)` for each cohort that is not done, oldest
// first.
template <typename Visit>
void ForEachCohort(const Backlog& backlog, absl::Time now, Visit visit) {
  double work = -std::max(0.0, backlog.done);
  for (const Cohort& cohort : *backlog.cohorts) {
    work += static_cast<double>(cohort.items);
    if (work > 0) visit(Seconds(now - cohort.arrived), work);
  }
}

// The replicas for `deficit` items by a time that leaves `run` seconds to new replicas and
// `parked_run` seconds to parked ones.
double Missing(double deficit, double run, const Supply& supply, double parked_run) {
  if (!(deficit > 0)) return 0;
  const double rate = supply.items_per_second;
  if (supply.parked == 0 || parked_run <= run) return deficit / (rate * run);
  const double released = deficit / (rate * parked_run);
  if (released <= supply.parked) return released;
  return supply.parked + (deficit - rate * parked_run * supply.parked) / (rate * run);
}

}  // namespace

absl::Duration Promise::margin() const {
  return std::min(std::max(absl::Seconds(2), deadline * 0.05), deadline / 2);
}

Profile ProfileDeadlines(const Backlog& backlog, const Supply& supply, const Promise& promise) {
  Profile profile;
  const double promised = Seconds(promise.deadline);
  const double slack = promised - Seconds(promise.service_time + promise.margin());
  const double cold_start = Seconds(supply.cold_start);
  const double warm_start = std::min(cold_start, Seconds(supply.release));
  const double shortest = std::max(1e-3, Seconds(promise.shortest_run()));
  Capacity capacity(supply), sooner(supply);
  double least_ready = 0;
  double missing_late = 0;
  ForEachCohort(backlog, supply.now, [&](double age, double work) {
    // A deadline too early for a new replica counts as the earliest deadline that a new replica can
    // help with: otherwise replicas started for it would not count for it, and each look would
    // start as many again.
    const double due = std::max(slack - age, cold_start + shortest);
    // Ready replicas help without a cold start.
    const double soon = std::max(slack - age, shortest);
    const double starting = sooner.StartingItemsBy(soon);
    least_ready = std::max(least_ready, (work - starting) / (supply.items_per_second * soon));
    const double deficit = work - capacity.ItemsBy(due);
    const double missing = Missing(deficit, due - cold_start, supply, due - warm_start);
    if (!(missing > 1e-9)) return;
    const bool late = slack - age <= cold_start + shortest;
    if (late) missing_late = std::max(missing_late, missing);
    if (missing <= profile.missing) return;
    profile.missing = missing;
    profile.deadline = supply.now + absl::Seconds(promised - age);
  });
  profile.least_ready = std::min(supply.ready, CeilReplicas(least_ready));
  profile.short_handed = CeilReplicas(least_ready) > supply.ready;
  // At the latest possible start, patience no longer applies.
  const int patient = CeilReplicas(profile.missing - promise.patience);
  profile.extra = std::max(patient, CeilReplicas(missing_late));
  profile.late_start = profile.extra > patient;
  return profile;
}

namespace {

// Computes when all work is done, and by how much the worst part is late, if `extra` more replicas
// start now.
class Ending {
 public:
  Ending(const Supply& supply, int extra) : supply_(supply), extra_(extra), rate_(supply.ready) {
    const int released = std::min(extra, supply.parked);
    joins_.reserve(supply.starting.size() + 2);
    for (absl::Time ready : supply.starting) joins_.push_back({Seconds(ready - supply.now), 1});
    joins_.push_back({Seconds(supply.release), static_cast<double>(released)});
    joins_.push_back({Seconds(supply.cold_start), static_cast<double>(extra_ - released)});
    std::sort(joins_.begin(), joins_.end(),
              [](const Join& a, const Join& b) { return a.at < b.at; });
  }

  // Seconds from now until `work` items are done; asked for ascending work.
  double DoneAt(double work) {
    const double replica_seconds = work / supply_.items_per_second;
    while (true) {
      const double next = joined_ < joins_.size() ? joins_[joined_].at : HUGE_VAL;
      const double at = rate_ > 0 ? at_ + (replica_seconds - done_) / rate_ : HUGE_VAL;
      if (at <= next) return at;
      if (next == HUGE_VAL) return HUGE_VAL;
      done_ += rate_ * std::max(0.0, next - at_);
      at_ = std::max(at_, next);
      rate_ += joins_[joined_++].replicas;
    }
  }

 private:
  struct Join {
    double at;
    double replicas;
  };

  const Supply& supply_;
  const int extra_;
  std::vector<Join> joins_;
  size_t joined_ = 0;
  double at_ = 0;
  double done_ = 0;  // replica-seconds until at_
  double rate_;      // replicas from at_ on
};

// The least number of new replicas with which all work meets the promise; nullopt: none up to
// kMaxReplicas does.
std::optional<int> ExtraNeeded(const Backlog& backlog, const Supply& supply,
                               const Promise& promise) {
  const double promised = Seconds(promise.deadline);
  const double cold_start = Seconds(supply.cold_start);
  const double warm_start = std::min(cold_start, Seconds(supply.release));
  Capacity capacity(supply);
  double most = 0;
  ForEachCohort(backlog, supply.now, [&](double age, double work) {
    const double due = promised - age;
    const double deficit = work - (due > 0 ? capacity.ItemsBy(due) : 0);
    // A thousandth of an item is a rounding error.
    if (deficit <= 1e-3) return;
    if (due > cold_start) {
      most = std::max(most, Missing(deficit, due - cold_start, supply, due - warm_start));
      return;
    }
    const double released = supply.items_per_second * supply.parked * (due - warm_start);
    const bool parked_do_it = due > warm_start && deficit <= released;
    most = std::max(most, parked_do_it ? deficit / (released / supply.parked) : HUGE_VAL);
  });
  if (most > kMaxReplicas * (1 + 1e-9)) return std::nullopt;
  return CeilReplicas(most);
}

}  // namespace

Feasibility Judge(const Backlog& backlog, const Supply& supply, const Promise& promise,
                  int replicas) {
  Feasibility verdict;
  const int extra = std::max(0, replicas - supply.committed());
  const std::optional<int> needed = ExtraNeeded(backlog, supply, promise);
  verdict.feasible = needed.has_value() && *needed <= extra;
  verdict.needs = needed.has_value() ? supply.committed() + *needed : 0;
  Ending ending(supply, extra);
  const double first = supply.ready > 0 ? Seconds(promise.service_time) : 0;
  double done = first;
  if (verdict.feasible) {
    done = std::max(first, ending.DoneAt(std::max(0.0, backlog.items - backlog.done)));
  } else {
    double late = 0;
    ForEachCohort(backlog, supply.now, [&](double age, double work) {
      done = std::max(first, ending.DoneAt(work));
      late = std::max(late, done - (Seconds(promise.deadline) - age));
    });
    verdict.late_by = absl::Seconds(late);
  }
  verdict.finish = done == HUGE_VAL ? absl::InfiniteFuture() : supply.now + absl::Seconds(done);
  return verdict;
}

}  // namespace muster::scaling::policy
