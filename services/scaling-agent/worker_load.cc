// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/worker_load.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "muster/base/proto_time.h"
#include "services/scaling-agent/limits.h"
#include "services/scaling-agent/queue_watch.h"

namespace muster::scaling_agent {

namespace {

// Upper limits of a heartbeat's figures: above any real value, and small enough that sums do not
// overflow.
constexpr int64_t kMostCounted = int64_t{1} << 40;
constexpr double kMostPerSecond = 1e12;
constexpr absl::Duration kLongestService = absl::Hours(24 * 7);

int64_t SaneCount(int64_t count) { return std::clamp<int64_t>(count, 0, kMostCounted); }

double SaneFigure(double figure) { return std::isfinite(figure) && figure > 0 ? figure : 0; }

bool WorksOn(const v1::JobLoad& job, absl::string_view account,
             const std::vector<std::string>& queues) {
  return std::any_of(job.partitions().begin(), job.partitions().end(),
                     [&](const v1::PartitionLoad& partition) {
                       const absl::string_view queue = WithinAccount(partition.queue(), account);
                       return !queue.empty() && !NameOf(queue, queues).empty();
                     });
}

void AddHands(const v1::JobLoad& job, WorkerLoad* load) {
  for (const v1::PartitionLoad& partition : job.partitions()) {
    load->unsettled += SaneCount(partition.unsettled());
  }
  load->worked = load->worked || job.threads_busy() > 0 || SaneFigure(job.busy_share()) > 0 ||
                 load->unsettled > 0;
}

void AddSpeed(const v1::JobLoad& job, double window_seconds, WorkerLoad* load) {
  load->listens = true;
  load->threads = std::max(load->threads, std::min(job.threads_max(), kMaxTasks));
  load->busy_share = std::max(load->busy_share, std::min(1.0, SaneFigure(job.busy_share())));
  const double rate = std::min(kMostPerSecond, SaneFigure(job.items_per_second()));
  load->items_per_second += rate;
  load->finished += rate * window_seconds;
  load->running = std::max(load->running, job.threads());
  load->attempts += SaneCount(job.attempts());
  load->throttled += SaneCount(job.throttled());
  if (!job.has_service_time()) return;
  const absl::Duration mean = std::min(kLongestService, base::FromProto(job.service_time().mean()));
  // Of several jobs the slowest counts, because its items have deadlines too.
  if (mean > absl::ZeroDuration()) {
    load->service_time = std::max(load->service_time.value_or(mean), mean);
  }
}

}  // namespace

WorkerLoad LoadOf(const bus::RosterEntry& entry, absl::string_view account,
                  const std::vector<std::string>& queues) {
  WorkerLoad load;
  load.instance = entry.heartbeat.instance().instance();
  load.sequence = entry.heartbeat.sequence();
  load.heard = entry.heard;
  load.leaving = entry.heartbeat.leaving();
  load.silent = entry.leaving && !load.leaving;
  load.waits = entry.heartbeat.has_standby() && !entry.heartbeat.standby().has_left();
  load.cpu_cores = SaneFigure(entry.heartbeat.cpu_cores());
  const double window =
      SaneFigure(absl::ToDoubleSeconds(base::FromProto(entry.heartbeat.window())));
  bool has_trouble = false;
  for (const v1::JobLoad& job : entry.heartbeat.jobs()) {
    AddHands(job, &load);
    if (WorksOn(job, account, queues)) AddSpeed(job, window, &load);
    has_trouble |= !job.trouble().empty();
  }
  load.jobless = !load.listens && !has_trouble;
  return load;
}

namespace {

double CoresHere() { return std::max(1U, std::thread::hardware_concurrency()); }

// The share of the cores available to `workers` that they use.
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

// The worker's items per second if it were busy all the time. With few items in a heartbeat's
// window, items that cross the window's ends distort the rate: an unfinished item adds work without
// a result, an item begun earlier adds a result without its work. Then the service time of the
// finished items is the better measure, and where the last of them have just ended, a bound.
double FullSpeed(const WorkerLoad& worker) {
  const double rate = worker.items_per_second / worker.busy_share;
  if (!worker.service_time.has_value() || worker.finished <= 0) return rate;
  const double seconds = absl::ToDoubleSeconds(*worker.service_time);
  const int running = std::max(1, worker.running);
  if (worker.finished < kFewItems * running) return running / seconds;
  const int threads = std::max(running, worker.threads);
  return worker.finished < kFewItems * threads ? std::min(rate, threads / seconds) : rate;
}

// The mean over the workers, weighted by their items; zero if no worker has finished an item.
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
    // A replica's first work is slower: handlers start and caches fill.
    seen.works_since = std::min(seen.works_since, worker.heard);
    const bool is_warm = worker.heard - seen.works_since >= kWarmUp;
    // Of the tasks that ran: a quiet hour with one of them must not hide what all do together.
    const int tasks = std::min(std::max(1, worker.running), worker.threads);
    if (is_warm || !(rate_.LowerBound(tasks) > 0)) rate_.See(tasks, FullSpeed(worker));
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
