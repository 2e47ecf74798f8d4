// SPDX-License-Identifier: Apache-2.0

// Conversions between the types of the queue store and the messages of QueueService.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "muster/queue/queue_store.h"
#include "muster/v1/queue_service.pb.h"

namespace muster::queue {

// Returns `text` with each byte that is not UTF-8 replaced by "?": protobuf cannot parse a string
// field that is not UTF-8. Metadata and causes come from users and their handlers, so they may hold
// any bytes.
std::string ProtoText(absl::string_view text);

v1::QueueName ToProto(const QueueId& id);
QueueId FromProto(const v1::QueueName& proto);

v1::QueueStats ToProto(const QueueStats& stats);
QueueStats FromProto(const v1::QueueStats& proto);

// Copies at most `max_body_bytes` of the body; 0: all of it.
v1::PeekedMessage ToProto(const Message& message, int32_t max_body_bytes);
// Leaves next_visible_time, interrupted and receipt unset, because a peek does not return them.
Message FromProto(const v1::PeekedMessage& proto);

v1::PoisonCause ToProto(const Cause& cause);
Cause FromProto(const v1::PoisonCause& proto);
v1::PoisonMessage ToProto(const PoisonMessage& message, int32_t max_body_bytes);
PoisonMessage FromProto(const v1::PoisonMessage& proto);

}  // namespace muster::queue
