// What QueueService says of queues, as the store has it and as it travels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "muster/queue/queue_store.h"
#include "muster/v1/queue_service.pb.h"

namespace muster::queue {

// `text` with each byte that is not UTF-8 replaced by "?": a message with any other text could not
// be read. Metadata and causes come from users and their handlers.
std::string ProtoText(absl::string_view text);

v1::QueueName ToProto(const QueueId& id);
QueueId FromProto(const v1::QueueName& proto);

v1::QueueStats ToProto(const QueueStats& stats);
QueueStats FromProto(const v1::QueueStats& proto);

// With `max_body_bytes` of the body at most; 0: all.
v1::PeekedMessage ToProto(const Message& message, int32_t max_body_bytes);
// Without what a peek does not tell: next_visible_time, interrupted and receipt.
Message FromProto(const v1::PeekedMessage& proto);

v1::PoisonMessage ToProto(const PoisonMessage& message, int32_t max_body_bytes);
PoisonMessage FromProto(const v1::PoisonMessage& proto);

}  // namespace muster::queue
