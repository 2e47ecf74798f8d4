// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/gateway_metrics.h"

#include "absl/strings/str_cat.h"
#include "muster/telemetry/catalogue.h"

namespace muster::queue_gateway {

absl::string_view NameOf(auth::Operation operation) {
  switch (operation) {
    case auth::Operation::kListQueues:
      return "list_queues";
    case auth::Operation::kGetServiceProperties:
      return "get_service_properties";
    case auth::Operation::kSetServiceProperties:
      return "set_service_properties";
    case auth::Operation::kGetServiceStats:
      return "get_service_stats";
    case auth::Operation::kGetUserDelegationKey:
      return "get_user_delegation_key";
    case auth::Operation::kCreateQueue:
      return "create_queue";
    case auth::Operation::kDeleteQueue:
      return "delete_queue";
    case auth::Operation::kGetQueueMetadata:
      return "get_queue_metadata";
    case auth::Operation::kSetQueueMetadata:
      return "set_queue_metadata";
    case auth::Operation::kGetQueueAcl:
      return "get_queue_acl";
    case auth::Operation::kSetQueueAcl:
      return "set_queue_acl";
    case auth::Operation::kGetQueueStats:
      return "get_queue_stats";
    case auth::Operation::kListPoison:
      return "list_poison";
    case auth::Operation::kRedrivePoison:
      return "redrive_poison";
    case auth::Operation::kPutMessage:
      return "put_message";
    case auth::Operation::kGetMessages:
      return "get_messages";
    case auth::Operation::kPeekMessages:
      return "peek_messages";
    case auth::Operation::kUpdateMessage:
      return "update_message";
    case auth::Operation::kDeleteMessage:
      return "delete_message";
    case auth::Operation::kClearMessages:
      return "clear_messages";
  }
  return "unknown";
}

GatewayMetrics::GatewayMetrics(telemetry::Registry* registry)
    : records_(registry != nullptr),
      requests_(registry, telemetry::kGatewayRequests),
      durations_(registry, telemetry::kGatewayRequestDuration),
      throttled_(registry, telemetry::kGatewayThrottled),
      auth_failures_(registry, telemetry::kGatewayAuthFailures) {}

void GatewayMetrics::Answered(absl::string_view operation, const http::Reply& reply,
                              absl::Duration took) const {
  if (!records_) return;
  const std::string status = absl::StrCat(reply.status);
  const absl::string_view code = http::HeaderOf(reply.headers, "x-ms-error-code").value_or(status);
  requests_.With({operation, code}).Add();
  durations_.With({operation}).Observe(took);
}

// An account alone has requests of its own, such as lists.
void GatewayMetrics::Throttled(const queue::QueueId& queue) const {
  if (records_) {
    throttled_.With({queue.name.empty() ? queue.account : queue.ToString()}).Add();
  }
}

void GatewayMetrics::Refused(const auth::Verdict& verdict) const {
  auth_failures_.With({errors::InfoOf(*verdict.code).name}).Add();
}

}  // namespace muster::queue_gateway
