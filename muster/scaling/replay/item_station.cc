#include "muster/scaling/replay/item_station.h"

#include <algorithm>

#include "muster/scaling/replay/random_streams.h"

namespace muster::scaling::replay {
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

// Those that hold least go first, as they are gone soonest.
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

}  // namespace muster::scaling::replay
