#include "services/host/membership.h"

#include <algorithm>
#include <utility>

#include "muster/base/status_macros.h"
#include "muster/proto_time/proto_time.h"

namespace muster::host {

absl::StatusOr<std::unique_ptr<Membership>> Membership::Join(
    heartbeat::HeartbeatBus* bus, v1::InstanceInfo self, mesh::HeartbeatSender::Complete complete,
    base::Clock* clock) {
  std::unique_ptr<Membership> joined(new Membership(bus, clock));
  self.set_version(MUSTER_VERSION);
  *self.mutable_started() = proto_time::ToProto(clock->Now());
  mesh::Roster* const roster = &joined->roster_;
  joined->sender_ =
      std::make_unique<mesh::HeartbeatSender>(self, std::move(complete), bus, roster, clock);
  const auto on_heartbeat = [roster, sender = joined->sender_.get(),
                             own = self.instance()](const v1::Heartbeat& heartbeat) {
    roster->OnHeartbeat(heartbeat);
    if (heartbeat.sequence() == 1 && heartbeat.instance().instance() != own) sender->Greet();
  };
  MUSTER_ASSIGN_OR_RETURN(joined->subscription_, bus->Subscribe(on_heartbeat));
  joined->sender_->Start();
  return joined;
}

Membership::~Membership() = default;

std::vector<std::string> Membership::AddressesOf(v1::Role role) {
  std::vector<mesh::RosterEntry> entries = roster_.List(role);
  std::erase_if(entries, [](const mesh::RosterEntry& entry) {
    return entry.leaving || entry.heartbeat.instance().address().empty();
  });
  std::stable_sort(
      entries.begin(), entries.end(),
      [](const mesh::RosterEntry& a, const mesh::RosterEntry& b) { return a.heard > b.heard; });
  std::vector<std::string> addresses;
  for (const mesh::RosterEntry& entry : entries) {
    const std::string& address = entry.heartbeat.instance().address();
    // An instance that was started again at the same address is there once.
    if (std::find(addresses.begin(), addresses.end(), address) == addresses.end()) {
      addresses.push_back(address);
    }
  }
  return addresses;
}

}  // namespace muster::host
