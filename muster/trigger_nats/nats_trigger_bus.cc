#include "muster/trigger_nats/nats_trigger_bus.h"

#include <iterator>
#include <string>
#include <utility>

#include "muster/base/status_macros.h"
#include "muster/trigger_nats/event_codec.h"
#include "muster/trigger_nats/limits.h"

namespace muster::trigger_nats {

NatsTriggerBus::NatsTriggerBus(nats::Connection* connection)
    : connection_(connection),
      subscription_(connection, {std::begin(kEventSubjects), std::end(kEventSubjects)}, "triggers",
                    [this](const nats::Incoming& message) { return OnMessage(message); }) {}

absl::Status NatsTriggerBus::Publish(const trigger::InterRoleCommunicationEvent& event) {
  const std::string bytes = EncodeEvent(event);
  return connection_->PublishNow({.subject = SubjectOf(event), .data = bytes},
                                 kTriggerPublishTimeout);
}

absl::StatusOr<std::unique_ptr<trigger::TriggerBus::Subscription>> NatsTriggerBus::Subscribe(
    Subscriber subscriber) {
  MUSTER_ASSIGN_OR_RETURN(auto subscription, fan_out_.Subscribe(std::move(subscriber)));
  MUSTER_RETURN_IF_ERROR(subscription_.Begin(kTriggerPublishTimeout));
  return subscription;
}

absl::Status NatsTriggerBus::OnMessage(const nats::Incoming& message) {
  MUSTER_ASSIGN_OR_RETURN(const auto event, DecodeEvent(message.data));
  (void)fan_out_.Tell(event);  // fails only in a subscriber
  return absl::OkStatus();
}

}  // namespace muster::trigger_nats
