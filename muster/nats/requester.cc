// SPDX-License-Identifier: Apache-2.0
#include "muster/nats/requester.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "muster/base/clock.h"
#include "muster/base/names.h"
#include "muster/base/status.h"
#include "muster/nats/status.h"

namespace muster::nats {
namespace {

// Not ResourceExhausted: of several messages the first may be in the buffer, and leave when the
// connection is back. So it is wrong to report that nothing was sent.
absl::Status SentStatus(natsStatus status, const std::string& doing) {
  if (status != NATS_INSUFFICIENT_BUFFER) return ToStatus(status, doing);
  return absl::UnavailableError(
      absl::StrCat(doing, ": there is no connection, and the buffer of unsent messages is full"));
}

absl::Status NoAnswer(const Outgoing& request, absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("no answer from ", request.subject, ": ", why));
}

absl::StatusOr<Incoming> CheckListened(const Outgoing& request, Incoming reply) {
  if (reply.status == kNoResponders) return NobodyListens(request.subject);
  return reply;
}

// Of several messages the first may be sent when a later one is refused. So it is wrong to report
// that nothing was sent.
absl::Status SentInPart(const absl::Status& why) {
  if (why.ok() || absl::IsUnavailable(why)) return why;
  return absl::UnavailableError(absl::StrCat("only a part was sent: ", why.ToString()));
}

// Counts requests as being in flight, for a scope.
class InFlight {
 public:
  InFlight(std::atomic<int64_t>* count, size_t requests)
      : count_(count), requests_(static_cast<int64_t>(requests)) {
    *count_ += requests_;
  }
  ~InFlight() { *count_ -= requests_; }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

 private:
  std::atomic<int64_t>* const count_;  // not owned
  const int64_t requests_;
};

}  // namespace

Requester::Requester(bool prompt)
    : prompt_(prompt),
      replies_(absl::StrCat("_INBOX.", base::MakeInstanceId("inbox")), base::RealClock()) {}

absl::Status Requester::Begin(natsConnection* connection) {
  connection_ = connection;
  auto heard = std::make_unique<CallbackSubscription>(
      [this](const Incoming& reply) { replies_.Deliver(reply); });
  MUSTER_RETURN_IF_ERROR(heard->Begin(connection, replies_.Subjects()));
  heard_replies_ = std::move(heard);
  return absl::OkStatus();
}

void Requester::End() {
  heard_replies_.reset();
  base::MutexLock lock(&mu_);
  inboxes_.clear();
}

void Requester::LimitPatience(absl::Duration patience) {
  patient_until_ = absl::ToInt64Nanoseconds(base::RealClock()->Monotonic() + patience);
}

absl::StatusOr<absl::Duration> Requester::PatienceOf(const Outgoing& request,
                                                     absl::Duration timeout) const {
  const int64_t until = patient_until_;
  if (until == kForEver || IsConnected()) return timeout;
  const absl::Duration patience = absl::Nanoseconds(until) - base::RealClock()->Monotonic();
  if (patience > absl::ZeroDuration()) return std::min(timeout, patience);
  return NoAnswer(request, "there is no connection, and this process is about to end");
}

absl::Status Requester::Send(const Outgoing& message, const std::string& reply) {
  MUSTER_ASSIGN_OR_RETURN(const MessagePtr made, MessageOf(message, reply));
  return SentStatus(natsConnection_PublishMsg(connection_, made.get()),
                    absl::StrCat("publishing to ", message.subject));
}

// Confirms by a message to this connection itself. The flush of nats.c sends the waiting messages
// off, but its result means nothing: it is OK also when the ping could not be sent.
absl::Status Requester::Flush(absl::Duration timeout) {
  base::Clock* const clock = base::RealClock();
  const absl::Duration deadline = clock->Monotonic() + timeout;
  PendingReplies::Call echo(&replies_);
  MUSTER_RETURN_IF_ERROR(Send({.subject = echo.ReplySubject(0)}, ""));
  if (!prompt_) {
    const absl::Duration look = std::min(timeout, kLookWhetherConnected);
    (void)natsConnection_FlushTimeout(connection_, MillisecondsOf(look));
  }
  while (IsConnected() && clock->Monotonic() < deadline) {
    const absl::Duration look = clock->Monotonic() + kLookWhetherConnected;
    if (!echo.Await(1, std::min(deadline, look)).empty()) return absl::OkStatus();
  }
  return absl::UnavailableError("flushing the NATS connection: the server has not confirmed it");
}

absl::Status Requester::SendOff(absl::Duration timeout) {
  if (prompt_) return absl::OkStatus();
  return ToStatus(natsConnection_FlushTimeout(connection_, MillisecondsOf(timeout)),
                  "flushing the NATS connection");
}

// nats.c sends such a request off by itself, without a word from the server to say that it has it.
absl::StatusOr<Incoming> Requester::RequestOne(const Outgoing& request, absl::Duration timeout) {
  MUSTER_ASSIGN_OR_RETURN(const MessagePtr made, MessageOf(request, ""));
  natsMsg* reply = nullptr;
  const natsStatus status =
      natsConnection_RequestMsg(&reply, connection_, made.get(), MillisecondsOf(timeout));
  const MessagePtr owned(reply);
  if (status == NATS_NO_RESPONDERS) return NobodyListens(request.subject);
  if (status == NATS_TIMEOUT) return NoAnswer(request, "time is up");
  MUSTER_RETURN_IF_ERROR(SentStatus(status, absl::StrCat("asking ", request.subject)));
  return CheckListened(request, IncomingOf(reply));
}

absl::StatusOr<std::vector<absl::StatusOr<Incoming>>> Requester::RequestAll(
    absl::Span<const Outgoing> requests, absl::Duration timeout) {
  if (requests.empty()) return std::vector<absl::StatusOr<Incoming>>();
  MUSTER_ASSIGN_OR_RETURN(timeout, PatienceOf(requests.front(), timeout));
  const InFlight counted(&in_flight_, requests.size());
  if (requests.size() == 1) {
    return std::vector<absl::StatusOr<Incoming>>{RequestOne(requests.front(), timeout)};
  }
  base::Clock* const clock = base::RealClock();
  const absl::Duration deadline = clock->Monotonic() + timeout;
  PendingReplies::Call call(&replies_);
  for (size_t i = 0; i < requests.size(); ++i) {
    const absl::Status sent = Send(requests[i], call.ReplySubject(i));
    MUSTER_RETURN_IF_ERROR(i == 0 ? sent : SentInPart(sent));
  }
  MUSTER_RETURN_IF_ERROR(SentInPart(SendOff(timeout)));
  std::vector<absl::StatusOr<Incoming>> answers(requests.size());
  std::vector<bool> heard(requests.size());
  for (size_t missing = requests.size(); missing > 0;) {
    auto replies = call.Await(missing, deadline);
    if (replies.empty()) break;
    for (auto& [place, reply] : replies) {
      if (place >= answers.size() || heard[place]) continue;
      answers[place] = CheckListened(requests[place], std::move(reply));
      heard[place] = true;
      --missing;
    }
  }
  for (size_t i = 0; i < answers.size(); ++i) {
    if (!heard[i]) answers[i] = NoAnswer(requests[i], "time is up");
  }
  return answers;
}

absl::Status Requester::RequestMany(const Outgoing& request, absl::Duration timeout,
                                    absl::FunctionRef<bool(Incoming)> take) {
  MUSTER_ASSIGN_OR_RETURN(timeout, PatienceOf(request, timeout));
  const InFlight counted(&in_flight_, 1);
  base::Clock* const clock = base::RealClock();
  const absl::Duration deadline = clock->Monotonic() + timeout;
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<ReplyInbox> inbox, TakeReplyInbox());
  MUSTER_RETURN_IF_ERROR(Send(request, inbox->subject()));
  MUSTER_RETURN_IF_ERROR(SendOff(timeout));
  for (;;) {
    // Return the inbox to the pool only after success: after an error a late reply may still
    // arrive.
    MUSTER_ASSIGN_OR_RETURN(Incoming reply, inbox->Next(deadline - clock->Monotonic()));
    MUSTER_ASSIGN_OR_RETURN(Incoming answer, CheckListened(request, std::move(reply)));
    if (!take(std::move(answer))) break;
  }
  base::MutexLock lock(&mu_);
  inboxes_.push_back(std::move(inbox));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ReplyInbox>> Requester::TakeReplyInbox() {
  {
    base::MutexLock lock(&mu_);
    if (!inboxes_.empty()) {
      std::unique_ptr<ReplyInbox> inbox = std::move(inboxes_.back());
      inboxes_.pop_back();
      return inbox;
    }
  }
  return ReplyInbox::Open(connection_);
}

}  // namespace muster::nats
