#include "services/queue-gateway/operations/operations.h"
#include "services/queue-gateway/protocol/reply.h"
#include "services/queue-gateway/protocol/xml_writer.h"

namespace muster::queue_gateway::operations {

// Both locations are this server: the secondary one is never behind.
Outcome GetServiceStats(const Call& call, const Stores& stores) {
  if (!call.resource.is_secondary) {
    return protocol::InvalidParameter("comp", "stats",
                                      "Only the secondary location has statistics.");
  }
  protocol::XmlWriter xml;
  xml.Open("StorageServiceStats").Open("GeoReplication").Leaf("Status", "live");
  xml.Leaf("LastSyncTime", protocol::HttpDate(stores.clock->Now())).Close().Close();
  return protocol::Xml(200, std::move(xml).Finish());
}

}  // namespace muster::queue_gateway::operations
