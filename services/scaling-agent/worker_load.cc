#include "services/scaling-agent/worker_load.h"

#include <algorithm>
#include <cmath>

#include "muster/base/proto_time.h"
#include "services/scaling-agent/limits.h"
#include "services/scaling-agent/queue_names.h"

namespace muster::scaling_agent {
namespace {

// More of anything than a heartbeat can be about; sums of it fit.
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
  // Of several jobs the slowest: a deadline has to be met for its items, too.
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
  load.cpu_cores = SaneFigure(entry.heartbeat.cpu_cores());
  const double window =
      SaneFigure(absl::ToDoubleSeconds(base::FromProto(entry.heartbeat.window())));
  for (const v1::JobLoad& job : entry.heartbeat.jobs()) {
    AddHands(job, &load);
    if (WorksOn(job, account, queues)) AddSpeed(job, window, &load);
  }
  return load;
}

}  // namespace muster::scaling_agent
