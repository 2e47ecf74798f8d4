// LeaderRecord: what the agents of a mesh know of the one that leads. A record of the sync store:
//
//   {"version":1,"holder":"agent-7f3a","address":"10.0.0.7:7703","token":4,"beat":17,
//    "duration_ms":3000}
//
// To change it: keep reading what has been written; add members with a default that means what
// their absence did; raise kLeaderRecordVersion where an old reader would go wrong.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/sync/optimistic_sync_store.h"
#include "services/scaling-agent/limits.h"

namespace muster::scaling_agent {

inline constexpr int kLeaderRecordVersion = 1;

struct LeaderRecord {
  std::string holder;   // an instance; empty: nobody leads
  std::string address;  // its HOST:PORT
  int64_t token = 0;    // grows with each change of the holder
  int64_t beat = 0;     // grows with each renewal, so that each differs
  absl::Duration duration;

  bool operator==(const LeaderRecord&) const = default;
};

std::string Encode(const LeaderRecord& record);
// DataLoss: it is none. FailedPrecondition: of a later version.
absl::StatusOr<LeaderRecord> DecodeLeaderRecord(absl::string_view text);

// LeaderElection: which of several agents leads, by a record of the sync store that changes by
// compare-and-set.
//
//            free, or unchanged for its duration
//   others ───────────── Hold: token + 1 ─────────────► ours ──► Hold: beat + 1
//      ▲                                                 │
//      └─── not renewed in time, or somebody else's ─────┤
//   free ◄──────────────── Release ──────────────────────┘
//
// No two clocks are compared: whether another's lease has run out is told by how long its record
// has not changed before our own eyes. The holder counts from before it asked to write, the others
// from after they read, so it stops before they begin.

inline constexpr char kLeaderKey[] = "scaling/leader";

struct ElectionOptions {
  std::string instance;  // ours
  std::string address;   // HOST:PORT by which others reach us
  absl::Duration duration = kLeaseDuration;
};

// The fencing token of who leads, and the moment of the clock's Monotonic() from which it may be
// another's.
struct HeldToken {
  int64_t token = 0;
  absl::Duration until = absl::InfiniteDuration();
};

// Thread-safe; calls of Hold and Release go one after the other, as long as the store takes.
class LeaderElection {
 public:
  // `store` and `clock` are not owned.
  LeaderElection(ElectionOptions options, sync::OptimisticSyncStore* store, base::Clock* clock);

  // One step: takes the lease if it is free or has run out, renews it if it is ours. Call it a few
  // times within its duration. True: we lead. After an error we may still lead, as Token says.
  absl::StatusOr<bool> Hold();

  // The fencing token while we lead, by our own clock; nullopt: we do not, and must not act.
  std::optional<int64_t> Token() const;
  // The same, and until when: each renewal puts that off.
  std::optional<HeldToken> Held() const;

  // Gives the lease up, so that another can take it at once. OK when it was not ours.
  absl::Status Release();

  // Who leads, as the record said last; ourselves, too. An empty holder: nobody, or not known.
  LeaderRecord leader() const;

 private:
  bool IsOursLocked(const LeaderRecord& record) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(steps_);
  bool IsInForceLocked(const LeaderRecord& record, uint64_t version)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(steps_);
  absl::StatusOr<bool> WriteLocked(const LeaderRecord& record, uint64_t version,
                                   absl::Duration began) ABSL_EXCLUSIVE_LOCKS_REQUIRED(steps_);
  absl::StatusOr<LeaderRecord> ReadLocked(uint64_t* version) ABSL_EXCLUSIVE_LOCKS_REQUIRED(steps_);
  void Lead(const LeaderRecord& record, absl::Duration began);
  bool Follow(const LeaderRecord& record);

  const ElectionOptions options_;
  sync::OptimisticSyncStore* const store_;  // not owned
  base::Clock* const clock_;                // not owned

  base::Mutex steps_;  // held for a step, its requests included
  uint64_t seen_version_ ABSL_GUARDED_BY(steps_) = sync::kAbsent;
  absl::Duration seen_since_ ABSL_GUARDED_BY(steps_);
  int64_t highest_seen_ ABSL_GUARDED_BY(steps_) = 0;
  int64_t tried_ ABSL_GUARDED_BY(steps_) = 0;  // the token that we took, or tried to take

  mutable base::Mutex mu_;
  LeaderRecord leader_ ABSL_GUARDED_BY(mu_);
  int64_t token_ ABSL_GUARDED_BY(mu_) = 0;  // 0: we do not lead
  absl::Duration until_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::scaling_agent
