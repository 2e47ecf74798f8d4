// FluidStation: work as a liquid, in whole microseconds of work, so that nothing is rounded.
#pragma once

#include <deque>
#include <vector>

#include "muster/base/random.h"
#include "muster/scaling/replay/starting.h"
#include "muster/scaling/replay/station.h"

namespace muster::scaling::replay {

// What comes within a second comes at its begin, and replicas get ready at whole seconds; AdvanceTo
// wants whole seconds too. An item is done when its last drop is, but never before its service
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
  // What came at one instant.
  struct Cohort {
    int64_t at_us;
    int64_t items;
    int64_t done_us = 0;  // work
  };

  void ServeSecond();
  // Spends at most `budget_us` on the oldest cohort, `spent_us` into the second's work. Answers
  // what was spent.
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

}  // namespace muster::scaling::replay
