// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/operations/message_text.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "services/queue-gateway/operations/content_md5.h"
#include "services/queue-gateway/protocol/xml_reader.h"
#include "services/queue-gateway/protocol/xml_writer.h"

namespace muster::queue_gateway::operations {
namespace {

using protocol::ErrorCode;
using protocol::XmlElement;

protocol::OrError<std::string> Bounded(std::string text) {
  if (text.size() <= kMaxTextBytes) return text;
  return protocol::Error(ErrorCode::kRequestBodyTooLarge,
                         {{"MaxLimit", absl::StrCat(kMaxTextBytes)}});
}

}  // namespace

protocol::OrError<std::string> TextOf(const Call& call) {
  if (const auto problem = CheckMd5(call)) return *problem;
  const absl::StatusOr<XmlElement> root = protocol::ParseXml(call.http.body);
  const XmlElement* const text =
      root.ok() && root->name == "QueueMessage" ? root->Child("MessageText") : nullptr;
  if (text == nullptr || !text->children.empty()) {
    return protocol::Error(
        ErrorCode::kInvalidXmlDocument,
        {{"Reason", root.ok() ? "It is no <QueueMessage> with text in a <MessageText>."
                              : std::string(root.status().message())}});
  }
  return Bounded(text->text);
}

protocol::OrError<std::string> RawTextOf(const Call& call) {
  if (const auto problem = CheckMd5(call)) return *problem;
  return Bounded(call.http.body);
}

std::string ShownText(absl::string_view body, bool is_2008) {
  if (!is_2008 && protocol::FitsXml(body)) return std::string(body);
  return absl::Base64Escape(body);
}

}  // namespace muster::queue_gateway::operations
