// SPDX-License-Identifier: Apache-2.0
#include "nlohmann/json.hpp"
#include "services/queue-gateway/operations/json_reply.h"
#include "services/queue-gateway/operations/limits.h"
#include "services/queue-gateway/operations/operations.h"
#include "services/queue-gateway/protocol/parameters.h"

namespace muster::queue_gateway::operations {

namespace {

constexpr int64_t kMaxRedrive = 1000;  // in one call

}  // namespace

Outcome RedrivePoison(const Call& call, const Stores& stores) {
  protocol::Parameters parameters(call.target);
  const int64_t count = parameters.RequiredInteger(kCount, 1, kMaxRedrive);
  if (parameters.error().has_value()) return *parameters.error();
  const auto redriven = stores.queues->Redrive(call.queue(), {}, count);
  if (absl::IsFailedPrecondition(redriven.status())) return protocol::ErrorCode::kQueueNotFound;
  if (!redriven.ok()) return protocol::FromStore(redriven.status());
  return Json({{"queue", call.resource.queue}, {"redriven", *redriven}});
}

}  // namespace muster::queue_gateway::operations
