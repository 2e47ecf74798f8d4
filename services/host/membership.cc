// SPDX-License-Identifier: Apache-2.0
#include "services/host/membership.h"

#include <algorithm>
#include <utility>

#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/telemetry/catalogue.h"

namespace muster::host {

absl::StatusOr<std::unique_ptr<Membership>> Membership::Join(
    v1::Role role, const std::string& instance, const Stores& stores, base::Clock* clock,
    bus::HeartbeatSender::Complete complete) {
  bus::HeartbeatBus* const bus = stores.heartbeats;
  std::unique_ptr<Membership> joined(new Membership(bus, clock));
  v1::InstanceInfo self;
  self.set_role(role);
  self.set_instance(instance);
  self.set_address(stores.address);
  self.set_version(MUSTER_VERSION);
  *self.mutable_started() = base::ToProto(clock->Now());
  bus::Roster* const roster = &joined->roster_;
  joined->sender_ =
      std::make_unique<bus::HeartbeatSender>(self, std::move(complete), bus, roster, clock);
  const auto on_heartbeat = [roster, sender = joined->sender_.get(),
                             instance](const v1::Heartbeat& heartbeat) {
    roster->OnHeartbeat(heartbeat);
    if (heartbeat.sequence() == 1 && heartbeat.instance().instance() != instance) sender->Greet();
  };
  MUSTER_ASSIGN_OR_RETURN(joined->subscription_, bus->Subscribe(on_heartbeat));
  joined->sender_->Start();
  // A scrape shows their types also where nothing watches.
  telemetry::FamilyOf(stores.metrics, telemetry::kDeadHolders.entry());
  telemetry::FamilyOf(stores.metrics, telemetry::kDeadHolderMessages.entry());
  if (stores.queues != nullptr && stores.queues->traits().releases_holders) {
    joined->watch_ = std::make_unique<HolderWatch>(instance, roster, stores.queues, stores.bus,
                                                   clock, stores.metrics);
    joined->watch_->Start();
  }
  return joined;
}

Membership::~Membership() = default;

std::vector<std::string> Membership::AddressesOf(v1::Role role) {
  std::vector<bus::RosterEntry> entries = roster_.List(role);
  std::erase_if(entries, [](const bus::RosterEntry& entry) {
    return entry.leaving || entry.heartbeat.has_controller_standby() ||
           entry.heartbeat.instance().address().empty();
  });
  std::stable_sort(
      entries.begin(), entries.end(),
      [](const bus::RosterEntry& a, const bus::RosterEntry& b) { return a.heard > b.heard; });
  std::vector<std::string> addresses;
  for (const bus::RosterEntry& entry : entries) {
    const std::string& address = entry.heartbeat.instance().address();
    // A restarted instance at the same address counts once.
    if (std::find(addresses.begin(), addresses.end(), address) == addresses.end()) {
      addresses.push_back(address);
    }
  }
  return addresses;
}

}  // namespace muster::host
