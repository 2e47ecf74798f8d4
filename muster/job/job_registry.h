// JobRegistry: the definitions of the jobs that a mesh has, in a sync store.
//
// Whoever applies a job writes its text, then its revision, then, by compare-and-set, the
// directory: only with this last write does the job change, for everybody at once. A process that
// dies before leaves texts that nobody asks for, and the next one to apply the same finds them
// there.
#pragma once

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
#include "muster/job/job_records.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::job {

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
// Beside what each method says, any of them may answer as the store does, Unavailable for one, and
// DataLoss naming the record that cannot be read. After an error of the store the outcome of a
// change is unknown; to do it again is right.
class JobRegistry {
 public:
  // Neither is owned.
  JobRegistry(sync::OptimisticSyncStore* store, base::Clock* clock);

  // Makes the job that `definition` defines, or replaces it. The same definition again changes
  // nothing, whatever revision is expected, so that a call whose answer was lost can be repeated.
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

  // The same, read: what the last texts say is remembered, so that of a job that has not changed
  // only the directory is read. NotFound: no such job. InvalidArgument as Apply: its text was sound
  // to another release.
  absl::StatusOr<JobDefinition> GetDefinition(absl::string_view name);

  // What `revision` of a job is defined by, also when the job was replaced or deleted since. Of
  // several definitions that decide the same results it is one that was applied last or nearly so;
  // `updated` is when. NotFound: no such revision was ever applied.
  absl::StatusOr<JobEntry> FindRevision(absl::string_view revision);

  // Puts back what the store has lost: where `entry.revision` is not found, it is again, and it is
  // what the job is at, unless the job is there as of later than `entry.updated`. True: it was not
  // found. A job that was deleted stays so.
  absl::StatusOr<bool> Restore(const JobEntry& entry);

  // Forgets the job; its revisions are still found. NotFound: no such job.
  absl::Status Delete(absl::string_view name);

 private:
  using Jobs = std::vector<JobRecord>;

  // And its version.
  absl::StatusOr<std::pair<JobDirectory, uint64_t>> ReadDirectory();
  // Lets `change` change the directory, again and again until nobody else was quicker. It answers
  // whether it changed anything.
  absl::Status ChangeDirectory(absl::FunctionRef<absl::StatusOr<bool>(Jobs*)> change);
  absl::Status WriteDefinition(absl::string_view text, const JobRecord& record);
  absl::Status WriteText(absl::string_view text, absl::string_view hash);
  absl::Status WriteRevision(JobRecord record);
  absl::Status Overwrite(const std::string& key, absl::string_view data);
  absl::StatusOr<std::string> ReadText(const JobRecord& record);
  absl::StatusOr<JobEntry> ReadEntry(const JobRecord& record);
  std::optional<JobDefinition> Remembered(const std::string& text_hash);
  void Remember(const std::string& text_hash, const JobDefinition& job);

  sync::OptimisticSyncStore* const store_;
  base::Clock* const clock_;

  base::Mutex mu_;
  // By the hash of their text, which nobody can change under it.
  std::map<std::string, JobDefinition> definitions_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::job
