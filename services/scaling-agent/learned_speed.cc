#include "services/scaling-agent/learned_speed.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "services/scaling-agent/limits.h"

namespace muster::scaling_agent {
namespace {

double CoresHere() { return std::max(1U, std::thread::hardware_concurrency()); }

// Of what `workers` may use.
double CpuShare(const std::vector<WorkerLoad>& workers, double replica_cores) {
  if (workers.empty()) return 0;
  double used = 0;
  for (const WorkerLoad& worker : workers) used += worker.cpu_cores;
  const double there =
      replica_cores > 0 ? replica_cores * static_cast<double>(workers.size()) : CoresHere();
  return std::min(1.0, used / there);
}

double ThrottledShare(const std::vector<WorkerLoad>& workers) {
  double throttled = 0, attempts = 0;
  for (const WorkerLoad& worker : workers) {
    throttled += static_cast<double>(worker.throttled);
    attempts += static_cast<double>(worker.attempts);
  }
  return throttled > 0 ? throttled / (throttled + attempts) : 0;
}

// What it would do if it were busy all the time. With few items in a heartbeat, one that is still
// under way is work without a result, and one that was begun before it is a result without work:
// then the service time of those that were finished tells it better.
double FullSpeed(const WorkerLoad& worker) {
  const bool few = worker.finished > 0 && worker.finished < kFewItems * worker.running;
  if (few && worker.service_time.has_value()) {
    return worker.running / absl::ToDoubleSeconds(*worker.service_time);
  }
  return worker.items_per_second / worker.busy_share;
}

// Weighted by the items they did; zero where nobody has finished one.
absl::Duration ServiceTime(const std::vector<WorkerLoad>& workers) {
  double seconds = 0, weight = 0;
  for (const WorkerLoad& worker : workers) {
    if (!worker.service_time.has_value()) continue;
    const double items = std::max(worker.items_per_second, 1e-6);
    seconds += items * absl::ToDoubleSeconds(*worker.service_time);
    weight += items;
  }
  return weight > 0 ? absl::Seconds(seconds / weight) : absl::ZeroDuration();
}

}  // namespace

LearnedSpeed::LearnedSpeed(const SpeedOptions& options)
    : options_(options), cold_start_(options.cold_start) {}

void LearnedSpeed::See(const std::vector<WorkerLoad>& workers) {
  std::map<std::string, Seen> all_seen;
  for (const WorkerLoad& worker : workers) {
    Seen& seen = all_seen[worker.instance];
    const auto before = seen_.find(worker.instance);
    if (before != seen_.end()) seen = before->second;
    if (std::exchange(seen.sequence, worker.sequence) == worker.sequence) continue;
    if (worker.busy_share < kLeastBusyShare) continue;
    // Work that is new to a replica has its handlers start and its caches fill.
    seen.works_since = std::min(seen.works_since, worker.heard);
    const bool is_warm = worker.heard - seen.works_since >= kWarmUp;
    if (is_warm || !(rate_.LowerBound(worker.threads) > 0)) {
      rate_.See(worker.threads, FullSpeed(worker));
    }
  }
  seen_ = std::move(all_seen);
  const absl::Duration service_time = ServiceTime(workers);
  if (service_time > absl::ZeroDuration()) service_time_ = service_time;
  cpu_share_ = CpuShare(workers, options_.replica_cores);
  throttled_share_ = ThrottledShare(workers);
}

scaling::policy::Estimates LearnedSpeed::For(int tasks) const {
  scaling::policy::Estimates estimates;
  estimates.items_per_second = rate_.LowerBound(tasks);
  estimates.service_time = service_time_;
  estimates.cold_start = cold_start_.P95();
  estimates.cpu_share = cpu_share_;
  estimates.throttled_share = throttled_share_;
  return estimates;
}

}  // namespace muster::scaling_agent
