// The bounds of the registry of jobs, each with its reason.
#pragma once

#include <cstddef>
#include <cstdint>
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

// A definition is longer than a record of the sync seam may be (sync/limits.h), so it lies in
// pieces.
inline constexpr size_t kPieceBytes = size_t{48} << 10;

// All jobs stand in one record, so that a change of them is one write. With 113 bytes for each at
// the most, these fit.
inline constexpr size_t kMaxJobs = 500;
// Of all definitions together: List answers them at once.
inline constexpr uint64_t kMaxTotalBytes = uint64_t{64} << 20;
static_assert(kMaxTotalBytes > kMaxJobFileBytes);

// Definitions that a registry remembers. A process has few jobs that it is asked for again and
// again, and a text may be long.
inline constexpr size_t kMaxRemembered = 32;

// Jobs change by hand or by a deployment: whoever loses so many races in a row is better told.
inline constexpr int kMaxRaces = 20;

// How the jobs of a mesh lie in a sync store.
//
//   jobs/directory                v1::JobDirectory   which jobs there are, and what defines each
//   jobs/revisions/<revision>     v1::JobRecord      what defined this revision last
//   jobs/texts/<sha-256>/<n>      the nth piece of a definition, from 0, kPieceBytes each
//
// A text never changes: its key is the hash of all of it. The sync seam knows no deletion, so texts
// and revisions stay, and batches of jobs that were replaced or deleted since find theirs. To
// change a form, add proto fields; never reuse a number. An older muster that replaces a job keeps
// the fields that it does not know: what they say must not depend on those that it does.

inline constexpr absl::string_view kDirectoryKey = "jobs/directory";

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

// JobRegistry: the definitions of the jobs that a mesh has, in a sync store.
//
// Whoever applies a job writes its text, then its revision, then, by compare-and-set, the
// directory: only with this last write does the job change, for everybody at once. A process that
// dies before leaves texts that nobody asks for, and the next one to apply the same finds them
// there.

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
