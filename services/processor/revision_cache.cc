// SPDX-License-Identifier: Apache-2.0
#include "services/processor/revision_cache.h"

#include <utility>

#include "muster/base/status.h"
#include "muster/handler/pool.h"
#include "muster/job/job_file.h"
#include "services/processor/processor.h"

namespace muster::processor {

RevisionCache::RevisionCache(job::JobRegistry* jobs, const handler::HandlerRegistry* handlers,
                             blob::BlobStore* blobs, HandlerAccess access, base::Clock* clock,
                             SlowItems* slow_items, telemetry::Registry* metrics)
    : jobs_(jobs),
      handlers_(handlers),
      blobs_(blobs),
      access_(std::move(access)),
      clock_(clock),
      slow_items_(slow_items),
      metrics_(metrics),
      entries_(kMaxRevisions) {}

absl::StatusOr<std::shared_ptr<const Revision>> RevisionCache::Find(const std::string& revision) {
  {
    base::MutexLock lock(&mu_);
    const Entry* const entry = entries_.Find(revision);
    if (entry != nullptr &&
        (entry->found.ok() || clock_->Monotonic() - entry->made < kMissingRevisionFor)) {
      return entry->found;
    }
  }
  // Made outside the lock: another thread may make the same revision meanwhile, which costs time
  // once; the last one stays.
  absl::StatusOr<std::shared_ptr<const Revision>> made = Make(revision);
  base::MutexLock lock(&mu_);
  *entries_.FindOrAdd(revision).first = {made, clock_->Monotonic()};
  return made;
}

absl::StatusOr<std::shared_ptr<const Revision>> RevisionCache::Make(
    const std::string& revision) const {
  MUSTER_ASSIGN_OR_RETURN(const job::JobEntry entry, jobs_->FindRevision(revision));
  const auto made = std::make_shared<Revision>();
  MUSTER_ASSIGN_OR_RETURN(made->job, job::ParseJob(entry.definition, ""));
  MUSTER_ASSIGN_OR_RETURN(const JobHandler handler,
                          FindHandler(made->job, *handlers_, access_, clock_));
  made->setup.job = &made->job;
  made->setup.schema = made->job.schema();
  made->setup.handler_version = handler.version;
  made->setup.instance = access_.instance;
  made->setup.blobs = blobs_;
  made->setup.isolated = handler.isolated;
  made->setup.clock = clock_;
  made->setup.slow_items = slow_items_;
  made->setup.metrics = ItemMetrics(metrics_, made->job.name);
  CountRestarts(metrics_, made->job.name, handler.restarts.get());
  made->handlers = handler::PooledHandlers(handler.factory);
  return made;
}

}  // namespace muster::processor
