#include "muster/bus/nats/nats_heartbeat_bus.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "muster/base/status_macros.h"
#include "muster/bus/limits.h"
#include "muster/bus/nats/limits.h"
#include "muster/nats/subject.h"

namespace muster::bus::nats {
namespace {

constexpr const char* kHeartbeatSubjects = "muster.heartbeat.>";

// "processor" of ROLE_PROCESSOR.
std::string RoleToken(v1::Role role) {
  const std::string name = v1::Role_Name(role);  // empty for a role of a newer muster
  return muster::nats::SubjectToken(absl::AsciiStrToLower(absl::StripPrefix(name, "ROLE_")));
}

}  // namespace

std::string SubjectOf(const v1::InstanceInfo& instance) {
  return absl::StrCat("muster.heartbeat.", RoleToken(instance.role()), ".",
                      muster::nats::SubjectToken(instance.instance()));
}

NatsHeartbeatBus::NatsHeartbeatBus(muster::nats::Connection* connection)
    : connection_(connection),
      subscription_(connection, {kHeartbeatSubjects}, "heartbeats",
                    [this](const muster::nats::Incoming& message) { return OnMessage(message); }) {}

absl::Status NatsHeartbeatBus::Publish(const v1::Heartbeat& heartbeat) {
  const std::string bytes = heartbeat.SerializeAsString();
  if (bytes.size() > bus::kMaxHeartbeatBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a heartbeat of ", bytes.size(),
                                                   " bytes; at most ", bus::kMaxHeartbeatBytes,
                                                   " are allowed"));
  }
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
  (void)fan_out_.Tell(heartbeat);  // fails only in a subscriber
  return absl::OkStatus();
}

}  // namespace muster::bus::nats
