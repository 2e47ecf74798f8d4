#include "muster/bus/nats/nats_trigger_bus.h"

#include <iterator>
#include <string>
#include <utility>

#include "muster/base/status_macros.h"
#include "muster/bus/nats/event_codec.h"
#include "muster/bus/nats/trigger_nats_limits.h"

namespace muster::bus::nats {

NatsTriggerBus::NatsTriggerBus(muster::nats::Connection* connection)
    : connection_(connection),
      subscription_(connection, {std::begin(kEventSubjects), std::end(kEventSubjects)}, "triggers",
                    [this](const muster::nats::Incoming& message) { return OnMessage(message); }) {}

absl::Status NatsTriggerBus::Publish(const bus::InterRoleCommunicationEvent& event) {
  const std::string bytes = EncodeEvent(event);
  return connection_->PublishNow({.subject = SubjectOf(event), .data = bytes},
                                 kTriggerPublishTimeout);
}

absl::StatusOr<std::unique_ptr<bus::TriggerBus::Subscription>> NatsTriggerBus::Subscribe(
    Subscriber subscriber) {
  MUSTER_ASSIGN_OR_RETURN(auto subscription, fan_out_.Subscribe(std::move(subscriber)));
  MUSTER_RETURN_IF_ERROR(subscription_.Begin(kTriggerPublishTimeout));
  return subscription;
}

absl::Status NatsTriggerBus::OnMessage(const muster::nats::Incoming& message) {
  MUSTER_ASSIGN_OR_RETURN(const auto event, DecodeEvent(message.data));
  (void)fan_out_.Tell(event);  // fails only in a subscriber
  return absl::OkStatus();
}

}  // namespace muster::bus::nats
