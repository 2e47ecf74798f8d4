// JobRegistry: the jobs of a mesh in a sync store, their layout there, and its bounds, each with
// its reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/job/job.h"
#include "muster/job/limits.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::job {

// A definition is longer than a record of the sync store may be (sync/optimistic_sync_store.h), so
// it is stored in pieces.
inline constexpr size_t kPieceBytes = size_t{48} << 10;

// All jobs are in one record, so that a change of them is one write. With at most 113 bytes for
// each, these fit.
inline constexpr size_t kMaxJobs = 500;
// Of all definitions together: List answers them at once.
inline constexpr uint64_t kMaxTotalBytes = uint64_t{64} << 20;
static_assert(kMaxTotalBytes > kMaxJobFileBytes);

// Definitions that a registry keeps in memory. A process needs few jobs again and again, and a text
// may be long.
inline constexpr size_t kMaxRemembered = 32;

// Deleted jobs of whose queues something may be left: with at most 144 bytes for each, they fit
// into a record.
inline constexpr size_t kMaxDeleted = 400;

// Jobs change by hand or by a deployment: a caller that loses so many races in a row gets an error
// instead of one more try.
inline constexpr int kMaxRaces = 20;

// How the jobs of a mesh lie in a sync store.
//
//   jobs/directory                v1::JobDirectory   which jobs there are, and what defines each
//   jobs/deleted                  v1::DeletedJobs    jobs of whose queues something may be left
//   jobs/revisions/<revision>     v1::JobRecord      what defined this revision last
//   jobs/texts/<sha-256>/<n>      the nth piece of a definition, from 0, kPieceBytes each
//
// A text never changes: its key is the hash of all of it. Texts and revisions are never deleted,
// and batches of replaced or deleted jobs find theirs. To change a form, add proto fields; never
// reuse a number. An older muster that replaces a job keeps the fields that it does not know: their
// meaning must not depend on the known ones.

inline constexpr absl::string_view kDirectoryKey = "jobs/directory";
inline constexpr absl::string_view kDeletedKey = "jobs/deleted";

// What a job, or a revision of one, is defined by.
struct JobRecord {
  std::string name;
  std::string revision;
  std::string text_hash;  // 64 hexadecimal digits
  size_t text_bytes = 0;
  absl::Time updated;
  std::string unknown = {};  // fields that a newer muster has written, as they stand

  friend bool operator==(const JobRecord&, const JobRecord&) = default;
};

struct JobDirectory {
  std::vector<JobRecord> jobs;  // in order of name
  std::string unknown = {};     // likewise
};

std::string RevisionKey(absl::string_view revision);
std::string PieceKey(absl::string_view text_hash, size_t piece);

std::string EncodeDirectory(const JobDirectory& directory);
std::string EncodeRecord(const JobRecord& record);

// DataLoss naming `key`, under which `data` lies. No directory is an empty one.
absl::StatusOr<JobDirectory> DecodeDirectory(absl::string_view data);
absl::StatusOr<JobRecord> DecodeRecord(absl::string_view data, absl::string_view key);

// JobRegistry: the definitions of the jobs of a mesh, in a sync store.
//
// Apply writes the text, then the revision, then, by compare-and-set, the directory: the job
// changes with this last write, for all processes at once. A process that dies before it leaves
// texts that no directory names; the next Apply of the same definition finds them there.

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

struct DeletedJob {
  std::string name;
  absl::Time deleted;

  friend bool operator==(const DeletedJob&, const DeletedJob&) = default;
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
  absl::StatusOr<JobDefinition> GetDefinition(absl::string_view name) ABSL_LOCKS_EXCLUDED(mu_);

  // The job as this registry read or applied it last, without a look at the store; nullopt: it has
  // not, or too long ago. Another registry may have replaced or deleted the job since: before the
  // caller acknowledges what it did by this definition, IsCurrent must say that it still holds.
  std::optional<JobDefinition> Recall(absl::string_view name) ABSL_LOCKS_EXCLUDED(mu_);
  // Whether the job is defined by the text of `job` now. One read of the store.
  absl::StatusOr<bool> IsCurrent(const JobDefinition& job);

  // As ParseJob, but remembers the result like GetDefinition.
  absl::StatusOr<JobDefinition> Parse(absl::string_view text, absl::string_view name)
      ABSL_LOCKS_EXCLUDED(mu_);

  // The definition of `revision`, even if the job was replaced or deleted since. If several
  // definitions decide the same results, it is one that was applied last or nearly so, at
  // `updated`. NotFound: no such revision was ever applied.
  absl::StatusOr<JobEntry> FindRevision(absl::string_view revision);

  // Puts back what the store has lost: writes `entry.revision` again if it is not found, and makes
  // it the job's current one, unless the stored job is newer than `entry.updated`. True: it was not
  // found. A deleted job stays deleted.
  absl::StatusOr<bool> Restore(const JobEntry& entry);

  // Deletes the job; its revisions can still be found. NotFound: no such job.
  absl::Status Delete(absl::string_view name);
  // Whether there is a job of this name. Reads no definition.
  absl::StatusOr<bool> Has(absl::string_view name);

  // The jobs that were deleted and not forgotten, the earliest first; some may be there again. Of
  // more than kMaxDeleted the earliest are forgotten.
  absl::StatusOr<std::vector<DeletedJob>> Deleted();
  // For who has removed all that the deleted job has left. Changes nothing if it was deleted once
  // more since.
  absl::Status ForgetDeleted(const DeletedJob& job);

 private:
  using Jobs = std::vector<JobRecord>;

  // The directory and its version.
  absl::StatusOr<std::pair<JobDirectory, uint64_t>> ReadDirectory();
  // Applies `change` to the directory, again whenever another process was quicker. `change` returns
  // whether it changed anything.
  absl::Status ChangeDirectory(absl::FunctionRef<absl::StatusOr<bool>(Jobs*)> change);
  // The same of the deleted jobs.
  absl::Status ChangeDeleted(absl::FunctionRef<bool(std::vector<DeletedJob>*)> change);
  absl::Status WriteDefinition(absl::string_view text, const JobRecord& record);
  absl::Status WriteText(absl::string_view text, absl::string_view hash);
  absl::Status WriteRevision(JobRecord record);
  absl::Status Overwrite(const std::string& key, absl::string_view data);
  absl::StatusOr<std::string> ReadText(const JobRecord& record);
  absl::StatusOr<JobEntry> ReadEntry(const JobRecord& record);
  std::optional<JobDefinition> Remembered(const std::string& text_hash) ABSL_LOCKS_EXCLUDED(mu_);
  void Remember(const std::string& text_hash, const JobDefinition& job) ABSL_LOCKS_EXCLUDED(mu_);
  // Notes what Recall answers.
  void NoteCurrent(const std::string& name, const std::string& text_hash) ABSL_LOCKS_EXCLUDED(mu_);

  sync::OptimisticSyncStore* const store_;
  base::Clock* const clock_;

  base::Mutex mu_;
  // By the hash of their text: the text under a hash never changes.
  std::map<std::string, JobDefinition> definitions_ ABSL_GUARDED_BY(mu_);
  // The text by which each job was defined when it was last read or applied here. Each is in
  // definitions_, or was dropped from there.
  std::map<std::string, std::string, std::less<>> current_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::job
