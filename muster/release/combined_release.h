// SPDX-License-Identifier: Apache-2.0

// CombinedRelease: what parked workers wait for. It subscribes to the multicast of
// releases, then reads the durable record, then waits for either. The multicast says at once when
// to read; the record alone says whether to go. So
//
//   a lost multicast, a partition, a restarted broker    cost a safety interval at most
//   a late joiner                                        goes at once: the record is released
//   a multicast that is late, comes twice or is forged   costs a read, and lets no worker go
//
// One object serves all threads of a process that wait for one name: they share its subscription,
// and one of them reads for all. It has no thread of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/base/random.h"
#include "muster/bus/trigger_bus.h"
#include "muster/release/releases.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::release {

// A thousand parked processes read the record a hundred times a second, which a store does not
// notice; and a worker waits seconds for a lost release.
inline constexpr absl::Duration kSafetyInterval = absl::Seconds(10);
// The wait after an event that the record did not confirm, or after a read that failed; doubles
// with each further one, up to the safety interval. So a flood of events costs no flood of reads.
inline constexpr absl::Duration kFirstBackoff = absl::Milliseconds(100);

struct CombinedReleaseOptions {
  absl::Duration safety_interval = kSafetyInterval;  // × U(0.8, 1.2), so that processes spread
  base::UniformSource uniform = base::SeededUniform(base::RandomSeed());
};

// Thread-safe.
class CombinedRelease {
 public:
  // Subscribes. `store`, `bus` and `clock` are not owned. InvalidArgument: no name of a release;
  // otherwise the bus's error.
  static absl::StatusOr<std::unique_ptr<CombinedRelease>> Open(
      absl::string_view name, sync::OptimisticSyncStore* store, bus::TriggerBus* bus,
      base::Clock* clock, CombinedReleaseOptions options = CombinedReleaseOptions());
  // No thread may wait any more.
  ~CombinedRelease() = default;
  CombinedRelease(const CombinedRelease&) = delete;
  CombinedRelease& operator=(const CombinedRelease&) = delete;

  // Waits until the epoch is released that was armed at the first read, or until an epoch is
  // released and not armed again; all later calls return at once. To park for the next epoch, open
  // another object. Cancelled: `stop` was requested before; a thread that reads ends its read
  // first, which takes as long as the store lets it. Errors of the store that may pass
  // (base::IsTransient) are logged and waited out; any other ends this wait and all others:
  // DataLoss, say.
  absl::StatusOr<ReleaseState> Wait(const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mu_);

  // The epoch that is waited for; 0: not read yet.
  int64_t epoch() const ABSL_LOCKS_EXCLUDED(mu_);

  const std::string& name() const { return name_; }

 private:
  CombinedRelease(absl::string_view name, sync::OptimisticSyncStore* store, base::Clock* clock,
                  CombinedReleaseOptions options);

  void OnEvent(const bus::InterRoleCommunicationEvent& event) ABSL_LOCKS_EXCLUDED(mu_);
  // When the record is to be read next.
  absl::Duration DueLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Reads the record for all waiting threads. Lets go of the lock meanwhile.
  void ReadLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteLocked(const absl::StatusOr<ReleaseState>& read, bool was_hinted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<ReleaseState> Read();

  const std::string name_;
  sync::OptimisticSyncStore* const store_;  // not owned
  base::Clock* const clock_;                // not owned
  const absl::Duration safety_interval_;

  mutable base::Mutex mu_;
  base::CondVar changed_;
  base::UniformSource uniform_ ABSL_GUARDED_BY(mu_);
  std::optional<absl::StatusOr<ReleaseState>> end_ ABSL_GUARDED_BY(mu_);  // of all waits
  int64_t epoch_ ABSL_GUARDED_BY(mu_) = 0;
  bool reading_ ABSL_GUARDED_BY(mu_) = false;
  bool hinted_ ABSL_GUARDED_BY(mu_) = true;  // an event has come, or nothing was read yet
  int in_vain_ ABSL_GUARDED_BY(mu_) = 0;     // events that the record did not confirm, in a row
  int failures_ ABSL_GUARDED_BY(mu_) = 0;    // reads that failed, in a row
  absl::Duration read_at_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  absl::Duration check_at_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();  // without an event

  std::unique_ptr<bus::TriggerBus::Subscription> subscription_;  // last: it uses all of these
};

}  // namespace muster::release
