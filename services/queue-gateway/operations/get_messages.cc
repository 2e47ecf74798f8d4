// SPDX-License-Identifier: Apache-2.0

// Get Messages, which leases them, and how messages are shown.
#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "services/queue-gateway/operations/limits.h"
#include "services/queue-gateway/operations/message_text.h"
#include "services/queue-gateway/operations/names.h"
#include "services/queue-gateway/operations/operations.h"
#include "services/queue-gateway/operations/pop_receipt.h"
#include "services/queue-gateway/operations/queue_settings.h"
#include "services/queue-gateway/operations/take_messages.h"
#include "services/queue-gateway/protocol/parameters.h"
#include "services/queue-gateway/protocol/reply.h"
#include "services/queue-gateway/protocol/xml_writer.h"

namespace muster::queue_gateway::operations {
namespace {

// A message without a lease, as peek shows it, has no receipt and no time at which that ends.
void Write(const queue::Message& message, bool is_2008, protocol::XmlWriter* xml) {
  xml->Open("QueueMessage").Leaf("MessageId", message.message_id);
  xml->Leaf("InsertionTime", protocol::HttpDate(message.insertion_time));
  xml->Leaf("ExpirationTime", protocol::HttpDate(message.expiration_time));
  if (!message.receipt.empty()) {
    xml->Leaf("PopReceipt", PopReceiptOf(message.receipt, message.message_id));
    xml->Leaf("TimeNextVisible", protocol::HttpDate(message.next_visible_time));
  }
  // Azure's service has counted since 2009.
  if (!is_2008) xml->Leaf("DequeueCount", absl::StrCat(message.dequeue_count));
  xml->Leaf("MessageText", ShownText(message.body, is_2008)).Close();
}

}  // namespace

http::Reply ShowMessages(const std::vector<queue::Message>& messages, const Call& call) {
  protocol::XmlWriter xml;
  xml.Open("QueueMessagesList");
  for (const queue::Message& message : messages) Write(message, call.in_first_dialect(), &xml);
  xml.Close();
  http::Reply reply = protocol::Xml(200, std::move(xml).Finish());
  reply.headers.emplace_back("Cache-Control", "no-cache");
  return reply;
}

protocol::OrError<Get> ReadGet(const Call& call, const Stores& stores) {
  if (const auto problem = CheckQueueName(call.resource.queue)) return *problem;
  protocol::Parameters parameters(call.target);
  Get get;
  get.queue = call.queue();
  get.options.max_messages =
      static_cast<int>(parameters.Integer(kCount, 1, kMaxMessages).value_or(1));
  const std::optional<int64_t> visibility = parameters.Integer(kVisibility, 1, kMaxSeconds);
  if (parameters.error().has_value()) return *parameters.error();
  get.holder = HolderOf(call);
  auto settings = SettingsOf(call.queue(), stores);
  if (!settings.ok()) return protocol::FromStore(settings.status());
  get.settings = *std::move(settings);
  get.options.visibility =
      visibility.has_value()
          ? absl::Seconds(*visibility)
          : get.settings.visibility.value_or(absl::Seconds(kDefaultVisibilitySeconds));
  // How long Azure lets a client have its service try; it cannot make a get wait longer.
  int64_t timeout = 0;
  if (absl::SimpleAtoi(parameters.Text("timeout"), &timeout) && timeout >= 0) {
    get.settings.long_poll = std::min(get.settings.long_poll, absl::Seconds(timeout));
  }
  return get;
}

Outcome GetMessages(const Call& call, const Stores& stores) {
  const protocol::OrError<Get> get = ReadGet(call, stores);
  if (!get.ok()) return get.error();
  const auto messages = TakeMessages(*get, stores);
  if (!messages.ok()) return protocol::FromStore(messages.status());
  return ShowMessages(*messages, call);
}

}  // namespace muster::queue_gateway::operations
