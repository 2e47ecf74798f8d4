// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/queue_proto.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/proto_time.h"
#include "muster/base/text.h"

namespace muster::queue {
namespace {

std::string CutBody(const std::string& body, int32_t max_bytes) {
  return max_bytes == 0 ? body : body.substr(0, static_cast<size_t>(max_bytes));
}

}  // namespace

std::string ProtoText(absl::string_view text) {
  std::string proto;
  proto.reserve(text.size());
  while (!text.empty()) {
    const size_t valid = base::Utf8Prefix(text);
    absl::StrAppend(&proto, valid > 0 ? text.substr(0, valid) : "?");
    text.remove_prefix(std::max<size_t>(valid, 1));
  }
  return proto;
}

v1::QueueName ToProto(const QueueId& id) {
  v1::QueueName proto;
  proto.set_account(id.account);
  proto.set_name(id.name);
  return proto;
}

QueueId FromProto(const v1::QueueName& proto) { return {proto.account(), proto.name()}; }

v1::QueueStats ToProto(const QueueStats& stats) {
  v1::QueueStats proto;
  proto.set_ready(stats.ready);
  proto.set_in_flight(stats.in_flight);
  proto.set_delayed(stats.delayed);
  proto.set_poison(stats.poison);
  *proto.mutable_oldest_age() = base::ToProto(stats.oldest_age);
  proto.set_total_in(stats.total_in);
  proto.set_total_out(stats.total_out);
  proto.set_total_expired(stats.total_expired);
  proto.set_stale_receipts(stats.stale_receipts);
  return proto;
}

QueueStats FromProto(const v1::QueueStats& proto) {
  QueueStats stats;
  stats.ready = proto.ready();
  stats.in_flight = proto.in_flight();
  stats.delayed = proto.delayed();
  stats.poison = proto.poison();
  stats.oldest_age = base::FromProto(proto.oldest_age());
  stats.total_in = proto.total_in();
  stats.total_out = proto.total_out();
  stats.total_expired = proto.total_expired();
  stats.stale_receipts = proto.stale_receipts();
  return stats;
}

v1::PeekedMessage ToProto(const Message& message, int32_t max_body_bytes) {
  v1::PeekedMessage proto;
  proto.set_message_id(message.message_id);
  proto.set_body(CutBody(message.body, max_body_bytes));
  proto.set_body_bytes(static_cast<int64_t>(message.body.size()));
  *proto.mutable_inserted() = base::ToProto(message.insertion_time);
  if (message.expiration_time != absl::InfiniteFuture()) {
    *proto.mutable_expires() = base::ToProto(message.expiration_time);
  }
  proto.set_dequeue_count(message.dequeue_count);
  proto.set_attempts(message.attempts);
  return proto;
}

Message FromProto(const v1::PeekedMessage& proto) {
  Message message;
  message.message_id = proto.message_id();
  message.body = proto.body();
  message.insertion_time = base::FromProto(proto.inserted());
  message.expiration_time =
      proto.has_expires() ? base::FromProto(proto.expires()) : absl::InfiniteFuture();
  message.dequeue_count = proto.dequeue_count();
  message.attempts = proto.attempts();
  return message;
}

v1::PoisonCause ToProto(const Cause& cause) {
  v1::PoisonCause proto;
  proto.set_reason(ProtoText(cause.reason));
  proto.set_attempts(cause.attempts);
  proto.set_holder(ProtoText(cause.holder));
  *proto.mutable_given_up() = base::ToProto(cause.time);
  return proto;
}

Cause FromProto(const v1::PoisonCause& proto) {
  return {proto.reason(), proto.attempts(), proto.holder(), base::FromProto(proto.given_up())};
}

v1::PoisonMessage ToProto(const PoisonMessage& message, int32_t max_body_bytes) {
  v1::PoisonMessage proto;
  proto.set_message_id(message.message_id);
  proto.set_body(CutBody(message.body, max_body_bytes));
  proto.set_body_bytes(static_cast<int64_t>(message.body.size()));
  *proto.mutable_inserted() = base::ToProto(message.insertion_time);
  *proto.mutable_cause() = ToProto(message.cause);
  return proto;
}

PoisonMessage FromProto(const v1::PoisonMessage& proto) {
  PoisonMessage message;
  message.message_id = proto.message_id();
  message.body = proto.body();
  message.insertion_time = base::FromProto(proto.inserted());
  message.cause = FromProto(proto.cause());
  return message;
}

}  // namespace muster::queue
