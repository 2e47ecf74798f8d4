// SPDX-License-Identifier: Apache-2.0

// NatsTriggerBus and NatsHeartbeatBus: subjects, encoding and timeouts.

#include "muster/bus/nats/nats_buses.h"

#include <iterator>
#include <limits>
#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "muster/base/status.h"
#include "muster/nats/names.h"
#include "muster/v1/trigger.pb.h"

namespace muster::bus::nats {

// A publisher waits at most this long for the server to confirm. A later trigger is hardly useful:
// the safety check of the listeners is due by then.
inline constexpr absl::Duration kTriggerPublishTimeout = absl::Seconds(1);

namespace {

using Event = bus::InterRoleCommunicationEvent;

struct SubjectMaker {
  std::string operator()(const bus::CloudQueueWorkDetectedTriggerEvent& work) const {
    return absl::StrCat("muster.trigger.", muster::nats::SubjectToken(work.storage_account), ".",
                        muster::nats::SubjectToken(work.queue_name));
  }
  std::string operator()(const bus::JobChangedEvent&) const { return "muster.event.job_changed"; }
  std::string operator()(const bus::BatchCountedEvent&) const {
    return "muster.event.batch_counted";
  }
  std::string operator()(const bus::BatchCancelledEvent&) const {
    return "muster.event.batch_cancelled";
  }
  std::string operator()(const bus::CancelAcknowledgedEvent&) const {
    return "muster.event.cancel_acknowledged";
  }
  std::string operator()(const bus::ReleasedEvent& released) const {
    return absl::StrCat("muster.release.", muster::nats::SubjectToken(released.release));
  }
};

struct PayloadWriter {
  void operator()(const bus::CloudQueueWorkDetectedTriggerEvent& work) const {
    v1::CloudQueueWorkDetectedTriggerEvent& payload = *message->mutable_work_detected();
    payload.set_storage_account(work.storage_account);
    payload.set_queue_name(work.queue_name);
    payload.set_messages(work.messages);
    payload.set_wanted(work.wanted);
  }
  void operator()(const bus::JobChangedEvent& job) const {
    message->mutable_job_changed()->set_job(job.job);
  }
  void operator()(const bus::BatchCountedEvent& batch) const {
    message->mutable_batch_counted()->set_batch(batch.batch);
  }
  void operator()(const bus::BatchCancelledEvent& batch) const {
    message->mutable_batch_cancelled()->set_batch(batch.batch);
  }
  void operator()(const bus::CancelAcknowledgedEvent& batch) const {
    message->mutable_cancel_acknowledged()->set_batch(batch.batch);
  }
  void operator()(const bus::ReleasedEvent& released) const {
    message->mutable_released()->set_release(released.release);
    message->mutable_released()->set_epoch(released.epoch);
  }

  v1::InterRoleCommunicationEvent* message;
};

// Who does not say so, or does not know its own, belongs to all.
bool IsOfAnother(const std::string& installation, const std::string& own) {
  return !installation.empty() && !own.empty() && installation != own;
}

absl::StatusOr<v1::InterRoleCommunicationEvent> ParseEvent(absl::string_view bytes) {
  v1::InterRoleCommunicationEvent message;
  if (bytes.size() > std::numeric_limits<int>::max() ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError("not an InterRoleCommunicationEvent");
  }
  return message;
}

absl::StatusOr<Event> FromProto(const v1::InterRoleCommunicationEvent& message) {
  switch (message.payload_case()) {
    case v1::InterRoleCommunicationEvent::kWorkDetected: {
      const v1::CloudQueueWorkDetectedTriggerEvent& work = message.work_detected();
      return Event{message.from(), bus::CloudQueueWorkDetectedTriggerEvent{
                                       .storage_account = work.storage_account(),
                                       .queue_name = work.queue_name(),
                                       .messages = work.messages(),
                                       .wanted = work.wanted()}};
    }
    case v1::InterRoleCommunicationEvent::kJobChanged:
      return Event{message.from(), bus::JobChangedEvent{message.job_changed().job()}};
    case v1::InterRoleCommunicationEvent::kBatchCounted:
      return Event{message.from(), bus::BatchCountedEvent{message.batch_counted().batch()}};
    case v1::InterRoleCommunicationEvent::kBatchCancelled:
      return Event{message.from(), bus::BatchCancelledEvent{message.batch_cancelled().batch()}};
    case v1::InterRoleCommunicationEvent::kCancelAcknowledged:
      return Event{message.from(),
                   bus::CancelAcknowledgedEvent{message.cancel_acknowledged().batch()}};
    case v1::InterRoleCommunicationEvent::kReleased:
      return Event{message.from(),
                   bus::ReleasedEvent{message.released().release(), message.released().epoch()}};
    case v1::InterRoleCommunicationEvent::PAYLOAD_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("an event without a payload that is known here");
}

}  // namespace

std::string SubjectOf(const bus::InterRoleCommunicationEvent& event) {
  return std::visit(SubjectMaker(), event.payload);
}

std::string EncodeEvent(const bus::InterRoleCommunicationEvent& event,
                        absl::string_view installation) {
  v1::InterRoleCommunicationEvent message;
  message.set_from(event.from);
  std::visit(PayloadWriter{&message}, event.payload);
  if (!message.has_work_detected()) message.set_installation(std::string(installation));
  return message.SerializeAsString();
}

absl::StatusOr<bus::InterRoleCommunicationEvent> DecodeEvent(absl::string_view bytes) {
  MUSTER_ASSIGN_OR_RETURN(const auto message, ParseEvent(bytes));
  return FromProto(message);
}

NatsTriggerBus::NatsTriggerBus(muster::nats::Connection* connection, std::string installation)
    : connection_(connection),
      installation_(std::move(installation)),
      subscription_(connection, {std::begin(kEventSubjects), std::end(kEventSubjects)}, "triggers",
                    [this](const muster::nats::Incoming& message) { return OnMessage(message); }) {}

absl::Status NatsTriggerBus::Publish(const bus::InterRoleCommunicationEvent& event) {
  const std::string bytes = EncodeEvent(event, installation_);
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
  MUSTER_ASSIGN_OR_RETURN(const auto parsed, ParseEvent(message.data));
  if (IsOfAnother(parsed.installation(), installation_)) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const auto event, FromProto(parsed));
  // A server limits who may publish by the subject; another one must not be a way around that.
  const bool is_release = std::holds_alternative<bus::ReleasedEvent>(event.payload);
  if (is_release && message.subject != SubjectOf(event)) {
    return absl::InvalidArgumentError("a release on a subject that is not its own");
  }
  (void)fan_out_.Tell(event);  // fails only in a subscriber
  return absl::OkStatus();
}

// The timeouts of NatsHeartbeatBus.

// A publisher waits at most this long for the server to confirm: the next heartbeat is due then.
inline constexpr absl::Duration kHeartbeatPublishTimeout = absl::Seconds(1);
// A server confirms within a millisecond. Shorter than callers that list the instances wait for the
// list.
inline constexpr absl::Duration kAnswerTimeout = absl::Seconds(1);

namespace {

constexpr const char* kHeartbeatSubjects = "muster.heartbeat.>";

// Returns "processor" for ROLE_PROCESSOR.
std::string RoleToken(v1::Role role) {
  const std::string name = v1::Role_Name(role);  // empty for a role of a newer muster
  return muster::nats::SubjectToken(absl::AsciiStrToLower(absl::StripPrefix(name, "ROLE_")));
}

}  // namespace

std::string SubjectOf(const v1::InstanceInfo& instance) {
  return absl::StrCat("muster.heartbeat.", RoleToken(instance.role()), ".",
                      muster::nats::SubjectToken(instance.instance()));
}

NatsHeartbeatBus::NatsHeartbeatBus(muster::nats::Connection* connection, std::string installation)
    : connection_(connection),
      installation_(std::move(installation)),
      subscription_(connection, {kHeartbeatSubjects}, "heartbeats",
                    [this](const muster::nats::Incoming& message) { return OnMessage(message); }) {}

absl::Status NatsHeartbeatBus::Publish(const v1::Heartbeat& heartbeat) {
  if (const size_t size = heartbeat.ByteSizeLong(); size > bus::kMaxHeartbeatBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a heartbeat of ", size, " bytes; at most ",
                                                   bus::kMaxHeartbeatBytes, " are allowed"));
  }
  v1::Heartbeat signed_heartbeat = heartbeat;
  signed_heartbeat.mutable_instance()->set_installation(installation_);
  // Its sender left out the jobs for which it had no room, and does not know of what comes on top.
  while (signed_heartbeat.jobs_size() > 0 &&
         signed_heartbeat.ByteSizeLong() > bus::kMaxHeartbeatBytes) {
    signed_heartbeat.mutable_jobs()->RemoveLast();
  }
  const std::string bytes = signed_heartbeat.SerializeAsString();
  return connection_->PublishNow({.subject = SubjectOf(heartbeat.instance()), .data = bytes},
                                 kHeartbeatPublishTimeout);
}

absl::StatusOr<std::unique_ptr<bus::HeartbeatBus::Subscription>> NatsHeartbeatBus::Subscribe(
    Subscriber subscriber) {
  MUSTER_ASSIGN_OR_RETURN(auto subscription, fan_out_.Subscribe(std::move(subscriber)));
  MUSTER_RETURN_IF_ERROR(subscription_.Begin(kHeartbeatPublishTimeout));
  return subscription;
}

bool NatsHeartbeatBus::CanReceive() {
  return connection_->connected() && connection_->Flush(kAnswerTimeout).ok();
}

absl::Status NatsHeartbeatBus::OnMessage(const muster::nats::Incoming& message) {
  v1::Heartbeat heartbeat;
  const bool is_one = message.data.size() <= bus::kMaxHeartbeatBytes &&
                      heartbeat.ParseFromString(message.data) && heartbeat.has_instance();
  if (!is_one) return absl::InvalidArgumentError("no heartbeat of an instance");
  if (IsOfAnother(heartbeat.instance().installation(), installation_)) return absl::OkStatus();
  (void)fan_out_.Tell(heartbeat);  // fails only in a subscriber
  return absl::OkStatus();
}

}  // namespace muster::bus::nats
