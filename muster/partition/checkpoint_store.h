// SPDX-License-Identifier: Apache-2.0

// CheckpointStore: how far the work on each partition of a group came. A checkpoint is
// written under the epoch of its owner, and an earlier owner's write is refused: it cannot move the
// checkpoint back.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::partition {

struct Checkpoint {
  int64_t offset = 0;    // behind the last message that is done with
  int64_t sequence = 0;  // of that message
  int64_t replays = 0;   // how often Replay has moved it
  // Of what the offset is in, such as a stream, which has another once it is made anew. 0: unknown.
  uint64_t incarnation = 0;

  bool operator==(const Checkpoint&) const = default;
};

// Thread-safe. Each call takes two requests to the store, and at most kMaxAttempts times as many
// where others write at the same time. Errors of the store are passed on; the outcome of a write
// that failed is read back, so OK means written.
class CheckpointStore {
 public:
  static constexpr int kMaxAttempts = 4;

  // `store` is not owned. `group` as in MemberOptions.
  CheckpointStore(sync::OptimisticSyncStore* store, absl::string_view group);

  // What is stored, without a claim to it; nullopt: no work on the partition has begun. One
  // request.
  absl::StatusOr<std::optional<Checkpoint>> Load(int partition);

  // Raises the fence: from now on, writes under a lower epoch are refused. Returns where to go on.
  // FailedPrecondition: a later owner has begun.
  absl::StatusOr<Checkpoint> Begin(int partition, int64_t epoch);

  // FailedPrecondition: a later owner has begun; stop. InvalidArgument: `checkpoint` lies before
  // the stored one. Aborted: a replay that `checkpoint` does not know of has moved the stored one;
  // go on there, as Read says.
  absl::Status Save(int partition, int64_t epoch, const Checkpoint& checkpoint);

  // Moves the checkpoint, also back: what lies behind it is worked on again. FailedPrecondition and
  // Aborted as Save.
  absl::Status Rewind(int partition, int64_t epoch, const Checkpoint& checkpoint);

  // For others than the owner. Read returns what is stored. Replay moves the checkpoint to an
  // offset and a sequence in an incarnation, under any owner: the owner's later Saves are Aborted
  // until it has read the checkpoint again.
  absl::StatusOr<Checkpoint> Read(int partition);
  absl::Status Replay(int partition, int64_t offset, int64_t sequence, uint64_t incarnation = 0);

 private:
  // Changes what is stored; an error refuses the write.
  using Change = std::function<absl::Status(Checkpoint*)>;

  // `epoch` of kAnyEpoch leaves the fence as it is.
  absl::StatusOr<Checkpoint> Update(int partition, int64_t epoch, const Change& change);
  // False: another writer was first.
  absl::StatusOr<bool> TryUpdate(const std::string& key, int64_t epoch, const Change& change,
                                 Checkpoint* stored);

  sync::OptimisticSyncStore* const store_;  // not owned
  const std::string group_;
};

}  // namespace muster::partition
