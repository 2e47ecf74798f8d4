// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "services/queue-gateway/operations/limits.h"
#include "services/queue-gateway/operations/message_text.h"
#include "services/queue-gateway/operations/operations.h"
#include "services/queue-gateway/operations/pop_receipt.h"
#include "services/queue-gateway/operations/settle.h"
#include "services/queue-gateway/protocol/parameters.h"
#include "services/queue-gateway/protocol/reply.h"

namespace muster::queue_gateway::operations {

Outcome UpdateMessage(const Call& call, const Stores& stores) {
  protocol::Parameters parameters(call.target);
  const std::string pop_receipt = parameters.Required(kReceipt);
  queue::UpdateRequest request;
  request.visibility = absl::Seconds(parameters.RequiredInteger(kVisibility, 0, kMaxSeconds));
  if (parameters.error().has_value()) return *parameters.error();
  if (!call.http.body.empty()) {
    protocol::OrError<std::string> text = TextOf(call);
    if (!text.ok()) return text.error();
    request.body = *std::move(text);
  }
  const auto receipt = ReceiptOf(pop_receipt, call.resource.message_id);
  if (!receipt.has_value()) return NoSuchReceipt(call, stores);
  request.receipt = *receipt;

  const auto updated =
      Settled([&] { return stores.queues->Update(call.queue(), absl::MakeConstSpan(&request, 1)); },
              stores.clock);
  if (!updated.ok()) return protocol::FromStore(updated.status());
  const absl::StatusOr<queue::UpdateResult>& result = updated->front();
  if (!result.ok()) return FromSettle(result.status(), call, stores);
  return protocol::Empty(
      204, {{"x-ms-popreceipt", PopReceiptOf(result->receipt, call.resource.message_id)},
            {"x-ms-time-next-visible", protocol::HttpDate(result->next_visible_time)}});
}

}  // namespace muster::queue_gateway::operations
