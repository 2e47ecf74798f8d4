// SPDX-License-Identifier: Apache-2.0

// Membership: makes a role instance known to all others of its mesh, and all others to it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/clock.h"
#include "muster/bus/heartbeat_bus.h"
#include "muster/bus/heartbeat_sender.h"
#include "muster/bus/roster.h"
#include "muster/v1/heartbeat.pb.h"
#include "services/host/holder_watch.h"
#include "services/host/mesh_service.h"
#include "services/host/role.h"

namespace muster::host {

// Thread-safe.
class Membership {
 public:
  // Receives heartbeats of other instances from now on, and sends heartbeats as `instance`; sends
  // the next one soon when a new instance appears. What silent instances held is given back where
  // `stores` have queues (HolderWatch). `complete` as in HeartbeatSender; may be empty. Queues and
  // buses of `stores` and `clock` are not owned and outlive the membership.
  static absl::StatusOr<std::unique_ptr<Membership>> Join(
      v1::Role role, const std::string& instance, const Stores& stores, base::Clock* clock,
      bus::HeartbeatSender::Complete complete = nullptr);
  ~Membership();  // Leave()s
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  // Announces that the instance leaves; still receives heartbeats of others.
  void Leave() { sender_->Leave(); }

  // Something has changed that others should soon know: the next heartbeat comes at once, but at
  // most one every bus::kGreetInterval. Never blocks.
  void Announce() { sender_->Greet(); }

  bus::Roster& roster() { return roster_; }
  MeshService& service() { return service_; }

  // HOST:PORT of every live instance of `role` that is no standby, the one with the latest
  // heartbeat first.
  std::vector<std::string> AddressesOf(v1::Role role);

 private:
  Membership(bus::HeartbeatBus* bus, base::Clock* clock)
      : roster_(clock), service_(&roster_, bus) {}

  bus::Roster roster_;
  MeshService service_;
  std::unique_ptr<bus::HeartbeatSender> sender_;
  std::unique_ptr<bus::HeartbeatBus::Subscription> subscription_;
  std::unique_ptr<HolderWatch> watch_;
};

}  // namespace muster::host
