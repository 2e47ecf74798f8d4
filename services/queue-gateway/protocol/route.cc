// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/protocol/route.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace muster::queue_gateway::protocol {
namespace {

using auth::Operation;

constexpr absl::string_view kSecondary = "-secondary";

bool IsIpv4(absl::string_view host) {
  const std::vector<absl::string_view> bytes = absl::StrSplit(host, '.');
  if (bytes.size() != 4) return false;
  for (const absl::string_view byte : bytes) {
    int value = 0;
    if (!absl::SimpleAtoi(byte, &value) || value < 0 || value > 255) return false;
  }
  return true;
}

// The first label of a host with several; "" if it has one, or is an address.
absl::string_view FirstLabel(absl::string_view host) {
  if (absl::StartsWith(host, "[")) return "";
  host = host.substr(0, host.find(':'));
  const size_t dot = host.find('.');
  if (dot == absl::string_view::npos || dot + 1 == host.size() || IsIpv4(host)) return "";
  return host.substr(0, dot);
}

void SetAccount(absl::string_view name, Resource* resource) {
  resource->is_secondary = absl::ConsumeSuffix(&name, kSecondary);
  resource->account = absl::AsciiStrToLower(name);
}

Error UnknownParameter(const Target& target, absl::string_view name) {
  return InvalidParameter(name, target.Parameter(name).value_or(""), "It is not known here.");
}

bool IsService(const Target& target) {
  return absl::EqualsIgnoreCase(target.Parameter("restype").value_or(""), "service");
}

// Whether the operation is one of the account, by the query alone. The rest of the path does not
// count: an SDK that is given a secondary address with a path appends the primary one to it.
bool IsOfAccount(const Target& target) {
  return IsService(target) || target.Parameter("comp").value_or("") == "list";
}

OrError<Operation> OfAccount(absl::string_view method, const Target& target) {
  const absl::string_view comp = target.Parameter("comp").value_or("");
  const bool is_service = IsService(target);
  if (!is_service && comp == "list") {
    if (method == "GET") return Operation::kListQueues;
    return ErrorCode::kUnsupportedHttpVerb;
  }
  if (is_service && comp == "properties") {
    if (method == "GET") return Operation::kGetServiceProperties;
    if (method == "PUT") return Operation::kSetServiceProperties;
    return ErrorCode::kUnsupportedHttpVerb;
  }
  if (is_service && comp == "stats") {
    if (method == "GET") return Operation::kGetServiceStats;
    return ErrorCode::kUnsupportedHttpVerb;
  }
  if (is_service && comp == "userdelegationkey") {
    if (method == "POST") return Operation::kGetUserDelegationKey;
    return ErrorCode::kUnsupportedHttpVerb;
  }
  return UnknownParameter(target, "comp");
}

OrError<Operation> ForMethod(absl::string_view method, absl::string_view allowed,
                             Operation operation) {
  if (method == allowed) return operation;
  return ErrorCode::kUnsupportedHttpVerb;
}

OrError<Operation> OfQueue(absl::string_view method, const Target& target) {
  const absl::string_view comp = target.Parameter("comp").value_or("");
  const bool is_read = method == "GET" || method == "HEAD";
  if (comp == "metadata") {
    if (is_read) return Operation::kGetQueueMetadata;
    if (method == "PUT") return Operation::kSetQueueMetadata;
    return ErrorCode::kUnsupportedHttpVerb;
  }
  if (comp == "acl") {
    if (is_read) return Operation::kGetQueueAcl;
    if (method == "PUT") return Operation::kSetQueueAcl;
    return ErrorCode::kUnsupportedHttpVerb;
  }
  if (comp == "muster-stats") return ForMethod(method, "GET", Operation::kGetQueueStats);
  if (comp == "muster-poison") return ForMethod(method, "GET", Operation::kListPoison);
  if (comp == "muster-redrive") return ForMethod(method, "POST", Operation::kRedrivePoison);
  if (!comp.empty()) return UnknownParameter(target, "comp");
  if (method == "PUT") return Operation::kCreateQueue;
  if (method == "DELETE") return Operation::kDeleteQueue;
  return ErrorCode::kUnsupportedHttpVerb;
}

OrError<Operation> OfMessages(absl::string_view method, const Target& target) {
  // A slip such as a clear that was meant for the ACL must not run.
  if (!target.Parameter("comp").value_or("").empty()) return UnknownParameter(target, "comp");
  // PUT is how the dialect of 2008 puts; the operation refuses it to others.
  if (method == "POST" || method == "PUT") return Operation::kPutMessage;
  if (method == "DELETE") {
    // Of one message, whose id a program has left empty: that must not clear the queue.
    if (target.Parameter("popreceipt").has_value()) return ErrorCode::kInvalidUri;
    return Operation::kClearMessages;
  }
  if (method != "GET") return ErrorCode::kUnsupportedHttpVerb;
  const absl::string_view peek = target.Parameter("peekonly").value_or("false");
  if (absl::EqualsIgnoreCase(peek, "true")) return Operation::kPeekMessages;
  if (absl::EqualsIgnoreCase(peek, "false")) return Operation::kGetMessages;
  return InvalidParameter("peekonly", peek, "It is true or false.");
}

OrError<Operation> OfMessage(absl::string_view method, const Target& target) {
  if (!target.Parameter("comp").value_or("").empty()) return UnknownParameter(target, "comp");
  if (method == "PUT") return Operation::kUpdateMessage;
  if (method == "DELETE") return Operation::kDeleteMessage;
  return ErrorCode::kUnsupportedHttpVerb;
}

}  // namespace

OrError<Resource> FindResource(absl::string_view host, const Target& target,
                               const IsAccount& is_account) {
  Resource resource;
  size_t next = 0;
  SetAccount(FirstLabel(target.host.empty() ? host : target.host), &resource);
  resource.is_host_style = !resource.account.empty() && is_account(resource.account);
  if (!resource.is_host_style) {
    if (target.parts.empty()) return ErrorCode::kInvalidUri;
    SetAccount(target.parts[next++], &resource);
  }
  if (resource.account.empty()) return ErrorCode::kInvalidUri;
  if (IsOfAccount(target)) return resource;
  const std::vector<std::string> rest(target.parts.begin() + static_cast<std::ptrdiff_t>(next),
                                      target.parts.end());
  if (rest.size() > 3) return ErrorCode::kInvalidUri;
  if (!rest.empty()) resource.queue = rest[0];
  if (rest.size() > 1) {
    if (!absl::EqualsIgnoreCase(rest[1], "messages")) return ErrorCode::kInvalidUri;
    resource.is_messages = true;
  }
  if (rest.size() > 2) resource.message_id = rest[2];
  if (!rest.empty() && rest[0].empty()) return ErrorCode::kInvalidUri;
  return resource;
}

OrError<Operation> FindOperation(absl::string_view method, const Resource& resource,
                                 const Target& target) {
  if (resource.queue.empty()) return OfAccount(method, target);
  if (!resource.is_messages) return OfQueue(method, target);
  if (resource.message_id.empty()) return OfMessages(method, target);
  return OfMessage(method, target);
}

std::string AllowedVerbs(absl::string_view method, const Resource& resource, const Target& target) {
  std::vector<absl::string_view> verbs;
  for (const absl::string_view verb : {"GET", "HEAD", "POST", "PUT", "DELETE"}) {
    if (verb != method && FindOperation(verb, resource, target).ok()) verbs.push_back(verb);
  }
  verbs.push_back("OPTIONS");
  return absl::StrJoin(verbs, ", ");
}

bool IsReadOnly(Operation operation) {
  switch (operation) {
    case Operation::kListQueues:
    case Operation::kGetServiceProperties:
    case Operation::kGetServiceStats:
    case Operation::kGetQueueMetadata:
    case Operation::kGetQueueAcl:
    case Operation::kGetQueueStats:
    case Operation::kListPoison:
    case Operation::kPeekMessages:
      return true;
    default:
      return false;
  }
}

}  // namespace muster::queue_gateway::protocol
