// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/replay/station.h"

#include <algorithm>

#include "muster/base/check.h"
#include "muster/scaling/replay/distribution.h"

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
  MUSTER_CHECK(now_us >= now_us_ && now_us % kSecondUs == 0, "from ", now_us_, " us to ", now_us);
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

// Marks as idle the replicas that the coming second does not need if as few as possible work.
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

namespace {

constexpr int64_t kNever = INT64_MAX;

Shape ShapeOf(Service service) {
  if (service == Service::kExponential) return Shape::kExponential;
  return service == Service::kLognormal ? Shape::kLognormal : Shape::kFixed;
}

}  // namespace

ItemStation::ItemStation(const Trace& trace, const SimOptions& options)
    : instants_(ByInstant(trace)),
      service_(ShapeOf(options.service), absl::ToInt64Microseconds(options.service_time),
               options.service_sigma),
      sla_us_(absl::ToInt64Microseconds(options.sla)),
      tasks_(options.tasks),
      cold_start_(options.cold_start_shape, absl::ToInt64Microseconds(options.cold_start),
                  options.cold_start_sigma),
      service_uniform_(Stream(options.seed, RandomStream::kService)),
      cold_start_uniform_(Stream(options.seed, RandomStream::kColdStart)) {
  AddReady(options.min);
  AdvanceTo(0);
}

int64_t ItemStation::NextEvent() const {
  int64_t next_us = kNever;
  if (!running_.empty()) next_us = running_.top().end_us;
  if (!starting_.empty()) next_us = std::min(next_us, starting_.earliest_us());
  if (next_ < instants_.size()) next_us = std::min(next_us, instants_[next_].at_us);
  return next_us;
}

void ItemStation::AdvanceTo(int64_t now_us) {
  for (int64_t event_us = NextEvent(); event_us <= now_us; event_us = NextEvent()) {
    PassTo(event_us);
    while (!running_.empty() && running_.top().end_us <= now_us_) {
      const Running item = running_.top();
      running_.pop();
      Finish(item);
    }
    AddReady(starting_.TakeReady(now_us_));
    for (; next_ < instants_.size() && instants_[next_].at_us <= now_us_; ++next_) {
      queue_.push_back(instants_[next_]);
      waiting_ += instants_[next_].items;
      total_in_ += instants_[next_].items;
    }
    Dispatch();
  }
  PassTo(now_us);
}

void ItemStation::PassTo(int64_t at_us) {
  const int64_t lapse_us = at_us - now_us_;
  MUSTER_DCHECK(lapse_us >= 0, "from ", now_us_, " us to ", at_us);
  tally_.replica_us += lapse_us * (committed() + draining_);
  tally_.ready_us += lapse_us * (ready_ + draining_);
  now_us_ = at_us;
}

void ItemStation::Finish(const Running& item) {
  --held_;
  const int64_t latency_us = item.end_us - item.came_us;
  tally_.latencies.Add(latency_us, 1);
  if (latency_us > sla_us_) ++tally_.violations;
  Replica& replica = replicas_[static_cast<size_t>(item.replica)];
  --replica.held;
  if (replica.draining) {
    if (replica.held > 0) return;
    --draining_;
    gaps_.push_back(item.replica);
  } else if (replica.held == 0) {
    idle_.push_back({now_us_, item.replica});
  } else if (replica.held == tasks_ - 1) {
    partly_busy_.push_back(item.replica);
  }
}

void ItemStation::AddReady(int replicas) {
  ready_ += replicas;
  for (; replicas > 0; --replicas) {
    if (gaps_.empty()) {
      gaps_.push_back(static_cast<int>(replicas_.size()));
      replicas_.emplace_back();
    }
    const int number = gaps_.back();
    gaps_.pop_back();
    replicas_[static_cast<size_t>(number)] = {};
    idle_.push_back({now_us_, number});
  }
}

int ItemStation::TakeFreeTask() {
  while (!partly_busy_.empty()) {
    const int number = partly_busy_.back();
    const Replica& replica = replicas_[static_cast<size_t>(number)];
    if (!replica.draining && replica.held > 0 && replica.held < tasks_) return number;
    partly_busy_.pop_back();
  }
  if (idle_.empty()) return -1;
  const int number = idle_.back().replica;
  idle_.pop_back();
  if (tasks_ > 1) partly_busy_.push_back(number);
  return number;
}

void ItemStation::Dispatch() {
  while (waiting_ > 0) {
    const int number = TakeFreeTask();
    if (number < 0) return;
    ++replicas_[static_cast<size_t>(number)].held;
    Instant& oldest = queue_.front();
    const int64_t took_us = std::max<int64_t>(1, service_.Draw(service_uniform_));
    tally_.work_us += took_us;
    running_.push({now_us_ + took_us, oldest.at_us, number});
    --waiting_;
    ++held_;
    if (--oldest.items == 0) queue_.pop_front();
  }
}

void ItemStation::Resize(int replicas) {
  for (int i = committed(); i < replicas; ++i) {
    const int64_t lapse_us = cold_start_.Draw(cold_start_uniform_);
    if (lapse_us == 0) {
      AddReady(1);
    } else {
      starting_.Add(now_us_ + lapse_us);
    }
  }
  while (committed() > replicas && !starting_.empty()) starting_.CancelLast();
  const int gone = std::max(0, committed() - replicas);
  const auto idle_gone = std::min(gone, static_cast<int>(idle_.size()));
  for (int i = 0; i < idle_gone; ++i) gaps_.push_back(idle_[static_cast<size_t>(i)].replica);
  idle_.erase(idle_.begin(), idle_.begin() + idle_gone);
  ready_ -= idle_gone;
  DrainBusy(gone - idle_gone);
  Dispatch();
}

// Replicas with the fewest items go first, because they finish soonest.
void ItemStation::DrainBusy(int replicas) {
  if (replicas == 0) return;
  std::vector<int> busy;
  for (size_t number = 0; number < replicas_.size(); ++number) {
    if (replicas_[number].held > 0 && !replicas_[number].draining) {
      busy.push_back(static_cast<int>(number));
    }
  }
  std::stable_sort(busy.begin(), busy.end(), [this](int a, int b) {
    return replicas_[static_cast<size_t>(a)].held < replicas_[static_cast<size_t>(b)].held;
  });
  MUSTER_CHECK(static_cast<size_t>(replicas) <= busy.size(), "replicas that go ", replicas,
               ", busy ", busy.size());
  busy.resize(static_cast<size_t>(replicas));
  for (const int number : busy) replicas_[static_cast<size_t>(number)].draining = true;
  ready_ -= replicas;
  draining_ += replicas;
}

void ItemStation::Observe(absl::Time start, scaling::policy::Observation* observation) const {
  scaling::policy::Fleet& fleet = observation->fleet;
  fleet.ready = ready_;
  fleet.draining = draining_;
  fleet.starting.clear();
  for (const int64_t at_us : starting_.ready_us()) {
    fleet.starting.push_back(start + absl::Microseconds(at_us));
  }
  fleet.idle_since.clear();
  for (const Idle& idle : idle_) {
    fleet.idle_since.push_back(start + absl::Microseconds(idle.since_us));
  }
  scaling::policy::QueueReading& queue = observation->queues.front();
  queue.at = start + absl::Microseconds(now_us_);
  queue.in_flight = held_;
  queue.ready = waiting_;
  queue.oldest_age =
      queue_.empty() ? absl::ZeroDuration() : absl::Microseconds(now_us_ - queue_.front().at_us);
  queue.total_in = total_in_;
  queue.total_out = total_in_ - outstanding();
}

void ItemStation::GiveUp() {
  for (const Instant& instant : queue_) {
    tally_.violations += instant.items;
    tally_.latencies.Add(now_us_ - instant.at_us, instant.items);
    tally_.work_us += instant.items * service_.mean_us();
  }
  queue_.clear();
  waiting_ = 0;
  for (; !running_.empty(); running_.pop()) {
    const int64_t latency_us = running_.top().end_us - running_.top().came_us;
    tally_.latencies.Add(latency_us, 1);
    ++tally_.violations;
  }
  held_ = 0;
}

std::unique_ptr<Station> MakeStation(const Trace& trace, const SimOptions& options) {
  if (options.service == Service::kFluid) return std::make_unique<FluidStation>(trace, options);
  return std::make_unique<ItemStation>(trace, options);
}

}  // namespace muster::scaling::replay
