// LeaderLease: which of several processes acts, by a Lease of coordination.k8s.io that changes by
// compare-and-set. The number of its transitions is the fencing token: whoever holds the lease
// later has a higher one.
//
//            free, or not renewed for its duration
//   others ─────────── Hold: transitions + 1 ──────────► ours ──► Hold: renewed
//      ▲                                                  │
//      └─── not renewed in time, or somebody else's ──────┤
//   free ◄───────────────── Release ──────────────────────┘
//
// No two clocks are compared: whether another's lease has run out is told by how long it has not
// changed before our own eyes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/kubernetes/client.h"

namespace muster::kubernetes {

struct LeaseName {
  std::string name_space;
  std::string name;
};

// A Lease as it is written.
struct LeaseRecord {
  std::string holder;  // empty: it is free
  int64_t transitions = 0;
  absl::Duration duration;
  std::string renewed;
  std::string version;
};

// NotFound: nobody has ever held it.
absl::StatusOr<LeaseRecord> ReadLease(Client* client, const LeaseName& name);

struct LeaderLeaseOptions {
  LeaseName lease;
  std::string identity;  // an instance name: no other process has or had it
  // Whole seconds, from 1 to 3600. After so long without a renewal others take it.
  absl::Duration duration = absl::Seconds(4);
};

// Thread-safe; calls of Hold and Release go one after the other.
class LeaderLease {
 public:
  // `client` and `clock` are not owned.
  LeaderLease(Client* client, LeaderLeaseOptions options, base::Clock* clock);

  // One step: takes the lease if it is free or has run out, renews it if it is ours. Call it a few
  // times within its duration. True: we hold it. After an error we may still hold it, as Token
  // says.
  absl::StatusOr<bool> Hold();

  // The fencing token while we hold the lease, by our own clock; nullopt: we do not, and must not
  // act.
  std::optional<int64_t> Token() const;

  // Gives it up, so that another can take it at once. OK when it was not ours.
  absl::Status Release();

 private:
  absl::StatusOr<bool> CreateLocked(absl::Duration began) ABSL_EXCLUSIVE_LOCKS_REQUIRED(steps_);
  absl::StatusOr<bool> WriteLocked(const LeaseRecord& read, int64_t token, absl::Duration began)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(steps_);
  // Whether `record` is another's that is still in force.
  bool IsInForceLocked(const LeaseRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(steps_);
  bool IsOurs(const LeaseRecord& record) const;
  void HeldLocked(int64_t token, absl::Duration began) ABSL_EXCLUSIVE_LOCKS_REQUIRED(steps_);
  bool Lost();

  Client* const client_;  // not owned
  const LeaderLeaseOptions options_;
  base::Clock* const clock_;  // not owned

  base::Mutex steps_;  // held for a step, its requests included
  std::string seen_version_ ABSL_GUARDED_BY(steps_);
  absl::Duration seen_since_ ABSL_GUARDED_BY(steps_);
  int64_t highest_seen_ ABSL_GUARDED_BY(steps_) = 0;

  mutable base::Mutex mu_;
  int64_t token_ ABSL_GUARDED_BY(mu_) = 0;  // 0: none
  absl::Duration until_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::kubernetes
