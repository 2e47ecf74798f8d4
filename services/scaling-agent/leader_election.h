// SPDX-License-Identifier: Apache-2.0

// LeaderElection: chooses the leader among several agents. They change one record of the sync store
// by compare-and-set.
//
//            free, or unchanged for its duration
//   others ───────────── Hold: token + 1 ─────────────► ours ──► Hold: beat + 1
//      ▲                                                 │
//      └─── not renewed in time, or another agent's ─────┤
//   free ◄──────────────── Release ──────────────────────┘
//
// The agents never compare their clocks. An agent takes another agent's lease for expired when it
// has itself seen the record unchanged for the lease's duration. The holder counts from before its
// write request, the others from after their read, so the holder stops before another agent begins.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/sync/optimistic_sync_store.h"
#include "services/scaling-agent/leader_record.h"
#include "services/scaling-agent/limits.h"

namespace muster::scaling_agent {

inline constexpr char kLeaderKey[] = "scaling/leader";

struct ElectionOptions {
  std::string instance;  // ours
  std::string address;   // HOST:PORT at which others reach this agent
  absl::Duration duration = kLeaseDuration;
};

// The leader's fencing token, and the moment of the clock's Monotonic() from which another agent
// may hold the lease.
struct HeldToken {
  int64_t token = 0;
  absl::Duration until = absl::InfiniteDuration();
};

// Thread-safe. Calls of Hold and Release run one after the other; each blocks as long as the store
// does.
class LeaderElection {
 public:
  // `store` and `clock` are not owned.
  LeaderElection(ElectionOptions options, sync::OptimisticSyncStore* store, base::Clock* clock);

  // One step: takes the lease if it is free or has expired, renews it if this agent holds it. Call
  // it a few times within the lease's duration. True: this agent leads. After an error it may still
  // lead; Token says so.
  absl::StatusOr<bool> Hold() ABSL_LOCKS_EXCLUDED(steps_, mu_);

  // The fencing token while this agent leads, by its own clock; nullopt: it does not lead and must
  // not act.
  std::optional<int64_t> Token() const ABSL_LOCKS_EXCLUDED(mu_);
  // The token and its expiry; each renewal extends the expiry.
  std::optional<HeldToken> Held() const ABSL_LOCKS_EXCLUDED(mu_);

  // Releases the lease, so that another agent can take it at once. OK if this agent did not hold
  // it.
  absl::Status Release() ABSL_LOCKS_EXCLUDED(steps_, mu_);

  // The leader by the last known record; it may be this agent. An empty holder: no agent leads, or
  // the leader is not known.
  LeaderRecord leader() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  bool IsOursLocked(const LeaderRecord& record) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(steps_);
  bool IsInForceLocked(const LeaderRecord& record, uint64_t version)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(steps_);
  absl::StatusOr<bool> WriteLocked(const LeaderRecord& record, uint64_t version,
                                   absl::Duration began) ABSL_LOCKS_EXCLUDED(mu_)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(steps_);
  absl::StatusOr<LeaderRecord> ReadLocked(uint64_t* version) ABSL_LOCKS_EXCLUDED(mu_)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(steps_);
  void Lead(const LeaderRecord& record, absl::Duration began) ABSL_LOCKS_EXCLUDED(mu_);
  bool Follow(const LeaderRecord& record) ABSL_LOCKS_EXCLUDED(mu_);

  const ElectionOptions options_;
  sync::OptimisticSyncStore* const store_;  // not owned
  base::Clock* const clock_;                // not owned

  base::Mutex steps_;  // held during a whole step, requests to the store included
  uint64_t seen_version_ ABSL_GUARDED_BY(steps_) = sync::kAbsent;
  absl::Duration seen_since_ ABSL_GUARDED_BY(steps_);
  int64_t highest_seen_ ABSL_GUARDED_BY(steps_) = 0;
  int64_t tried_ ABSL_GUARDED_BY(steps_) = 0;  // the token that this agent took, or tried to take

  mutable base::Mutex mu_;
  LeaderRecord leader_ ABSL_GUARDED_BY(mu_);
  int64_t token_ ABSL_GUARDED_BY(mu_) = 0;  // 0: this agent does not lead
  absl::Duration until_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::scaling_agent
