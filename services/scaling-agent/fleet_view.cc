// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/fleet_view.h"

#include <algorithm>
#include <utility>

#include "muster/scaling/policy/standby.h"
#include "services/scaling-agent/limits.h"

namespace muster::scaling_agent {
namespace {

using actuator::Replica;
using actuator::ReplicaState;

bool CanWork(const WorkerLoad& worker) {
  return worker.listens && !worker.leaving && !worker.silent && !worker.waits;
}

bool Waits(const WorkerLoad& worker) {
  return worker.listens && !worker.leaving && !worker.silent && worker.waits;
}

// A parked replica takes no work until an order resumes it, but its heartbeats go on: by them it
// would count as an idle one, in the place of one that works or starts.
FleetSigns WithoutParked(FleetSigns signs) {
  std::set<std::string> parked;
  for (const Replica& replica : signs.state.replicas) {
    if (replica.state == ReplicaState::kParked) parked.insert(replica.instance);
  }
  std::erase_if(signs.state.replicas,
                [](const Replica& replica) { return replica.state == ReplicaState::kParked; });
  std::erase_if(signs.workers,
                [&parked](const WorkerLoad& worker) { return parked.count(worker.instance) != 0; });
  return signs;
}

}  // namespace

// The intermediate results of one Look.
struct FleetView::Tally {
  struct Ready {
    std::string name;
    int64_t unsettled = 0;
    absl::Time idle_since = absl::InfiniteFuture();  // the replica is at work
  };
  std::vector<Ready> ready;
  std::vector<absl::Time> starting;
  int draining = 0;
  int waiting = 0;  // for a release
  int tasks = 0;    // the least of them
  bool has_lost_reports = false;
  std::map<std::string, const WorkerLoad*> by_instance;
  std::map<std::string, absl::Time> still_starting;
  std::set<std::string> were_ready;
};

FleetLook FleetView::Look(const FleetSigns& all) {
  const FleetSigns signs = WithoutParked(all);
  std::vector<WorkerLoad> able;
  std::copy_if(signs.workers.begin(), signs.workers.end(), std::back_inserter(able), CanWork);
  NoteIdleness(signs);
  NoteJobless(signs);
  NotePlatform(signs);
  Tally tally;
  tally.draining = static_cast<int>(all.state.replicas.size() - signs.state.replicas.size());
  tally.has_lost_reports = HasLostReports(signs);
  if (!tally.has_lost_reports) speed_.See(able);
  speed_.ForgetOldStarts(signs.now);
  for (const WorkerLoad& worker : signs.workers) tally.by_instance[worker.instance] = &worker;
  if (signs.has_platform) {
    TakeReplicas(signs, &tally);
  } else {
    TakeHeartbeats(signs, &tally);
  }
  starting_ = std::move(tally.still_starting);
  were_ready_ = std::move(tally.were_ready);
  Settle(signs, &tally);

  FleetLook look;
  look.live = static_cast<int>(tally.ready.size() + tally.starting.size()) + tally.waiting;
  look.waiting = tally.waiting;
  scaling::policy::Fleet& fleet = look.fleet;
  // A target without replicas expects the next ones to be as those that it had.
  if (!tally.has_lost_reports && tally.tasks > 0) tasks_ = tally.tasks;
  look.has_lost_reports = tally.has_lost_reports;
  fleet.tasks = std::max(1, tasks_);
  // Without reports the load per replica is unknown, so more tasks are not offered.
  fleet.max_tasks = tally.has_lost_reports ? fleet.tasks : std::max(fleet.tasks, max_tasks_);
  fleet.draining = tally.draining;
  std::sort(tally.starting.begin(), tally.starting.end());
  fleet.starting = std::move(tally.starting);
  fleet.ready = static_cast<int>(tally.ready.size());
  for (const Tally::Ready& ready : tally.ready) {
    if (ready.idle_since <= signs.now) fleet.idle_since.push_back(ready.idle_since);
    if (!ready.name.empty() && look.let_go_first.size() < kMaxLetGoFirst) {
      look.let_go_first.push_back(ready.name);
    }
  }
  std::sort(fleet.idle_since.begin(), fleet.idle_since.end());
  scaling::policy::Park(signs.standby, &fleet);
  look.estimates = speed_.For(fleet.tasks);
  return look;
}

void FleetView::NoteIdleness(const FleetSigns& signs) {
  std::map<std::string, absl::Time> idle_since;
  for (const WorkerLoad& worker : signs.workers) {
    if (!CanWork(worker) || worker.worked) continue;
    const auto before = idle_since_.find(worker.instance);
    const absl::Time since = before != idle_since_.end() ? before->second : worker.heard;
    idle_since[worker.instance] = std::min(since, signs.now);
  }
  idle_since_ = std::move(idle_since);
}

// A job in trouble ends the wait, unless it has been one for a job until then.
void FleetView::NoteJobless(const FleetSigns& signs) {
  std::map<std::string, absl::Time> jobless_since;
  for (const WorkerLoad& worker : signs.workers) {
    const auto before = jobless_since_.find(worker.instance);
    const absl::Time since = before != jobless_since_.end() ? before->second : worker.heard;
    const bool has_waited = worker.heard - since >= kJobWait;
    if (worker.jobless || (has_waited && !worker.listens)) jobless_since[worker.instance] = since;
  }
  jobless_since_ = std::move(jobless_since);
}

void FleetView::NotePlatform(const FleetSigns& signs) {
  if (!signs.has_platform || !signs.is_seen) {
    watched_since_ = absl::InfiniteFuture();
    watched_until_ = absl::InfinitePast();
    return;
  }
  watched_since_ = std::min(watched_since_, signs.now);
  // A replica that the last look did not show was made later than what that look was based on.
  const absl::Time earliest = std::min(watched_until_ - kTargetStateLifetime, signs.now);
  std::map<std::string, Appearance> appeared;
  for (const Replica& replica : signs.state.replicas) {
    const auto before = appeared_.find(replica.name);
    const bool is_known = before != appeared_.end() && before->second.started == replica.started;
    appeared[replica.name] =
        is_known ? before->second : Appearance{replica.started, earliest, signs.now};
  }
  appeared_ = std::move(appeared);
  watched_until_ = signs.now;
  if (wanted_.has_value() && signs.state.wanted > *wanted_) rose_ = signs.now;
  wanted_ = signs.state.wanted;
}

// Only when most reports stop together is the bus at fault, and that is at fault no longer where it
// brings what others say. A single silent replica hangs, and other replicas must do its work. Many
// at once may have a crowded machine, on which more replicas would crowd them further, but not for
// ever.
bool FleetView::HasLostReports(const FleetSigns& signs) {
  if (!signs.has_platform) return false;
  const auto heard = std::count_if(
      signs.workers.begin(), signs.workers.end(),
      [](const WorkerLoad& worker) { return worker.listens && !worker.silent && !worker.leaving; });
  const auto known = std::count_if(
      signs.state.replicas.begin(), signs.state.replicas.end(), [this](const Replica& replica) {
        return replica.state == ReplicaState::kReady && were_ready_.count(replica.name) != 0;
      });
  if (2 * heard >= known) {
    lost_since_ = absl::InfiniteFuture();
    return false;
  }
  lost_since_ = std::min(lost_since_, signs.now);
  return !signs.hears_others || (known > 1 && signs.now - lost_since_ < kLostReportsPatience);
}

// A previous leader or a person may have ordered the replicas too: rose_ shows when.
absl::Time FleetView::OrderedBy(const FleetSigns& signs) const {
  return std::min(std::max(signs.ordered, rose_), signs.now);
}

// The platform's clock may differ from this agent's by minutes, which would make each start a late
// one.
absl::Time FleetView::MadeAt(const Replica& replica, const FleetSigns& signs) const {
  const bool is_dated = replica.started > absl::UnixEpoch() && replica.started <= signs.now;
  const absl::Time made = is_dated ? replica.started : OrderedBy(signs);
  const auto appeared = appeared_.find(replica.name);
  if (replica.name.empty() || appeared == appeared_.end()) return made;
  return std::min(std::clamp(made, appeared->second.earliest, appeared->second.latest), signs.now);
}

void FleetView::TakeReady(const WorkerLoad* worker, const std::string& name,
                          const FleetSigns& signs, Tally* tally) {
  Tally::Ready ready;
  ready.name = name;
  if (worker != nullptr) {
    ready.unsettled = worker->unsettled;
    const auto idle = idle_since_.find(worker->instance);
    if (idle != idle_since_.end()) ready.idle_since = idle->second;
    tally->tasks = tally->tasks == 0 ? worker->threads : std::min(tally->tasks, worker->threads);
  }
  if (worker != nullptr && signs.has_platform) tally->were_ready.insert(name);
  const auto began = starting_.find(name);
  if (worker != nullptr && began != starting_.end()) {
    const absl::Duration took = std::min(worker->heard, signs.now) - began->second;
    speed_.SeeStart(took, signs.now);
    cold_starts_.Observe(took);
  }
  tally->ready.push_back(std::move(ready));
}

void FleetView::TakeStarting(const Replica& replica, const FleetSigns& signs, Tally* tally) {
  const absl::Time since = MadeAt(replica, signs);
  tally->starting.push_back(since + speed_.ColdStart());
  const bool starts_anew = were_ready_.count(replica.name) == 0 && since >= watched_since_;
  const auto jobless = jobless_since_.find(replica.instance);
  const bool waits = jobless != jobless_since_.end() && signs.now - jobless->second >= kJobWait;
  if (!replica.name.empty() && starts_anew && !waits) tally->still_starting[replica.name] = since;
}

void FleetView::TakeReplicas(const FleetSigns& signs, Tally* tally) {
  // Some replicas do not tell their instance yet. Heartbeats that match no replica's instance are
  // theirs.
  std::vector<const WorkerLoad*> unclaimed;
  std::set<std::string> claimed;
  for (const Replica& replica : signs.state.replicas) {
    claimed.insert(replica.instance);
    if (were_ready_.count(replica.name) != 0) tally->were_ready.insert(replica.name);
  }
  for (const WorkerLoad& worker : signs.workers) {
    const bool is_there = CanWork(worker) || Waits(worker);
    if (is_there && claimed.count(worker.instance) == 0) unclaimed.push_back(&worker);
  }
  for (const Replica& replica : signs.state.replicas) {
    const WorkerLoad* worker = nullptr;
    const auto heard = tally->by_instance.find(replica.instance);
    if (!replica.instance.empty()) {
      if (heard != tally->by_instance.end()) worker = heard->second;
    } else if (!unclaimed.empty()) {
      worker = unclaimed.back();
      unclaimed.pop_back();
    }
    if (replica.state == ReplicaState::kDraining || (worker != nullptr && worker->leaving)) {
      ++tally->draining;
    } else if (worker != nullptr && Waits(*worker)) {
      ++tally->waiting;
      tally->were_ready.insert(replica.name);  // its start is over, and no cold start is measured
    } else if (worker != nullptr && CanWork(*worker)) {
      TakeReady(worker, replica.name, signs, tally);
    } else if (replica.state == ReplicaState::kReady &&
               (signs.trusts_platform ||
                (tally->has_lost_reports && were_ready_.count(replica.name) != 0))) {
      TakeReady(nullptr, replica.name, signs, tally);
    } else {
      TakeStarting(replica, signs, tally);
    }
  }
}

void FleetView::TakeHeartbeats(const FleetSigns& signs, Tally* tally) {
  for (const WorkerLoad& worker : signs.workers) {
    if (CanWork(worker)) TakeReady(&worker, worker.instance, signs, tally);
    if (Waits(worker)) ++tally->waiting;
    if (worker.listens && worker.leaving) ++tally->draining;
  }
}

// Compares the replicas found with the number that the platform was last told.
void FleetView::Settle(const FleetSigns& signs, Tally* tally) const {
  using Ready = Tally::Ready;
  std::stable_sort(tally->ready.begin(), tally->ready.end(), [](const Ready& a, const Ready& b) {
    return std::pair(a.unsettled, a.idle_since) < std::pair(b.unsettled, b.idle_since);
  });
  if (!signs.has_platform) return;
  const int there = static_cast<int>(tally->ready.size() + tally->starting.size()) + tally->waiting;
  // What a person mistypes must not take all memory; a policy counts no further anyway.
  const int wanted = std::min(signs.state.wanted, scaling::policy::kMaxReplicas);
  for (int i = there; i < wanted; ++i) {
    tally->starting.push_back(OrderedBy(signs) + speed_.ColdStart());
  }
  for (int i = wanted; i < there; ++i) {
    ++tally->draining;
    // As platforms do: replicas that are not ready go first.
    if (!tally->starting.empty()) {
      tally->starting.pop_back();
    } else if (!tally->ready.empty()) {
      tally->ready.erase(tally->ready.begin());
    } else {
      --tally->waiting;
    }
  }
}

}  // namespace muster::scaling_agent
