#include "muster/nats/own_inbox.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/instance_id.h"
#include "muster/base/status_macros.h"
#include "muster/nats/limits.h"
#include "muster/nats/status.h"
#include "muster/nats/wire_message.h"

namespace muster::nats {

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
  const int64_t milliseconds = std::max<int64_t>(1, absl::ToInt64Milliseconds(timeout));
  const natsStatus status = natsSubscription_NextMsg(&message, subscription_, milliseconds);
  const MessagePtr owned(message);
  if (status == NATS_NO_RESPONDERS) {
    Incoming nobody;
    nobody.status = kNoResponders;
    return nobody;
  }
  MUSTER_RETURN_IF_ERROR(ToStatus(status, "waiting for a reply"));
  return IncomingOf(message);
}

}  // namespace muster::nats
