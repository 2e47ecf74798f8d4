// CallbackSubscription: a subscription whose messages nats.c delivers on a thread of its own.
#pragma once

#include <nats/nats.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/nats/connection.h"
#include "muster/nats/event.h"
#include "muster/nats/limits.h"
#include "muster/nats/status.h"
#include "muster/nats/wire_message.h"

namespace muster::nats {

class CallbackSubscription final : public Connection::Subscription {
 public:
  explicit CallbackSubscription(Connection::MessageHandler handler)
      : handler_(std::move(handler)) {}

  ~CallbackSubscription() override {
    if (subscription_ == nullptr) return;
    natsSubscription_Unsubscribe(subscription_);
    ended_.Await();
    natsSubscription_Destroy(subscription_);
  }

  absl::Status Begin(natsConnection* connection, const std::string& subject) {
    MUSTER_RETURN_IF_ERROR(ToStatus(
        natsConnection_Subscribe(&subscription_, connection, subject.c_str(), &OnMessage, this),
        absl::StrCat("subscribing to ", subject)));
    natsSubscription_SetPendingLimits(subscription_, kMaxPendingMessages, kMaxPendingBytes);
    return ToStatus(natsSubscription_SetOnCompleteCB(subscription_, &OnEnd, this),
                    absl::StrCat("subscribing to ", subject));
  }

 private:
  static void OnMessage(natsConnection*, natsSubscription*, natsMsg* message, void* self) {
    const MessagePtr owned(message);
    static_cast<CallbackSubscription*>(self)->handler_(IncomingOf(message));
  }
  static void OnEnd(void* self) { static_cast<CallbackSubscription*>(self)->ended_.Set(); }

  const Connection::MessageHandler handler_;
  Event ended_;
  natsSubscription* subscription_ = nullptr;  // owned
};

}  // namespace muster::nats
