// SPDX-License-Identifier: Apache-2.0

// How the jobs of a mesh lie in a sync store: keys, records and their forms. JobRegistry and
// DefinitionStore read and write them.
//
//   jobs/directory                v1::JobDirectory   which jobs there are, and what defines each
//   jobs/deleted                  v1::DeletedJobs    deleted jobs of which something may be left
//   jobs/replaced                 v1::DeletedJobs    replaced jobs, likewise
//   jobs/history/<name>           v1::JobHistory     what has defined the job
//   jobs/revisions/<revision>     v1::JobRecord      what defined this revision last
//   jobs/texts/<sha-256>/<n>      the nth piece of a definition, from 0, kPieceBytes each
//
// A text never changes: its key is the hash of all of it. It names its job, and so does what a
// revision is the fingerprint of: two jobs share neither. Batches of replaced or deleted jobs find
// theirs until these are removed. To change a form, add proto fields; never reuse a number. An
// older muster that replaces a job keeps the fields that it does not know: their meaning must not
// depend on the known ones.
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
#include "muster/sync/optimistic_sync_store.h"

namespace muster::job {

// A definition is longer than a record of the sync store may be (sync/optimistic_sync_store.h), so
// it is stored in pieces.
inline constexpr size_t kPieceBytes = size_t{48} << 10;

// Deleted jobs of which something may be left, or replaced ones: with at most 144 bytes for each,
// they fit into a record.
inline constexpr size_t kMaxDeleted = 400;

// Definitions of one job that are kept: with at most 113 bytes for each, they fit into a record. Of
// a job that has more, the earliest are never removed.
inline constexpr size_t kMaxDefinitions = 500;

// Jobs change by hand or by a deployment: a caller that loses so many races in a row gets an error
// instead of one more try.
inline constexpr int kMaxRaces = 20;

inline constexpr absl::string_view kDirectoryKey = "jobs/directory";
inline constexpr absl::string_view kDeletedKey = "jobs/deleted";
inline constexpr absl::string_view kReplacedKey = "jobs/replaced";

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
  // As v1::JobDirectory.
  uint64_t removals = 0;
  std::optional<absl::Time> removed_until = {};
  std::optional<absl::Time> began = {};
};

// A job that was deleted, or replaced, and when that was.
struct DeletedJob {
  std::string name;
  absl::Time deleted;

  friend bool operator==(const DeletedJob&, const DeletedJob&) = default;
};

std::string RevisionKey(absl::string_view revision);
std::string PieceKey(absl::string_view text_hash, size_t piece);
std::string HistoryKey(absl::string_view name);

std::string EncodeDirectory(const JobDirectory& directory);
std::string EncodeRecord(const JobRecord& record);
std::string EncodeHistory(const std::vector<JobRecord>& definitions);
std::string EncodeDeleted(const std::vector<DeletedJob>& jobs);

// DataLoss naming `key`, under which `data` lies. No directory is an empty one.
absl::StatusOr<JobDirectory> DecodeDirectory(absl::string_view data);
absl::StatusOr<JobRecord> DecodeRecord(absl::string_view data, absl::string_view key);
absl::StatusOr<std::vector<JobRecord>> DecodeHistory(absl::string_view data, absl::string_view key);
absl::StatusOr<std::vector<DeletedJob>> DecodeDeleted(absl::string_view data,
                                                      absl::string_view key);

// What is to be written in place of what is `there`; nullopt: that stays.
using Rewriting =
    absl::FunctionRef<absl::StatusOr<std::optional<std::string>>(const sync::VersionedData& there)>;

// Writes the record anew as `rewriting` says, and asks it again whenever another writer was first.
// Unavailable: others were, kMaxRaces times in a row. Other errors are those of `rewriting` and of
// `store`, which is not owned.
absl::Status Rewrite(sync::OptimisticSyncStore* store, absl::string_view key, Rewriting rewriting);

}  // namespace muster::job
