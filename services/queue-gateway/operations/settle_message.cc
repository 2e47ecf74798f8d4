// SPDX-License-Identifier: Apache-2.0

// What a holder does with a message: update, delete; and clear, which asks for no holder.
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/retry.h"
#include "services/queue-gateway/operations/limits.h"
#include "services/queue-gateway/operations/message_text.h"
#include "services/queue-gateway/operations/operations.h"
#include "services/queue-gateway/operations/pop_receipt.h"
#include "services/queue-gateway/protocol/parameters.h"
#include "services/queue-gateway/protocol/reply.h"

namespace muster::queue_gateway::operations {
namespace {

using protocol::ErrorCode;

constexpr char kReceipt[] = "popreceipt";

// While another call has the message, a get that began before, say, the engine asks to try again.
// That is over when the call is: a sync of the disk at most. In all, a quarter of a second.
constexpr int kTries = 9;
constexpr absl::Duration kFirstPause = absl::Milliseconds(1);
// An engine that cannot be reached says so after seconds, and is not asked again.
constexpr absl::Duration kQuick = absl::Milliseconds(100);

// What `settle` answers for one message, once no other call has it.
template <typename Settle>
auto Settled(const Settle& settle, base::Clock* clock) {
  for (int tries = 1;; ++tries) {
    const absl::Duration began = clock->Monotonic();
    auto results = settle();
    if (!results.ok() || !absl::IsUnavailable(base::StatusOf(results->front())) ||
        tries == kTries || clock->Monotonic() - began > kQuick) {
      return results;
    }
    base::SleepUnlessStopped(
        clock, base::ExponentialBackoff(tries, kFirstPause, absl::InfiniteDuration()), {});
  }
}

// The receipt is not that of the message. A caller that names no queue, or no message, learns that
// first; an engine that cannot look a message up by its id does not tell.
protocol::Error NoSuchReceipt(const Call& call, const Stores& stores) {
  const auto there = stores.queues->Holds(call.queue(), call.resource.message_id);
  if (there.ok()) return *there ? ErrorCode::kPopReceiptMismatch : ErrorCode::kMessageNotFound;
  if (!absl::IsUnimplemented(there.status())) return protocol::FromStore(there.status());
  const auto metadata = stores.queues->GetMetadata(call.queue());
  if (!metadata.ok()) return protocol::FromStore(metadata.status());
  return ErrorCode::kPopReceiptMismatch;
}

// Of one message: NotFound is the message's here. A receipt of another queue, or of one that was
// deleted and made again, points at a place where another message may lie.
protocol::Error FromSettle(const absl::Status& status, const Call& call, const Stores& stores) {
  if (absl::IsNotFound(status)) return ErrorCode::kMessageNotFound;
  if (absl::IsFailedPrecondition(status) || absl::IsInvalidArgument(status)) {
    return NoSuchReceipt(call, stores);
  }
  return protocol::FromStore(status);
}

}  // namespace

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

Outcome DeleteMessage(const Call& call, const Stores& stores) {
  protocol::Parameters parameters(call.target);
  const std::string pop_receipt = parameters.Required(kReceipt);
  if (parameters.error().has_value()) return *parameters.error();
  const auto receipt = ReceiptOf(pop_receipt, call.resource.message_id);
  if (!receipt.has_value()) return NoSuchReceipt(call, stores);

  const auto deleted = Settled(
      [&] { return stores.queues->Delete(call.queue(), absl::MakeConstSpan(&*receipt, 1)); },
      stores.clock);
  if (!deleted.ok()) return protocol::FromStore(deleted.status());
  if (!deleted->front().ok()) return FromSettle(deleted->front(), call, stores);
  return protocol::Empty(204);
}

Outcome ClearMessages(const Call& call, const Stores& stores) {
  const absl::Status cleared = stores.queues->Clear(call.queue());
  if (!cleared.ok()) return protocol::FromStore(cleared);
  return protocol::Empty(204);
}

}  // namespace muster::queue_gateway::operations
