// The requests of QueueService, as they are once they are sound. What is not is InvalidArgument,
// with BadRequest naming the field.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "muster/item/redrive.h"
#include "muster/queue/queue_store.h"
#include "muster/v1/queue_service.pb.h"

namespace muster::initiator::api {

// How many, and how much of each.
struct MessageCut {
  queue::QueueId queue;
  int max_messages = 0;
  int32_t max_body_bytes = 0;  // 0: all
};

absl::StatusOr<queue::QueueId> ParseQueue(const v1::QueueName& name);
// With the page's size as max_results.
absl::StatusOr<queue::ListQueuesRequest> ParseListQueues(const v1::ListQueuesRequest& request);
absl::StatusOr<MessageCut> ParsePeek(const v1::PeekMessagesRequest& request);
absl::StatusOr<MessageCut> ParseListPoison(const v1::ListPoisonRequest& request);
absl::StatusOr<item::RedriveRequest> ParseRedrive(const v1::RedriveRequest& request);

}  // namespace muster::initiator::api
