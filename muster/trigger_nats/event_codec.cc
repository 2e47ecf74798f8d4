#include "muster/trigger_nats/event_codec.h"

#include <limits>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "muster/trigger/work_detected.h"
#include "muster/v1/trigger.pb.h"

namespace muster::trigger_nats {
namespace {

using trigger::CloudQueueWorkDetectedTriggerEvent;

std::string TokenOf(absl::string_view text) {
  if (text.empty()) return "=";
  std::string token;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || c == '_' || c == '-') {
      token += c;
    } else {
      absl::StrAppendFormat(&token, "=%02X", byte);
    }
  }
  return token;
}

}  // namespace

std::string SubjectOf(const trigger::InterRoleCommunicationEvent& event) {
  const auto& work = std::get<CloudQueueWorkDetectedTriggerEvent>(event.payload);
  return absl::StrCat("muster.trigger.", TokenOf(work.storage_account), ".",
                      TokenOf(work.queue_name));
}

std::string EncodeEvent(const trigger::InterRoleCommunicationEvent& event) {
  const auto& work = std::get<CloudQueueWorkDetectedTriggerEvent>(event.payload);
  v1::InterRoleCommunicationEvent message;
  message.set_from(event.from);
  message.mutable_work_detected()->set_storage_account(work.storage_account);
  message.mutable_work_detected()->set_queue_name(work.queue_name);
  message.mutable_work_detected()->set_payload_size(work.payload_size);
  return message.SerializeAsString();
}

absl::StatusOr<trigger::InterRoleCommunicationEvent> DecodeEvent(absl::string_view bytes) {
  v1::InterRoleCommunicationEvent message;
  if (bytes.size() > std::numeric_limits<int>::max() ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError("not an InterRoleCommunicationEvent");
  }
  if (!message.has_work_detected()) {
    return absl::InvalidArgumentError("an event without a payload that is known here");
  }
  const v1::CloudQueueWorkDetectedTriggerEvent& work = message.work_detected();
  return trigger::WorkDetected(message.from(), work.storage_account(), work.queue_name(),
                               work.payload_size());
}

}  // namespace muster::trigger_nats
