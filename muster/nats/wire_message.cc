#include "muster/nats/wire_message.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/nats/status.h"

namespace muster::nats {
namespace {

std::string TextOf(const char* text) { return text == nullptr ? "" : text; }

// The server speaks in messages without content: their header is "NATS/1.0 404 No Messages".
void ReadServerStatus(natsMsg* message, Incoming* incoming) {
  const char* text = nullptr;
  if (natsMsgHeader_Get(message, "Status", &text) != NATS_OK) return;
  if (!absl::SimpleAtoi(text, &incoming->status)) return;
  if (natsMsgHeader_Get(message, "Description", &text) == NATS_OK) incoming->description = text;
}

}  // namespace

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

}  // namespace muster::nats
