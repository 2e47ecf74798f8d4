#include "muster/scaling/replay/fluid_station.h"

#include <algorithm>

#include "muster/scaling/replay/random_streams.h"

namespace muster::scaling::replay {
namespace {

int64_t CeilDivide(int64_t dividend, int64_t divisor) { return (dividend + divisor - 1) / divisor; }

}  // namespace

FluidStation::FluidStation(const Trace& trace, const SimOptions& options)
    : seconds_(BySecond(trace)),
      service_us_(absl::ToInt64Microseconds(options.service_time)),
      sla_us_(absl::ToInt64Microseconds(options.sla)),
      tasks_(options.tasks),
      cold_start_(options.cold_start_shape, absl::ToInt64Microseconds(options.cold_start),
                  options.cold_start_sigma),
      uniform_(Stream(options.seed, RandomStream::kColdStart)),
      ready_(options.min) {
  TakeIn();
  MarkIdle();
}

void FluidStation::AdvanceTo(int64_t now_us) {
  while (now_us_ < now_us) {
    ServeSecond();
    now_us_ += kSecondUs;
    ready_ += starting_.TakeReady(now_us_);
    TakeIn();
    MarkIdle();
  }
}

void FluidStation::ServeSecond() {
  tally_.replica_us += kSecondUs * committed();
  tally_.ready_us += kSecondUs * ready_;
  const int64_t rate = int64_t{ready_} * tasks_;
  const int64_t capacity_us = rate * kSecondUs;
  int64_t spent_us = 0;
  while (!cohorts_.empty() && spent_us < capacity_us) {
    spent_us += ServeOldest(spent_us, capacity_us - spent_us, rate);
  }
  waiting_us_ -= spent_us;
  tally_.work_us += spent_us;
}

int64_t FluidStation::ServeOldest(int64_t spent_us, int64_t budget_us, int64_t rate) {
  Cohort& cohort = cohorts_.front();
  const int64_t left_us = cohort.items * service_us_ - cohort.done_us;
  const int64_t take_us = std::min(left_us, budget_us);
  CountDone(cohort, spent_us, take_us, rate);
  cohort.done_us += take_us;
  if (take_us == left_us) cohorts_.pop_front();
  return take_us;
}

// Item j of the cohort (from 1) is done when j·S of its work is: at the work
// spent + j·S − done of this second, hence that over the rate after its begin.
void FluidStation::CountDone(const Cohort& cohort, int64_t spent_us, int64_t take_us,
                             int64_t rate) {
  const int64_t before = cohort.done_us / service_us_;
  const int64_t after = (cohort.done_us + take_us) / service_us_;
  if (after == before) return;
  const int64_t waited_us = now_us_ - cohort.at_us;
  const auto latency_us = [&](int64_t j) {
    const int64_t work_us = spent_us + j * service_us_ - cohort.done_us;
    return std::max(waited_us + CeilDivide(work_us, rate), service_us_);
  };
  tally_.latencies.AddRange(latency_us(before + 1), latency_us(after), after - before);
  total_out_ += after - before;
  const int64_t left_us = sla_us_ - waited_us;  // of this second, until the cohort is late
  if (service_us_ > sla_us_ || left_us < 0) {
    tally_.violations += after - before;
  } else if (left_us < kSecondUs) {
    const int64_t in_time = (left_us * rate - spent_us + cohort.done_us) / service_us_;
    tally_.violations += after - std::clamp(in_time, before, after);
  }
}

void FluidStation::TakeIn() {
  for (; next_ < seconds_.size() && seconds_[next_].second * kSecondUs <= now_us_; ++next_) {
    const int64_t items = seconds_[next_].items;
    cohorts_.push_back({now_us_, items});
    waiting_us_ += items * service_us_;
    total_in_ += items;
  }
}

// Those that the coming second does not need, if as few as possible work.
void FluidStation::MarkIdle() {
  const int64_t needed = CeilDivide(waiting_us_, kSecondUs * tasks_);
  const auto idle = static_cast<size_t>(std::max<int64_t>(0, ready_ - needed));
  idle_since_us_.resize(idle, now_us_);
}

void FluidStation::Resize(int replicas) {
  for (int i = committed(); i < replicas; ++i) {
    const int64_t seconds = CeilDivide(cold_start_.Draw(uniform_), kSecondUs);
    if (seconds == 0) {
      ++ready_;
    } else {
      starting_.Add(now_us_ + seconds * kSecondUs);
    }
  }
  while (committed() > replicas && !starting_.empty()) starting_.CancelLast();
  const int gone = std::max(0, committed() - replicas);
  ready_ -= gone;
  const size_t idle_gone = std::min<size_t>(static_cast<size_t>(gone), idle_since_us_.size());
  idle_since_us_.erase(idle_since_us_.begin(),
                       idle_since_us_.begin() + static_cast<ptrdiff_t>(idle_gone));
  MarkIdle();
}

void FluidStation::Observe(absl::Time start, scaling::policy::Observation* observation) const {
  scaling::policy::Fleet& fleet = observation->fleet;
  fleet.ready = ready_;
  fleet.starting.clear();
  for (const int64_t at_us : starting_.ready_us()) {
    fleet.starting.push_back(start + absl::Microseconds(at_us));
  }
  fleet.idle_since.clear();
  for (const int64_t since_us : idle_since_us_) {
    fleet.idle_since.push_back(start + absl::Microseconds(since_us));
  }
  scaling::policy::QueueReading& queue = observation->queues.front();
  queue.at = start + absl::Microseconds(now_us_);
  queue.in_flight = std::min(outstanding(), int64_t{ready_} * tasks_);
  queue.ready = outstanding() - queue.in_flight;
  queue.oldest_age = cohorts_.empty() ? absl::ZeroDuration()
                                      : absl::Microseconds(now_us_ - cohorts_.front().at_us);
  queue.total_in = total_in_;
  queue.total_out = total_out_;
}

void FluidStation::GiveUp() {
  for (const Cohort& cohort : cohorts_) {
    const int64_t items = cohort.items - cohort.done_us / service_us_;
    tally_.violations += items;
    tally_.latencies.Add(now_us_ - cohort.at_us, items);
    tally_.work_us += items * service_us_;
  }
  cohorts_.clear();
  total_out_ = total_in_;
  waiting_us_ = 0;
}

}  // namespace muster::scaling::replay
