// SPDX-License-Identifier: Apache-2.0
#include "muster/stream/rocksdb/retention_sweeper.h"

#include "absl/status/status.h"
#include "muster/base/log.h"
#include "muster/stream/rocksdb/partition_log.h"

namespace muster::stream::rocksdb {

RetentionSweeper::RetentionSweeper(base::Clock* clock)
    : clock_(clock), thread_([this] { Run(); }) {}

RetentionSweeper::~RetentionSweeper() {
  {
    base::MutexLock lock(&mu_);
    stopped_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void RetentionSweeper::Schedule(const std::shared_ptr<PartitionLog>& log, absl::Time due) {
  base::MutexLock lock(&mu_);
  const auto [place, is_new] = due_.emplace(log, due);
  if (!is_new && place->second <= due) return;
  if (!is_new) order_.erase({place->second, log});
  place->second = due;
  order_.insert({due, log});
  changed_.NotifyAll();
}

void RetentionSweeper::Forget(const std::shared_ptr<PartitionLog>& log) {
  base::MutexLock lock(&mu_);
  const auto place = due_.find(log);
  if (place == due_.end()) return;
  order_.erase({place->second, log});
  due_.erase(place);
}

std::shared_ptr<PartitionLog> RetentionSweeper::Await() {
  base::MutexLock lock(&mu_);
  while (!stopped_) {
    absl::Duration deadline = absl::InfiniteDuration();
    if (!order_.empty()) {
      const absl::Time due = order_.begin()->first;
      if (due <= clock_->Now()) {
        std::shared_ptr<PartitionLog> log = order_.begin()->second;
        order_.erase(order_.begin());
        due_.erase(log);
        return log;
      }
      deadline = base::MonotonicAt(*clock_, due);
    }
    clock_->WaitUntil(&changed_, &mu_, deadline);
  }
  return nullptr;
}

void RetentionSweeper::Run() {
  while (const std::shared_ptr<PartitionLog> log = Await()) {
    const absl::Status swept = log->Sweep();
    if (swept.ok()) continue;
    // Writers and readers of the partition get the error, too, and the next open sweeps again.
    base::Log(base::kWarning, "events were not removed at the end of their retention",
              {{"why", swept.message()}});
  }
}

}  // namespace muster::stream::rocksdb
