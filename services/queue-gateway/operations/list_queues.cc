// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "muster/queue/limits.h"
#include "services/queue-gateway/operations/names.h"
#include "services/queue-gateway/operations/operations.h"
#include "services/queue-gateway/protocol/parameters.h"
#include "services/queue-gateway/protocol/reply.h"
#include "services/queue-gateway/protocol/xml_writer.h"

namespace muster::queue_gateway::operations {
namespace {

using protocol::ErrorCode;

struct ListRequest {
  queue::ListQueuesRequest queues;
  std::string marker;
  std::optional<int64_t> max_results;
  bool with_metadata = false;
};

// A marker names the last queue of the page before: "/ACCOUNT/QUEUE".
std::string MarkerOf(const queue::QueueId& queue) { return absl::StrCat("/", queue.ToString()); }

protocol::OrError<std::string> QueueOfMarker(absl::string_view marker, absl::string_view account) {
  if (marker.empty()) return std::string();
  if (!absl::ConsumePrefix(&marker, absl::StrCat("/", account, "/")) ||
      CheckQueueName(marker).has_value()) {
    return ErrorCode::kInvalidMarker;
  }
  return std::string(marker);
}

protocol::OrError<ListRequest> ReadList(const Call& call) {
  protocol::Parameters parameters(call.target);
  ListRequest request;
  request.queues.account = call.resource.account;
  request.queues.prefix = parameters.Text("prefix");
  request.marker = parameters.Text("marker");
  request.max_results = parameters.Integer("maxresults", 1, INT32_MAX);
  // More than a page holds is no error: the reply has a marker.
  request.queues.max_results = static_cast<int>(std::min<int64_t>(
      request.max_results.value_or(queue::kMaxListQueues), queue::kMaxListQueues));
  for (const absl::string_view part :
       absl::StrSplit(parameters.Text("include"), ',', absl::SkipEmpty())) {
    if (part != "metadata") {
      parameters.Fail(protocol::InvalidParameter("include", part, "It is metadata."));
    }
    request.with_metadata = true;
  }
  if (parameters.error().has_value()) return *parameters.error();
  protocol::OrError<std::string> after = QueueOfMarker(request.marker, call.resource.account);
  if (!after.ok()) return after.error();
  request.queues.after = *std::move(after);
  return request;
}

std::string EndpointOf(const Call& call) {
  absl::string_view host = call.target.host;
  if (host.empty()) host = http::HeaderOf(call.http.headers, "host").value_or("");
  const std::string origin = absl::StrCat(call.http.is_https ? "https://" : "http://", host, "/");
  if (call.resource.is_host_style) return origin;
  return absl::StrCat(origin, call.resource.account,
                      call.resource.is_secondary ? "-secondary" : "");
}

void Write(const queue::QueueInfo& queue, bool with_metadata, protocol::XmlWriter* xml) {
  xml->Open("Queue").Leaf("Name", queue.id.name);
  if (with_metadata) {
    xml->Open("Metadata");
    for (const auto& [name, value] : queue.metadata) xml->Leaf(name, value);
    xml->Close();
  }
  xml->Close();
}

}  // namespace

Outcome ListQueues(const Call& call, const Stores& stores) {
  const protocol::OrError<ListRequest> request = ReadList(call);
  if (!request.ok()) return request.error();
  const auto queues = stores.queues->ListQueues(request->queues);
  if (!queues.ok()) return protocol::FromStore(queues.status());
  std::string next_marker;
  if (queues->size() == static_cast<size_t>(request->queues.max_results)) {
    queue::ListQueuesRequest more = request->queues;
    more.after = queues->back().id.name;
    more.max_results = 1;
    const auto rest = stores.queues->ListQueues(more);
    if (!rest.ok()) return protocol::FromStore(rest.status());
    if (!rest->empty()) next_marker = MarkerOf(queues->back().id);
  }

  protocol::XmlWriter xml;
  xml.Open("EnumerationResults", {{"ServiceEndpoint", EndpointOf(call)}});
  xml.Leaf("Prefix", request->queues.prefix);
  if (!request->marker.empty()) xml.Leaf("Marker", request->marker);
  if (request->max_results.has_value()) {
    xml.Leaf("MaxResults", absl::StrCat(*request->max_results));
  }
  xml.Open("Queues");
  for (const queue::QueueInfo& queue : *queues) Write(queue, request->with_metadata, &xml);
  xml.Close().Leaf("NextMarker", next_marker).Close();
  return protocol::Xml(200, std::move(xml).Finish());
}

}  // namespace muster::queue_gateway::operations
