// SPDX-License-Identifier: Apache-2.0

// Station: the simulated queue and its replicas. Starting: the replicas that are starting.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <queue>
#include <vector>

#include "muster/base/check.h"
#include "muster/base/random.h"
#include "muster/scaling/policy/policy.h"
#include "muster/scaling/replay/metrics.h"
#include "muster/scaling/replay/options.h"
#include "muster/scaling/replay/trace.h"

namespace muster::scaling::replay {

class Starting {
 public:
  void Add(int64_t ready_us) {
    ready_us_.insert(std::upper_bound(ready_us_.begin(), ready_us_.end(), ready_us), ready_us);
  }

  // Drops the replica that needs longest; there must be one.
  void CancelLast() {
    MUSTER_DCHECK(!ready_us_.empty(), "starting ", ready_us_.size());
    ready_us_.pop_back();
  }

  // Removes the replicas that are ready by `now_us`; returns their number.
  int TakeReady(int64_t now_us) {
    const auto end = std::upper_bound(ready_us_.begin(), ready_us_.end(), now_us);
    const auto ready = static_cast<int>(end - ready_us_.begin());
    ready_us_.erase(ready_us_.begin(), end);
    return ready;
  }

  int size() const { return static_cast<int>(ready_us_.size()); }
  bool empty() const { return ready_us_.empty(); }
  int64_t earliest_us() const { return ready_us_.front(); }
  const std::vector<int64_t>& ready_us() const { return ready_us_; }

 private:
  std::vector<int64_t> ready_us_;  // earliest first
};

// Station: a simulated queue and the replicas that work on it.

// Times are microseconds since the trace's start. Items are served first in, first out. Work goes
// to the replica that worked last, so that replicas which are not needed stay idle. Not
// thread-safe.
class Station {
 public:
  virtual ~Station() = default;

  // Lets time pass until `now_us`; takes in the items that arrive until then, that instant
  // included.
  virtual void AdvanceTo(int64_t now_us) = 0;

  // Sets the number of ready and starting replicas. When shrinking, starting replicas go first (the
  // one that needs longest), then idle ones (longest idle first), then busy ones, which finish
  // their items.
  virtual void Resize(int replicas) = 0;

  // Writes `fleet` and one reading of the queue; `start` is the trace's start.
  virtual void Observe(absl::Time start, scaling::policy::Observation* observation) const = 0;

  // Counts all waiting and held items as violations and drops them.
  virtual void GiveUp() = 0;

  virtual int64_t total_in() const = 0;
  virtual int64_t outstanding() const = 0;  // waiting or held
  virtual bool all_arrived() const = 0;
  virtual int committed() const = 0;  // ready and starting
  virtual int ready() const = 0;
  virtual const Tally& tally() const = 0;
};

// Begins at 0 with options.min ready replicas. `trace` must outlive it.
std::unique_ptr<Station> MakeStation(const Trace& trace, const SimOptions& options);

// FluidStation: work is a fluid in whole microseconds, so nothing is rounded.

// Items of a second arrive at its begin, and replicas become ready at whole seconds; AdvanceTo
// takes only whole seconds. An item is done when its last part is, but never before its service
// time.
class FluidStation final : public Station {
 public:
  FluidStation(const Trace& trace, const SimOptions& options);

  void AdvanceTo(int64_t now_us) override;
  void Resize(int replicas) override;
  void Observe(absl::Time start, scaling::policy::Observation* observation) const override;
  void GiveUp() override;

  int64_t total_in() const override { return total_in_; }
  int64_t outstanding() const override { return total_in_ - total_out_; }
  bool all_arrived() const override { return next_ == seconds_.size(); }
  int committed() const override { return ready_ + starting_.size(); }
  int ready() const override { return ready_; }
  const Tally& tally() const override { return tally_; }

 private:
  // The items that arrived at one instant.
  struct Cohort {
    int64_t at_us;
    int64_t items;
    int64_t done_us = 0;  // work
  };

  void ServeSecond();
  // Spends at most `budget_us` on the oldest cohort, `spent_us` into the second's work. Returns the
  // work spent.
  int64_t ServeOldest(int64_t spent_us, int64_t budget_us, int64_t rate);
  void CountDone(const Cohort& cohort, int64_t spent_us, int64_t take_us, int64_t rate);
  void TakeIn();
  void MarkIdle();

  const std::vector<SecondOfTrace> seconds_;
  const int64_t service_us_;
  const int64_t sla_us_;
  const int tasks_;
  const Distribution cold_start_;
  const base::UniformSource uniform_;
  size_t next_ = 0;  // of seconds_
  int64_t now_us_ = 0;
  std::deque<Cohort> cohorts_;
  int64_t waiting_us_ = 0;  // work of all cohorts
  int64_t total_in_ = 0;
  int64_t total_out_ = 0;
  int ready_;
  Starting starting_;
  std::vector<int64_t> idle_since_us_;  // longest idle first
  Tally tally_;
};

// ItemStation: simulates each item; the end of an item is an event.

class ItemStation final : public Station {
 public:
  ItemStation(const Trace& trace, const SimOptions& options);

  void AdvanceTo(int64_t now_us) override;
  void Resize(int replicas) override;
  void Observe(absl::Time start, scaling::policy::Observation* observation) const override;
  void GiveUp() override;

  int64_t total_in() const override { return total_in_; }
  int64_t outstanding() const override { return waiting_ + held_; }
  bool all_arrived() const override { return next_ == instants_.size(); }
  int committed() const override { return ready_ + starting_.size(); }
  int ready() const override { return ready_; }
  const Tally& tally() const override { return tally_; }

 private:
  struct Replica {
    int held = 0;  // items
    bool draining = false;
  };
  struct Running {
    int64_t end_us;
    int64_t came_us;
    int replica;
    bool operator>(const Running& other) const {
      return end_us != other.end_us ? end_us > other.end_us : replica > other.replica;
    }
  };
  struct Idle {
    int64_t since_us;
    int replica;
  };

  int64_t NextEvent() const;
  void PassTo(int64_t at_us);
  void Finish(const Running& item);
  void AddReady(int replicas);
  // Gives waiting items to free tasks.
  void Dispatch();
  int TakeFreeTask();  // -1: there is none
  void DrainBusy(int replicas);

  const std::vector<Instant> instants_;
  const Distribution service_;
  const int64_t sla_us_;
  const int tasks_;
  const Distribution cold_start_;
  const base::UniformSource service_uniform_;
  const base::UniformSource cold_start_uniform_;
  size_t next_ = 0;  // of instants_
  int64_t now_us_ = 0;
  std::deque<Instant> queue_;
  int64_t waiting_ = 0;
  int64_t held_ = 0;
  int64_t total_in_ = 0;
  std::priority_queue<Running, std::vector<Running>, std::greater<>> running_;
  std::vector<Replica> replicas_;  // by number; a replica that is gone leaves a gap
  std::vector<int> gaps_;
  std::vector<int> partly_busy_;  // replicas with a free task; entries may be out of date
  std::vector<Idle> idle_;        // longest idle first
  Starting starting_;
  int ready_ = 0;
  int draining_ = 0;
  Tally tally_;
};

}  // namespace muster::scaling::replay
