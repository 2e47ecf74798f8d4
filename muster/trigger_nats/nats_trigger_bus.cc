#include "muster/trigger_nats/nats_trigger_bus.h"

#include <iterator>
#include <string>
#include <utility>

#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/trigger_nats/event_codec.h"
#include "muster/trigger_nats/limits.h"

namespace muster::trigger_nats {

NatsTriggerBus::NatsTriggerBus(nats::Connection* connection) : connection_(connection) {}

NatsTriggerBus::~NatsTriggerBus() {
  std::vector<std::unique_ptr<nats::Connection::Subscription>> hearing;
  base::MutexLock lock(&mu_);
  hearing = std::move(hearing_);  // ends once the lock is let go
}

absl::Status NatsTriggerBus::Publish(const trigger::InterRoleCommunicationEvent& event) {
  const std::string bytes = EncodeEvent(event);
  return connection_->PublishNow({.subject = SubjectOf(event), .data = bytes}, kPublishTimeout);
}

absl::StatusOr<std::unique_ptr<trigger::TriggerBus::Subscription>> NatsTriggerBus::Subscribe(
    Subscriber subscriber) {
  MUSTER_ASSIGN_OR_RETURN(auto subscription, fan_out_.Subscribe(std::move(subscriber)));
  MUSTER_RETURN_IF_ERROR(EnsureHearing());
  return subscription;
}

absl::Status NatsTriggerBus::EnsureHearing() {
  base::MutexLock lock(&mu_);
  const auto hear = [this](const auto& message) { Hear(message); };
  while (hearing_.size() < std::size(kSubjects)) {
    MUSTER_ASSIGN_OR_RETURN(auto hearing, connection_->Subscribe(kSubjects[hearing_.size()], hear));
    hearing_.push_back(std::move(hearing));
  }
  // Without a connection the subscription waits for one.
  if (connection_->connected()) (void)connection_->Flush(kPublishTimeout);
  return absl::OkStatus();
}

void NatsTriggerBus::Hear(const nats::Incoming& message) {
  const auto event = DecodeEvent(message.data);
  if (event.ok()) {
    (void)fan_out_.Tell(*event);  // fails only in a subscriber
    return;
  }
  // Once: whoever sends such a message may send a million.
  if (malformed_.fetch_add(1) > 0) return;
  base::Log(base::kWarning, "a message on the subjects of triggers is none; ignored, as all such",
            {{"subject", message.subject}, {"why", event.status().message()}});
}

}  // namespace muster::trigger_nats
