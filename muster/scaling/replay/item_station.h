// ItemStation: each item by itself, each end of one an event.
#pragma once

#include <deque>
#include <queue>
#include <vector>

#include "muster/base/random.h"
#include "muster/scaling/replay/starting.h"
#include "muster/scaling/replay/station.h"

namespace muster::scaling::replay {

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
  std::vector<Replica> replicas_;  // by number; those that are gone leave a gap
  std::vector<int> gaps_;
  std::vector<int> partly_busy_;  // with a free task; may hold some that have none any more
  std::vector<Idle> idle_;        // longest idle first
  Starting starting_;
  int ready_ = 0;
  int draining_ = 0;
  Tally tally_;
};

}  // namespace muster::scaling::replay
