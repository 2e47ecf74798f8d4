// SPDX-License-Identifier: Apache-2.0

// Finds damage in a report's write-ahead log. SQLite ends the replay of a log at the first record
// with a wrong checksum, in silence, because a crash leaves such a record at the end. If commits
// follow it, it is damage, and what was acknowledged in them is gone.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::report::sqlite {

// Commits in the log at `path` that lie behind damage; 0 when there is none, or no log. The last
// commit alone does not count: a power cut can keep its end and lose its beginning, and nobody was
// told that it is there. What a process writes meanwhile is no damage. Errors as FileError's.
absl::StatusOr<int64_t> CommitsBehindDamage(const std::string& path);

// DataLoss: the log of `report` has lost commits like that. SQLite would go on without them, and
// say nothing.
absl::Status CheckLogOf(const std::string& report);

}  // namespace muster::report::sqlite
