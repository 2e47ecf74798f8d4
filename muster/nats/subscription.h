// SPDX-License-Identifier: Apache-2.0

// The messages and subscriptions of nats.c, wrapped. Only this folder includes this file: no nats.c
// type appears outside.
#pragma once

#include <nats/nats.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/base/status.h"
#include "muster/nats/connection.h"
#include "muster/nats/status.h"

namespace muster::nats {

// Event: happens once; Await returns when it has happened. Thread-safe.
class Event {
 public:
  void Set() {
    base::MutexLock lock(&mu_);
    set_ = true;
    changed_.NotifyAll();
  }
  void Await() {
    base::MutexLock lock(&mu_);
    while (!set_) changed_.Wait(&mu_);
  }

 private:
  base::Mutex mu_;
  base::CondVar changed_;
  bool set_ ABSL_GUARDED_BY(mu_) = false;
};

// A timeout as nats.c takes it; at least 1.
int64_t MillisecondsOf(absl::Duration timeout);

// Messages, as nats.c represents them.

struct DestroyMessage {
  void operator()(natsMsg* message) const { natsMsg_Destroy(message); }
};
using MessagePtr = std::unique_ptr<natsMsg, DestroyMessage>;

Incoming IncomingOf(natsMsg* message);
// `reply`: subject for the answer; empty when none is wanted.
absl::StatusOr<MessagePtr> MessageOf(const Outgoing& outgoing, const std::string& reply);

// ReplyInbox: a subject for the replies to one request at a time. JetStream delivers a pulled
// message under the subject to which it was published, so only the subscription shows to which
// request it belongs.

// Not thread-safe.
class ReplyInbox {
 public:
  // `connection` is not owned.
  static absl::StatusOr<std::unique_ptr<ReplyInbox>> Open(natsConnection* connection);
  ~ReplyInbox() { natsSubscription_Destroy(subscription_); }
  ReplyInbox(const ReplyInbox&) = delete;
  ReplyInbox& operator=(const ReplyInbox&) = delete;

  const std::string& subject() const { return subject_; }

  // Returns the next reply; its status is kNoResponders when no subscriber listens. Unavailable: no
  // reply within `timeout`.
  absl::StatusOr<Incoming> Next(absl::Duration timeout);

 private:
  ReplyInbox();

  const std::string subject_;
  natsSubscription* subscription_ = nullptr;  // owned
};

// CallbackSubscription: nats.c calls its handler for each message, on a thread of its own.

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

  void Drain(absl::Duration timeout) override {
    const int64_t milliseconds = MillisecondsOf(timeout);
    if (natsSubscription_DrainTimeout(subscription_, milliseconds) != NATS_OK) return;
    natsSubscription_WaitForDrainCompletion(subscription_, milliseconds);
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

// PendingReplies: matches replies with the calls that wait for them. Each request has its own reply
// subject, and one subscription receives all of them:
//
//   <prefix>.<call>.<place>       the place of the request among those of its call

// Thread-safe.
class PendingReplies {
 public:
  // `prefix` must be unique. `clock` is not owned.
  PendingReplies(std::string prefix, base::Clock* clock)
      : prefix_(std::move(prefix)), clock_(clock) {}

  // The requests of one caller. Replies that come after its end are dropped. Not thread-safe.
  class Call {
   public:
    explicit Call(PendingReplies* pending);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    std::string ReplySubject(size_t place) const;
    // Takes the replies to any of the requests, each with its place, as soon as there are `count`;
    // those that there are when `deadline` on the clock has passed. The caller is not woken for
    // each: of a hundred requests, the wake-ups would cost more than the replies.
    std::vector<std::pair<size_t, Incoming>> Await(size_t count, absl::Duration deadline)
        ABSL_LOCKS_EXCLUDED(pending_->mu_);

   private:
    friend class PendingReplies;

    PendingReplies* const pending_;  // not owned
    uint64_t id_ = 0;
    base::CondVar arrival_;
    // Guarded by the pending's mu_.
    std::vector<std::pair<size_t, Incoming>> replies_;
    size_t awaited_ = 1;
  };

  // The pattern that matches every reply subject.
  std::string Subjects() const { return prefix_ + ".*.*"; }
  void Deliver(Incoming reply) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const std::string prefix_;
  base::Clock* const clock_;  // not owned
  base::Mutex mu_;
  uint64_t last_call_ ABSL_GUARDED_BY(mu_) = 0;
  absl::flat_hash_map<uint64_t, Call*> calls_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::nats
