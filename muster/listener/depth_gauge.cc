#include "muster/listener/depth_gauge.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"

namespace muster::listener {

DepthGauge::DepthGauge(const std::vector<queue::QueueId>& partitions, queue::QueueStore* store,
                       const LeaseTable* leases, CounterSet* counters,
                       std::function<void(const absl::Status&)> on_error)
    : partitions_(partitions),
      store_(store),
      leases_(leases),
      counters_(counters),
      on_error_(std::move(on_error)),
      last_seen_(partitions.size()) {}

Depth DepthGauge::Look() {
  Depth depth;
  int64_t in_flight = 0;
  for (size_t i = 0; i < partitions_.size(); ++i) {
    const absl::StatusOr<queue::QueueStats> stats = store_->Stats(partitions_[i]);
    if (!stats.ok()) {
      depth.known = false;
      on_error_(
          base::Annotate(stats.status(), absl::StrCat("stats of ", partitions_[i].ToString())));
      continue;
    }
    depth.ready += stats->ready;
    in_flight += stats->in_flight;
    base::MutexLock lock(&mu_);
    last_seen_[i] = *stats;
  }
  // What others hold may be nobody's any more.
  if (!store_->traits().exact_stats && in_flight > leases_->leased()) depth.known = false;
  counters_->Add(depth.ready > 0 ? &ListenerCounters::depth_checks_useful
                                 : &ListenerCounters::depth_checks_empty,
                 static_cast<int64_t>(partitions_.size()));
  return depth;
}

std::vector<queue::QueueStats> DepthGauge::last_seen() const {
  base::MutexLock lock(&mu_);
  return last_seen_;
}

}  // namespace muster::listener
