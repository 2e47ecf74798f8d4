// SPDX-License-Identifier: Apache-2.0

// ListeningRelease: waits until a release is multicast. It lets all waiting threads go at
// once, and reads nothing; but an event that is lost, or that came before this object was opened,
// never lets it go. CombinedRelease is the one to use.
//
// The event is not checked, so only users that may release may be able to publish it: with NATS,
// the server's permissions say which users may publish on muster.release.<name>
// (bus/nats/nats_buses.h).
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/base/mutex.h"
#include "muster/bus/trigger_bus.h"

namespace muster::release {

// Thread-safe. Any number of threads share one subscription.
class ListeningRelease {
 public:
  // Listens from now on. `bus` is not owned. InvalidArgument: no name of a release; otherwise the
  // bus's error.
  static absl::StatusOr<std::unique_ptr<ListeningRelease>> Open(bus::TriggerBus* bus,
                                                                absl::string_view name);
  // No thread may wait any more.
  ~ListeningRelease() = default;
  ListeningRelease(const ListeningRelease&) = delete;
  ListeningRelease& operator=(const ListeningRelease&) = delete;

  // OK: it was released, now or before. Cancelled: `stop` was requested before.
  absl::Status Wait(const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  explicit ListeningRelease(absl::string_view name) : name_(name) {}

  void OnEvent(const bus::InterRoleCommunicationEvent& event) ABSL_LOCKS_EXCLUDED(mu_);

  const std::string name_;

  base::Mutex mu_;
  base::CondVar changed_;
  bool released_ ABSL_GUARDED_BY(mu_) = false;

  std::unique_ptr<bus::TriggerBus::Subscription> subscription_;  // last: it uses all of these
};

}  // namespace muster::release
