// SPDX-License-Identifier: Apache-2.0

// JobRegistry: the definitions of the jobs of a mesh, in a sync store (job_records.h).
//
// Apply writes the history, then the text, then the revision, then, by compare-and-set, the
// directory: the job changes with this last write, for all processes at once. A process that dies
// before it leaves texts that no directory names; the history names them.
//
// What removes and what applies or restores may do so at a time:
//
//   removes   reads the versions V of what it is to delete; asks whether a batch needs it; makes
//             the directory's `removals` grow if the job is still as it was; deletes what still has
//             a version of V, the history last
//   applies   reads the directory; writes history, text and revision anew, even where they are
//             there, so that their versions grow; writes the directory if it is as it was read
//
// If the directory was read before `removals` grew, the last write fails, and all is written once
// more; if it was read after that, everything it wrote is younger than V. So no directory ever
// names a text that is gone, whenever either of them dies or is held up. An older muster writes
// nothing anew: nothing is removed while an initiator is known that is older
// (services/initiator/retention/deleted_jobs.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/job/definition_cache.h"
#include "muster/job/definition_store.h"
#include "muster/job/job.h"
#include "muster/job/job_records.h"
#include "muster/job/limits.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::job {

// All jobs are in one record, so that a change of them is one write. With at most 113 bytes for
// each, these fit.
inline constexpr size_t kMaxJobs = 500;
// Of all definitions together: List answers them at once.
inline constexpr uint64_t kMaxTotalBytes = uint64_t{64} << 20;
static_assert(kMaxTotalBytes > kMaxJobFileBytes);

struct JobEntry {
  std::string name;
  std::string definition;  // the job file; sound when it was applied
  std::string revision;
  absl::Time updated;

  friend bool operator==(const JobEntry&, const JobEntry&) = default;
};

// A job without its definition.
struct JobSummary {
  std::string name;
  std::string revision;
  absl::Time updated;
};

// What became of an Apply.
struct Applied {
  JobEntry entry;
  JobDefinition job;     // of entry.definition
  bool changed = false;  // anything at all
  bool revised = false;  // results are decided otherwise than before; true for a new job
};

// Thread-safe; any number of registries, in any number of processes, may share the records.
//
// Beside the statuses named below, every method may return the store's, such as Unavailable, and
// DataLoss naming an unreadable record. After an error of the store the outcome of a change is
// unknown; repeating the call is right.
class JobRegistry {
 public:
  // Neither is owned.
  JobRegistry(sync::OptimisticSyncStore* store, base::Clock* clock);

  // Creates the job that `definition` defines, or replaces it. The same definition again changes
  // nothing, and `expected_revision` is then not compared, so that a call can be repeated when its
  // answer was lost.
  //
  // InvalidArgument: its mistakes, as ParseJob lists them without a file. Aborted with the reason
  // REVISION_CHANGED (rpc/status.h): `expected_revision` is given, and the job is at another; empty
  // means that there is no such job. ResourceExhausted: there are kMaxJobs jobs, or their
  // definitions are too long together. Unavailable: others change jobs all the time.
  absl::StatusOr<Applied> Apply(absl::string_view definition,
                                const std::optional<std::string>& expected_revision);

  // In order of name; all as they were at one moment.
  absl::StatusOr<std::vector<JobEntry>> List();
  absl::StatusOr<std::vector<JobSummary>> Summaries();

  // NotFound: no such job.
  absl::StatusOr<JobEntry> Get(absl::string_view name);

  // As Get, parsed. The registry keeps the last definitions in memory, so that it reads only the
  // directory for a job that has not changed. NotFound: no such job. InvalidArgument as Apply:
  // another release accepted the text.
  absl::StatusOr<JobDefinition> GetDefinition(absl::string_view name);

  // The job as this registry read or applied it last, without a look at the store; nullopt: it has
  // not, or too long ago. Another registry may have replaced or deleted the job since: before the
  // caller acknowledges what it did by this definition, IsCurrent must say that it still holds.
  std::optional<JobDefinition> Recall(absl::string_view name) { return cache_.FindCurrent(name); }
  // Whether the job is defined by the text of `job` now. One read of the store.
  absl::StatusOr<bool> IsCurrent(const JobDefinition& job);

  // As ParseJob, but remembers the result like GetDefinition.
  absl::StatusOr<JobDefinition> Parse(absl::string_view text, absl::string_view name);

  // The definition of `revision`, even if the job was replaced or deleted since. If several
  // definitions decide the same results, it is one that was applied last or nearly so, at
  // `updated`. NotFound: no such revision was applied, or it was removed.
  absl::StatusOr<JobEntry> FindRevision(absl::string_view revision);

  // Puts back what the store has lost: writes `entry.revision` again if it is not found, and makes
  // it the job's current one, unless the stored job is newer than `entry.updated`, the time of a
  // batch. True: it was not found. A deleted job stays deleted: one that is not in the directory
  // was deleted, not lost, if the directory is older than the batch, and definitions of deleted
  // jobs were removed since the batch. Its revision is written again all the same, and the job is
  // among Deleted() once more.
  absl::StatusOr<bool> Restore(const JobEntry& entry);

  // Deletes the job; its revisions can still be found, until RemoveDefinitions. NotFound: no such
  // job.
  absl::Status Delete(absl::string_view name);

  // Whether a batch may still need definitions of a job beside those of `current`, its revision
  // now; empty: the job is deleted.
  using IsNeeded = absl::FunctionRef<absl::StatusOr<bool>(const std::string& current)>;

  // Removes what has defined the job `name` but does not define it now: revisions and texts; of a
  // deleted job all, with its history. An error of `is_needed` is the answer. True: nothing is
  // left. False: it is needed, the job has changed meanwhile, or others write or remove the same.
  // After an error some may be gone; repeating the call is right.
  absl::StatusOr<bool> RemoveDefinitions(absl::string_view name, IsNeeded is_needed);

  // Whether there is a job of this name. Reads no definition.
  absl::StatusOr<bool> Has(absl::string_view name);

  // The jobs that were deleted and not forgotten, the earliest first; some may be there again. Of
  // more than kMaxDeleted the earliest are forgotten.
  absl::StatusOr<std::vector<DeletedJob>> Deleted();
  // For who has removed all that the deleted job has left. Changes nothing if it was deleted once
  // more since.
  absl::Status ForgetDeleted(const DeletedJob& job);

  // The same of jobs that were given another definition. Those that are forgotten because they are
  // too many are there again when they are replaced once more, or are deleted.
  absl::StatusOr<std::vector<DeletedJob>> Replaced();
  absl::Status ForgetReplaced(const DeletedJob& job);

 private:
  absl::StatusOr<JobDirectory> ReadDirectory();
  // Applies `change` to the directory, again whenever another process was quicker. `change` returns
  // whether it changed anything.
  absl::Status ChangeDirectory(absl::FunctionRef<absl::StatusOr<bool>(JobDirectory*)> change);
  // Of kDeletedKey or kReplacedKey.
  absl::StatusOr<std::vector<DeletedJob>> ListLeft(absl::string_view key);
  // Puts the job behind all others there.
  absl::Status NoteLeft(absl::string_view key, absl::string_view name);
  absl::Status ForgetLeft(absl::string_view key, const DeletedJob& job);
  // Applies `change` to the jobs there, likewise.
  absl::Status ChangeLeft(absl::string_view key,
                          absl::FunctionRef<bool(std::vector<DeletedJob>*)> change);
  // Makes all changes of the directory fail that were begun before, if the job still has this text;
  // empty: if there is none. Returns whether that is so.
  absl::StatusOr<bool> Fence(absl::string_view name, const std::string& text_hash);
  absl::StatusOr<JobEntry> ReadEntry(const JobRecord& record);

  sync::OptimisticSyncStore* const store_;
  base::Clock* const clock_;
  DefinitionStore definitions_;
  DefinitionCache cache_;
};

}  // namespace muster::job
