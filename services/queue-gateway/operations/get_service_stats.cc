// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/match.h"
#include "services/queue-gateway/operations/operations.h"
#include "services/queue-gateway/protocol/reply.h"
#include "services/queue-gateway/protocol/xml_writer.h"

namespace muster::queue_gateway::operations {
namespace {

// What the client wants for a root: two SDKs find nothing, or fail, under the name that the service
// has given it, which one that is older needs.
absl::string_view RootFor(absl::string_view user_agent) {
  if (absl::StrContains(user_agent, "azsdk-js-storage-queue/")) return "QueueServiceStats";
  if (absl::StrContains(user_agent, "azsdk-java-azure-storage-queue")) {
    return "QueueServiceStatistics";
  }
  return "StorageServiceStats";
}

}  // namespace

// Both locations are this server: the secondary one is never behind.
Outcome GetServiceStats(const Call& call, const Stores& stores) {
  if (!call.resource.is_secondary) {
    return protocol::InvalidParameter("comp", "stats",
                                      "Only the secondary location has statistics.");
  }
  protocol::XmlWriter xml;
  xml.Open(RootFor(http::HeaderOf(call.http.headers, "user-agent").value_or("")))
      .Open("GeoReplication")
      .Leaf("Status", "live");
  xml.Leaf("LastSyncTime", protocol::HttpDate(stores.clock->Now())).Close().Close();
  return protocol::Xml(200, std::move(xml).Finish());
}

}  // namespace muster::queue_gateway::operations
