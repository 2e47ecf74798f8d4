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
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster::job {

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

}  // namespace muster::job
