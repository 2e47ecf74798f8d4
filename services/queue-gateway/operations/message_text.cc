#include "services/queue-gateway/operations/message_text.h"

#include <openssl/evp.h>

#include <array>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "services/queue-gateway/protocol/xml_reader.h"
#include "services/queue-gateway/protocol/xml_writer.h"

namespace muster::queue_gateway::operations {
namespace {

using protocol::ErrorCode;
using protocol::XmlElement;

std::string Md5(absl::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  MUSTER_CHECK(
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_md5(), nullptr) == 1,
      "no MD5");
  return {reinterpret_cast<const char*>(digest.data()), size};
}

std::optional<protocol::Error> CheckMd5(const Call& call) {
  const auto header = http::HeaderOf(call.http.headers, "content-md5");
  if (!header.has_value() || header->empty()) return std::nullopt;
  std::string wanted;
  if (absl::Base64Unescape(*header, &wanted) && wanted == Md5(call.http.body)) return std::nullopt;
  return ErrorCode::kMd5Mismatch;
}

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
