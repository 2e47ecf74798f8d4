// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/batch/job_queues.h"

#include "muster/base/status.h"
#include "muster/item/queue_names.h"
#include "muster/job/limits.h"

namespace muster::initiator::batch {
namespace {

// A put fails if its queue is gone, but nothing tells the initiator that a queue for results, or a
// part of a queue, is missing. After this time it looks again, and creates what a user has deleted
// by hand.
constexpr absl::Duration kTrust = absl::Minutes(1);

struct WantedQueue {
  queue::QueueId id;
  queue::Metadata metadata;
};

std::vector<WantedQueue> QueuesOf(const std::string& account, const job::JobDefinition& job) {
  // A queue that exists keeps its visibility timeout: this definition may be an earlier one.
  const queue::Metadata visibility = queue::WithVisibility({}, job.queue.visibility);
  std::vector<WantedQueue> queues;
  for (queue::QueueId& id : item::InputQueues(account, job.name, job.queue.partitions)) {
    queues.push_back({std::move(id), visibility});
  }
  queues.push_back({item::OutputQueue(account, job.name, 0), {}});
  return queues;
}

absl::Status CreateIfMissing(queue::QueueStore* store, const WantedQueue& wanted) {
  absl::Status created = store->CreateQueue(wanted.id, wanted.metadata);
  return absl::IsAlreadyExists(created) ? absl::OkStatus() : created;
}

}  // namespace

absl::Status CreateQueues(queue::QueueStore* store, const std::string& account,
                          const job::JobDefinition& job) {
  for (const WantedQueue& wanted : QueuesOf(account, job)) {
    MUSTER_RETURN_IF_ERROR(CreateIfMissing(store, wanted));
  }
  return absl::OkStatus();
}

absl::Status JobQueues::Ensure(const job::JobDefinition& job) {
  for (const WantedQueue& wanted : QueuesOf(account_, job)) {
    if (WasSeen(wanted.id)) continue;
    MUSTER_RETURN_IF_ERROR(CreateIfMissing(store_, wanted));
    base::MutexLock lock(&mu_);
    trusted_until_[wanted.id] = clock_->Monotonic() + kTrust;
  }
  return absl::OkStatus();
}

absl::Status JobQueues::EnsureAnew(const job::JobDefinition& job) {
  {
    base::MutexLock lock(&mu_);
    for (const WantedQueue& wanted : QueuesOf(account_, job)) {
      trusted_until_.erase(wanted.id);
      incarnations_.erase(wanted.id);
    }
  }
  return Ensure(job);
}

void JobQueues::Forget(const std::string& job) {
  std::vector<queue::QueueId> queues =
      item::InputQueues(account_, job, static_cast<int>(job::kMaxPartitions));
  queues.push_back(item::OutputQueue(account_, job, 0));
  base::MutexLock lock(&mu_);
  for (const queue::QueueId& queue : queues) {
    trusted_until_.erase(queue);
    incarnations_.erase(queue);
  }
}

absl::StatusOr<std::string> JobQueues::LateIncarnation(const queue::QueueId& queue) {
  {
    base::MutexLock lock(&mu_);
    const auto known = incarnations_.find(queue);
    if (known != incarnations_.end() && clock_->Monotonic() < known->second.until) {
      return known->second.incarnation;
    }
  }
  const absl::Duration until = clock_->Monotonic() + kTrust;
  MUSTER_ASSIGN_OR_RETURN(const queue::QueueExtent extent, store_->Extent(queue));
  base::MutexLock lock(&mu_);
  incarnations_[queue] = {extent.incarnation, until};
  return extent.incarnation;
}

std::shared_ptr<QueueScan> JobQueues::ScanOf(const job::JobDefinition& job) {
  base::MutexLock lock(&mu_);
  std::erase_if(scans_, [](const auto& scan) { return scan.second.expired(); });
  std::weak_ptr<QueueScan>& known = scans_[{job.name, job.queue.partitions}];
  std::shared_ptr<QueueScan> scan = known.lock();
  if (scan == nullptr) {
    scan = std::make_shared<QueueScan>(
        QueueScan::Queues{item::InputQueues(account_, job.name, job.queue.partitions),
                          item::OutputQueue(account_, job.name, 0)},
        store_, clock_);
    known = scan;
  }
  return scan;
}

bool JobQueues::WasSeen(const queue::QueueId& queue) {
  base::MutexLock lock(&mu_);
  const auto seen = trusted_until_.find(queue);
  return seen != trusted_until_.end() && clock_->Monotonic() < seen->second;
}

}  // namespace muster::initiator::batch
