// SPDX-License-Identifier: Apache-2.0

// The head of a request to the queue gateway as it comes from the socket: the request line and the
// headers, before anything is known of who sends it. It is read as the gateway's connection reads
// it.
#include <boost/asio/buffer.hpp>
#include <boost/beast/http.hpp>
#include <string>

#include "absl/strings/match.h"
#include "muster/queue/limits.h"
#include "services/queue-gateway/http/limits.h"
#include "services/queue-gateway/http/message.h"
#include "services/queue-gateway/operations/names.h"
#include "services/queue-gateway/protocol/route.h"
#include "services/queue-gateway/protocol/target.h"
#include "tests/fuzz/property.h"

namespace muster::fuzz {
namespace {

using namespace queue_gateway;  // what is under test
namespace wire = boost::beast::http;

bool Read(absl::string_view head, http::Request* request) {
  wire::request_parser<wire::string_body> parser;
  parser.eager(false);
  parser.header_limit(static_cast<std::uint32_t>(http::kMaxHeaderBytes));
  parser.body_limit(http::kMaxBodyBytes);
  boost::beast::error_code error;
  parser.put(boost::asio::buffer(head.data(), head.size()), error);
  if (error || !parser.is_header_done()) return false;
  request->method = std::string(parser.get().method_string());
  request->target = std::string(parser.get().target());
  for (const auto& field : parser.get()) {
    request->headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
  return true;
}

void CheckTarget(const http::Request& request) {
  const auto target = protocol::ParseTarget(request.target);
  if (!target.has_value()) return;
  Must(absl::StartsWith(target->raw_path, "/"), "a path begins with a slash");
  Must(target->parts.empty() || !target->parts.back().empty(), "a path has no empty end");
  const auto host = http::HeaderOf(request.headers, "host").value_or("");
  const auto resource = protocol::FindResource(
      host, *target, [](const std::string& name) { return name != "localhost"; });
  if (!resource.ok()) return;
  Must(resource->is_messages || resource->message_id.empty(), "an id is that of a message");
  Must(!resource->is_messages || !resource->queue.empty(), "messages are those of a queue");
  const auto operation = protocol::FindOperation(request.method, *resource, *target);
  if (!operation.ok()) return;
  const bool is_of_message = *operation == auth::Operation::kUpdateMessage ||
                             *operation == auth::Operation::kDeleteMessage;
  Must(!is_of_message || !resource->message_id.empty(), "one message is named by its id");
  Must(!protocol::IsReadOnly(*operation) || request.method == "GET" || request.method == "HEAD",
       "only GET and HEAD change nothing");
}

void CheckMetadata(const http::Request& request) {
  const auto metadata = operations::MetadataOf(request.headers);
  if (!metadata.ok()) return;
  size_t bytes = 0;
  for (const auto& [name, value] : *metadata) bytes += name.size() + value.size();
  // Values that are joined have a comma more.
  Must(bytes <= queue::kMaxMetadataBytes + request.headers.size(), "metadata are bounded");
  const auto again = operations::MetadataOf(operations::MetadataHeaders(*metadata));
  Must(!again.ok() || *again == *metadata, "metadata come back as they were set");
}

}  // namespace
}  // namespace muster::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::fuzz;
  muster::queue_gateway::http::Request request;
  if (!Read(Text(data, size), &request)) return 0;
  CheckTarget(request);
  CheckMetadata(request);
  return 0;
}
