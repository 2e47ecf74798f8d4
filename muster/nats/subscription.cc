// SPDX-License-Identifier: Apache-2.0
#include "muster/nats/subscription.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "muster/base/names.h"
#include "muster/base/status.h"
#include "muster/nats/connection.h"
#include "muster/nats/names.h"
#include "muster/nats/status.h"

namespace muster::nats {

namespace {

std::string TextOf(const char* text) { return text == nullptr ? "" : text; }

// The server reports its status in messages without content: their header is such as "NATS/1.0 404
// No Messages".
void ReadServerStatus(natsMsg* message, Incoming* incoming) {
  const char* text = nullptr;
  if (natsMsgHeader_Get(message, "Status", &text) != NATS_OK) return;
  if (!absl::SimpleAtoi(text, &incoming->status)) return;
  if (natsMsgHeader_Get(message, "Description", &text) == NATS_OK) incoming->description = text;
}

}  // namespace

int64_t MillisecondsOf(absl::Duration timeout) {
  return std::max<int64_t>(1, absl::ToInt64Milliseconds(timeout));
}

Incoming IncomingOf(natsMsg* message) {
  Incoming incoming;
  incoming.subject = TextOf(natsMsg_GetSubject(message));
  incoming.reply = TextOf(natsMsg_GetReply(message));
  const int bytes = natsMsg_GetDataLength(message);
  if (bytes > 0) incoming.data.assign(natsMsg_GetData(message), static_cast<size_t>(bytes));
  if (bytes == 0) ReadServerStatus(message, &incoming);
  return incoming;
}

absl::StatusOr<MessagePtr> MessageOf(const Outgoing& outgoing, const std::string& reply) {
  MUSTER_RETURN_IF_ERROR(ValidateSubject(outgoing.subject));
  if (!reply.empty()) MUSTER_RETURN_IF_ERROR(ValidateSubject(reply));
  natsMsg* made = nullptr;
  MUSTER_RETURN_IF_ERROR(ToStatus(
      natsMsg_Create(&made, outgoing.subject.c_str(), reply.empty() ? nullptr : reply.c_str(),
                     outgoing.data.data(), static_cast<int>(outgoing.data.size())),
      absl::StrCat("message to ", outgoing.subject)));
  MessagePtr message(made);
  for (const Header& header : outgoing.headers) {
    MUSTER_RETURN_IF_ERROR(
        ToStatus(natsMsgHeader_Set(message.get(), header.name.c_str(), header.value.c_str()),
                 absl::StrCat("header ", header.name, " of a message to ", outgoing.subject)));
  }
  return message;
}

ReplyInbox::ReplyInbox() : subject_(absl::StrCat("_INBOX.", base::MakeInstanceId("pull"))) {}

absl::StatusOr<std::unique_ptr<ReplyInbox>> ReplyInbox::Open(natsConnection* connection) {
  std::unique_ptr<ReplyInbox> inbox(new ReplyInbox());
  MUSTER_RETURN_IF_ERROR(ToStatus(
      natsConnection_SubscribeSync(&inbox->subscription_, connection, inbox->subject_.c_str()),
      absl::StrCat("subscribing to ", inbox->subject_)));
  natsSubscription_SetPendingLimits(inbox->subscription_, kMaxPendingMessages, kMaxPendingBytes);
  return inbox;
}

absl::StatusOr<Incoming> ReplyInbox::Next(absl::Duration timeout) {
  natsMsg* message = nullptr;
  const natsStatus status =
      natsSubscription_NextMsg(&message, subscription_, MillisecondsOf(timeout));
  const MessagePtr owned(message);
  if (status == NATS_NO_RESPONDERS) {
    Incoming nobody;
    nobody.status = kNoResponders;
    return nobody;
  }
  MUSTER_RETURN_IF_ERROR(ToStatus(status, "waiting for a reply"));
  return IncomingOf(message);
}

PendingReplies::Call::Call(PendingReplies* pending) : pending_(pending) {
  base::MutexLock lock(&pending_->mu_);
  id_ = ++pending_->last_call_;
  pending_->calls_.emplace(id_, this);
}

PendingReplies::Call::~Call() {
  base::MutexLock lock(&pending_->mu_);
  pending_->calls_.erase(id_);
}

std::string PendingReplies::Call::ReplySubject(size_t place) const {
  return absl::StrCat(pending_->prefix_, ".", id_, ".", place);
}

std::vector<std::pair<size_t, Incoming>> PendingReplies::Call::Await(size_t count,
                                                                     absl::Duration deadline) {
  base::MutexLock lock(&pending_->mu_);
  awaited_ = count;
  bool late = false;
  while (!late && replies_.size() < count) {
    late = pending_->clock_->WaitUntil(&arrival_, &pending_->mu_, deadline);
  }
  return std::exchange(replies_, {});
}

void PendingReplies::Deliver(Incoming reply) {
  absl::string_view rest = reply.subject;
  if (!absl::ConsumePrefix(&rest, prefix_) || !absl::ConsumePrefix(&rest, ".")) return;
  const std::pair<absl::string_view, absl::string_view> address =
      absl::StrSplit(rest, absl::MaxSplits('.', 1));
  uint64_t call = 0, place = 0;
  if (!absl::SimpleAtoi(address.first, &call) || !absl::SimpleAtoi(address.second, &place)) return;
  base::MutexLock lock(&mu_);
  const auto found = calls_.find(call);
  if (found == calls_.end()) return;
  Call& waiting = *found->second;
  waiting.replies_.emplace_back(place, std::move(reply));
  if (waiting.replies_.size() >= waiting.awaited_) waiting.arrival_.NotifyOne();
}

}  // namespace muster::nats
