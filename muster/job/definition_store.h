// SPDX-License-Identifier: Apache-2.0

// DefinitionStore: all that has defined jobs, in a sync store: the texts, the revisions that they
// make, and the history of each job (job_records.h). Which of them define the jobs now, the
// directory alone says (job_registry.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/job/job_records.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::job {

// Thread-safe. Beside the statuses named below, every method may return the store's, and DataLoss
// naming an unreadable record. What is there, and as it is to be, is written all the same where
// `anew`: its version grows.
class DefinitionStore {
 public:
  // `store` is not owned.
  explicit DefinitionStore(sync::OptimisticSyncStore* store) : store_(store) {}

  // Adds the definitions, of one job, to its history, anew.
  absl::Status NoteHistory(const std::vector<JobRecord>& records);
  absl::Status WriteText(absl::string_view text, absl::string_view hash, bool anew);
  absl::Status WriteRevision(JobRecord record, bool anew);

  // DataLoss: a piece is missing, or the text is not the one that was applied.
  absl::StatusOr<std::string> ReadText(const JobRecord& record);
  // NotFound: no such revision was applied, or it was removed.
  absl::StatusOr<JobRecord> FindRevision(absl::string_view revision);

  // A key, and the version of it that is to go.
  struct Removal {
    std::string key;
    uint64_t version;
  };
  // What the store has of the definitions, but for what `current` needs, too; null: nothing does.
  absl::StatusOr<std::vector<Removal>> RemovalsOf(const std::vector<JobRecord>& definitions,
                                                  const JobRecord* current);

 private:
  absl::Status Overwrite(const std::string& key, absl::string_view data, bool anew);

  sync::OptimisticSyncStore* const store_;  // not owned
};

}  // namespace muster::job
