// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/submit/job_throughput.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"

namespace muster::initiator::submit {

namespace {

// An item that was finished so long ago weighs half of one that is finished now: the cost of a
// job's items changes from batch to batch.
constexpr absl::Duration kHalfLife = absl::Minutes(1);
// Twice as many as a mesh has jobs.
constexpr size_t kMaxJobs = 1000;
// More than a processor has; the sum over all processors does not overflow.
constexpr int kMaxThreads = 1024;
// No real heartbeat reports more than this.
constexpr double kMaxItemsPerSecond = 1e9;
constexpr absl::Duration kLongestService = absl::Hours(24 * 7);
constexpr absl::Duration kLongestWindow = absl::Minutes(1);
// With fewer items per thread than this, the items that cross the ends of the heartbeat's window
// make the rate wrong by a tenth or more.
constexpr double kFewItems = 10;

double Sane(double figure, double most) {
  return std::isfinite(figure) && figure > 0 ? std::min(figure, most) : 0;
}

double ItemsOf(const v1::JobLoad& load, absl::Duration window) {
  return Sane(load.items_per_second(), kMaxItemsPerSecond) * absl::ToDoubleSeconds(window);
}

// How long one item keeps a thread; 0: unknown. Besides the handler's time this includes the time
// to fetch and settle the item, which is most of it if handlers are quick.
double ThreadSeconds(const v1::JobLoad& load, absl::Duration window) {
  if (!load.has_service_time()) return 0;
  const double service =
      absl::ToDoubleSeconds(std::min(kLongestService, base::FromProto(load.service_time().mean())));
  if (!(service > 0)) return 0;
  const double items = ItemsOf(load, window);
  if (load.threads() <= 0 || items < kFewItems * load.threads()) return service;
  const double busy = Sane(load.busy_share(), 1) * std::min(load.threads(), kMaxThreads);
  return std::max(service, busy * absl::ToDoubleSeconds(window) / items);
}

}  // namespace

absl::StatusOr<std::unique_ptr<JobThroughput>> JobThroughput::Open(bus::HeartbeatBus* bus,
                                                                   bus::Roster* roster,
                                                                   absl::string_view account,
                                                                   base::Clock* clock) {
  std::unique_ptr<JobThroughput> throughput(new JobThroughput(roster, account, clock));
  const auto on_heartbeat = [throughput = throughput.get()](const v1::Heartbeat& heartbeat) {
    throughput->OnHeartbeat(heartbeat);
  };
  MUSTER_ASSIGN_OR_RETURN(throughput->subscription_, bus->Subscribe(on_heartbeat));
  return throughput;
}

JobThroughput::JobThroughput(bus::Roster* roster, absl::string_view account, base::Clock* clock)
    : roster_(roster), queues_(absl::StrCat(account, "/")), clock_(clock) {}

bool JobThroughput::IsOurs(const v1::JobLoad& load) const {
  return std::any_of(load.partitions().begin(), load.partitions().end(),
                     [this](const v1::PartitionLoad& partition) {
                       return absl::StartsWith(partition.queue(), queues_);
                     });
}

void JobThroughput::OnHeartbeat(const v1::Heartbeat& heartbeat) {
  if (heartbeat.instance().role() != v1::ROLE_PROCESSOR) return;
  const absl::Duration window =
      std::clamp(base::FromProto(heartbeat.window()), absl::ZeroDuration(), kLongestWindow);
  const absl::Duration now = clock_->Monotonic();
  base::MutexLock lock(&mu_);
  for (const v1::JobLoad& load : heartbeat.jobs()) {
    const double each = ThreadSeconds(load, window);
    if (!(each > 0) || !IsOurs(load)) continue;
    const double items = std::max(1.0, ItemsOf(load, window));
    Learned& learned = FindOrAddLocked(load.job());
    const double faded = std::exp2(-absl::FDivDuration(now - learned.at, kHalfLife));
    learned.items = learned.items * faded + items;
    learned.thread_seconds = learned.thread_seconds * faded + items * each;
    learned.at = now;
  }
}

JobThroughput::Learned& JobThroughput::FindOrAddLocked(const std::string& job) {
  if (learned_.size() >= kMaxJobs && learned_.count(job) == 0) {
    const auto earlier = [](const auto& a, const auto& b) { return a.second.at < b.second.at; };
    learned_.erase(std::min_element(learned_.begin(), learned_.end(), earlier));
  }
  return learned_[job];
}

int JobThroughput::ThreadsFor(const std::string& job) {
  int threads = 0;
  for (const bus::RosterEntry& entry : roster_->List(v1::ROLE_PROCESSOR)) {
    if (entry.leaving) continue;
    for (const v1::JobLoad& load : entry.heartbeat.jobs()) {
      if (load.job() != job || !IsOurs(load)) continue;
      threads += std::clamp(load.threads_max(), 0, kMaxThreads);
    }
  }
  return threads;
}

double JobThroughput::ItemsPerSecond(const std::string& job) {
  const int threads = ThreadsFor(job);
  base::MutexLock lock(&mu_);
  const auto learned = learned_.find(job);
  if (learned == learned_.end()) return 0;
  return threads * learned->second.items / learned->second.thread_seconds;
}

}  // namespace muster::initiator::submit
