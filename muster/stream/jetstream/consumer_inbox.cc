// SPDX-License-Identifier: Apache-2.0
#include "muster/stream/jetstream/consumer_inbox.h"

#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "muster/base/names.h"
#include "muster/base/status.h"
#include "muster/stream/jetstream/stream_layout.h"

namespace muster::stream::jetstream {

ConsumerInbox::ConsumerInbox(nats::Connection* connection)
    : connection_(connection),
      name_(base::MakeInstanceId("events")),
      subject_(absl::StrCat("_INBOX.", name_)) {}

ConsumerInbox::~ConsumerInbox() = default;

absl::Status ConsumerInbox::Subscribe() {
  base::MutexLock lock(&subscribe_mu_);
  if (subscription_ != nullptr) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(following_, connection_->FollowChanges([this](bool connected) {
    if (connected) OnReconnect();
  }));
  MUSTER_ASSIGN_OR_RETURN(
      subscription_,
      connection_->Subscribe(absl::StrCat(subject_, ".*"),
                             [this](const nats::Incoming& message) { OnMessage(message); }));
  return absl::OkStatus();
}

absl::StatusOr<std::string> ConsumerInbox::Register(Receiver* receiver) {
  MUSTER_RETURN_IF_ERROR(Subscribe());
  base::MutexLock lock(&mu_);
  std::string consumer = absl::StrCat(name_, "-", ++last_);
  receivers_.emplace(consumer, receiver);
  return consumer;
}

void ConsumerInbox::Unregister(const std::string& consumer) {
  base::MutexLock lock(&mu_);
  receivers_.erase(consumer);
}

std::string ConsumerInbox::ReplySubject(absl::string_view consumer) const {
  return absl::StrCat(subject_, ".", consumer);
}

// A message has the subject under which it is stored, and the consumer's name in its reply; a
// status has the subject of the pull.
void ConsumerInbox::OnMessage(const nats::Incoming& message) {
  absl::string_view consumer = message.subject;
  if (const auto delivery = DeliveryIn(message.reply); delivery.has_value()) {
    consumer = delivery->consumer;
  } else if (!absl::ConsumePrefix(&consumer, absl::StrCat(subject_, "."))) {
    return;
  }
  base::MutexLock lock(&mu_);
  const auto found = receivers_.find(consumer);
  if (found != receivers_.end()) found->second->Take(message);
}

void ConsumerInbox::OnReconnect() {
  base::MutexLock lock(&mu_);
  for (const auto& [consumer, receiver] : receivers_) receiver->OnReconnect();
}

}  // namespace muster::stream::jetstream
