// SPDX-License-Identifier: Apache-2.0

// Standby: parks a processor until a release is released (muster/release), and tells others that it
// is parked.
//
//   Begin ─► parked ─► the release is released ─► go ─► left
//              │
//              └── Stop: at once, without go
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/bus/trigger_bus.h"
#include "muster/release/combined_release.h"
#include "muster/sync/optimistic_sync_store.h"
#include "muster/telemetry/registry.h"
#include "muster/v1/heartbeat.pb.h"

namespace muster::processor {

// Thread-safe, but for Begin and Stop.
class Standby {
 public:
  // Called on the thread of the standby, one after the other.
  struct Callbacks {
    std::function<void()> go;                       // the release is released
    std::function<void()> announce;                 // AddTo has news
    std::function<void(const absl::Status&)> fail;  // it cannot wait any longer: a damaged record
  };

  // `clock` is not owned.
  Standby(std::string release, base::Clock* clock);
  ~Standby();  // Stop()s
  Standby(const Standby&) = delete;
  Standby& operator=(const Standby&) = delete;

  // Subscribes to the release, and waits for it on a thread of its own. `store` and `bus` are not
  // owned, and are used until Stop, as is `metrics`, which may be null. An error is the bus's:
  // nothing has begun.
  absl::Status Begin(sync::OptimisticSyncStore* store, bus::TriggerBus* bus, Callbacks callbacks,
                     telemetry::Registry* metrics = nullptr) ABSL_LOCKS_EXCLUDED(mu_);

  // Ends the wait, without `go`; one that runs is waited for. Stopping twice, or before Begin, is
  // fine.
  void Stop();

  // Says in a heartbeat since when the processor is parked, or when it left; nothing before Begin
  // and after Stop.
  void AddTo(v1::Heartbeat* heartbeat) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run(release::CombinedRelease* release, const Callbacks& callbacks,
           const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mu_);

  const std::string release_name_;
  base::Clock* const clock_;  // not owned
  mutable base::Mutex mu_;
  std::unique_ptr<release::CombinedRelease> release_ ABSL_GUARDED_BY(mu_);  // from Begin to Stop
  absl::Time parked_ ABSL_GUARDED_BY(mu_);
  std::optional<absl::Time> left_ ABSL_GUARDED_BY(mu_);

  std::jthread thread_;                          // uses all of these
  std::unique_ptr<telemetry::Reading> reading_;  // likewise; from Begin to Stop
};

}  // namespace muster::processor
