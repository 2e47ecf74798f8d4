// SPDX-License-Identifier: Apache-2.0

// RevisionCache: keeps earlier revisions of jobs, read from the registry, ready for workers.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/lru_map.h"
#include "muster/base/mutex.h"
#include "muster/blob/blob_store.h"
#include "muster/handler/handler.h"
#include "muster/job/job_registry.h"
#include "services/processor/job_handler.h"
#include "services/processor/worker_setup.h"

namespace muster::processor {

// Thread-safe. Asks the registry once for each revision. If that fails, asks again after
// kMissingRevisionFor (processor.h).
class RevisionCache final : public RevisionSource {
 public:
  // None of the pointers is owned; all outlive the cache. Results carry `access.instance`, too.
  RevisionCache(job::JobRegistry* jobs, const handler::HandlerRegistry* handlers,
                blob::BlobStore* blobs, HandlerAccess access, base::Clock* clock,
                SlowItems* slow_items = nullptr, telemetry::Registry* metrics = nullptr);

  absl::StatusOr<std::shared_ptr<const Revision>> Find(const std::string& revision) override
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Entry {
    absl::StatusOr<std::shared_ptr<const Revision>> found;
    absl::Duration made;
  };

  absl::StatusOr<std::shared_ptr<const Revision>> Make(const std::string& revision) const
      ABSL_LOCKS_EXCLUDED(mu_);

  job::JobRegistry* const jobs_;                    // not owned
  const handler::HandlerRegistry* const handlers_;  // not owned
  blob::BlobStore* const blobs_;                    // not owned
  const HandlerAccess access_;
  base::Clock* const clock_;            // not owned
  SlowItems* const slow_items_;         // not owned; null: no warning is given
  telemetry::Registry* const metrics_;  // not owned; null: nothing is measured

  base::Mutex mu_;
  base::LruMap<std::string, Entry> entries_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::processor
