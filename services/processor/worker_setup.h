// What the workers of a job share.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "muster/base/mutex.h"
#include "muster/blob/blob_store.h"
#include "muster/handler/handler.h"
#include "muster/item/cancelled_batches.h"
#include "muster/job/job.h"

namespace muster::processor {

// Batches that something was said about. Thread-safe.
class LoggedBatches {
 public:
  // True for the first call with `batch`.
  bool Insert(uint64_t batch) {
    base::MutexLock lock(&mu_);
    return batches_.insert(batch).second;
  }

 private:
  base::Mutex mu_;
  std::set<uint64_t> batches_ ABSL_GUARDED_BY(mu_);
};

class RevisionSource;

// What all workers of a job share; read-only but for counts and notes. Outlives them.
struct WorkerSetup {
  const job::JobDefinition* job = nullptr;  // not owned
  handler::JobSchema schema;
  std::string handler_version;
  std::string instance;              // stands in results as who computed them
  blob::BlobStore* blobs = nullptr;  // not owned
  // Makes handlers that run in a process of their own, for suspects; empty: there is no such thing.
  handler::HandlerFactory isolated;
  // For items that are bound to other revisions of the job; null: they are left to other workers.
  RevisionSource* revisions = nullptr;  // not owned
  // Batches whose items are not worth any work; null: there are none. Not owned.
  item::CancelledBatches* cancelled = nullptr;
  // Of items that were processed, this one's attempts included; for progress bars, not for books.
  mutable std::atomic<uint64_t> transactions_processed{0};
  mutable LoggedBatches misfits;  // one line in the log for a batch, not for each of its items
};

// One revision of a job, and all that it takes to work on its items.
struct Revision {
  job::JobDefinition job;
  WorkerSetup setup;                 // of `job`
  handler::HandlerFactory handlers;  // thread-safe
};

// Finds revisions that batches are bound to, though their job has another one now. Thread-safe.
class RevisionSource {
 public:
  virtual ~RevisionSource() = default;

  // NotFound: nobody knows it, or this program does not have its handler. Others: it cannot be told
  // for now. Shared: workers keep what they work with.
  virtual absl::StatusOr<std::shared_ptr<const Revision>> Find(const std::string& revision) = 0;
};

}  // namespace muster::processor
