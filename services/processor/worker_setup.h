// SPDX-License-Identifier: Apache-2.0

// WorkerSetup: what all workers of a job share; and Revision, one revision of a job with its setup.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "muster/base/clock.h"
#include "muster/base/lru_map.h"
#include "muster/base/mutex.h"
#include "muster/blob/blob_store.h"
#include "muster/content/item_content.h"
#include "muster/handler/handler.h"
#include "muster/handler/health_troubles.h"
#include "muster/item/cancelled_batches.h"
#include "muster/item/suspended_batches.h"
#include "muster/job/job.h"
#include "muster/telemetry/span.h"
#include "services/processor/absent_content.h"
#include "services/processor/failure_streak.h"
#include "services/processor/pool_metrics.h"
#include "services/processor/slow_items.h"

namespace muster::processor {

// Batches that are remembered as logged; beyond that the one that came least recently is forgotten,
// and logged again.
inline constexpr size_t kMaxLogged = 1000;

// Batches that a log line has named already. Thread-safe.
class LoggedBatches {
 public:
  // True for the first call with `batch`.
  bool Insert(uint64_t batch) {
    base::MutexLock lock(&mu_);
    return batches_.FindOrAdd(batch).second;
  }

 private:
  base::Mutex mu_;
  base::LruMap<uint64_t, bool> batches_ ABSL_GUARDED_BY(mu_){kMaxLogged};  // the keys alone count
};

class RevisionSource;

// What all workers of a job share. Workers change only its counters and logged batches. Outlives
// them.
struct WorkerSetup {
  const job::JobDefinition* job = nullptr;  // not owned
  handler::JobSchema schema;
  std::string handler_version;
  std::string instance;              // the name that results carry as their worker
  blob::BlobStore* blobs = nullptr;  // not owned
  // Where the content of items is that travels by reference; null: other workers take those items.
  content::ItemContent* content = nullptr;  // not owned
  AbsentContent* absent = nullptr;          // not owned; set with `content`
  // Makes handlers that run in a process of their own, for suspects; empty: suspects run like other
  // items.
  handler::HandlerFactory isolated;
  // Finds other revisions of the job, for items that are bound to them; null: other workers take
  // those items.
  RevisionSource* revisions = nullptr;  // not owned
  // Cancelled batches, whose items the workers drop; null: there are none. Not owned.
  item::CancelledBatches* cancelled = nullptr;
  // Suspended batches, whose items the workers drop if they do not fit; null: they give them back.
  // Not owned.
  item::SuspendedBatches* suspended = nullptr;
  // As of Dependencies.
  std::function<absl::StatusOr<bool>(uint64_t batch)> is_over;
  // Transactions of processed items, counted at each attempt: for progress bars, not for
  // accounting.
  mutable std::atomic<uint64_t> transactions_processed{0};
  // In which workers have made their handlers, since they began.
  mutable std::atomic<int64_t> starting_nanoseconds{0};
  mutable LoggedBatches misfits;           // one log line for a batch, not one for each item
  base::Clock* clock = base::RealClock();  // not owned
  // Warns of calls of the handler that take long; null: no warning is given. Not owned.
  SlowItems* slow_items = nullptr;
  std::shared_ptr<handler::HealthTroubles> health;  // of the job; gets those warnings, too
  mutable FailureStreak failures;                   // … and these
  ItemMetrics metrics;
  telemetry::SpanSink* spans = nullptr;  // null: batches are not traced. Not owned.
};

// One revision of a job, with all that a worker needs for its items.
struct Revision {
  job::JobDefinition job;
  WorkerSetup setup;                 // of `job`
  handler::HandlerFactory handlers;  // thread-safe
};

// Finds the revisions that batches are bound to, also after their job has changed. Thread-safe.
class RevisionSource {
 public:
  virtual ~RevisionSource() = default;

  // NotFound: the registry does not know the revision, or this program lacks its handler. Other
  // errors: unknown for now; ask again. The result is shared because workers keep the revision
  // while they use it.
  virtual absl::StatusOr<std::shared_ptr<const Revision>> Find(const std::string& revision) = 0;
};

}  // namespace muster::processor
