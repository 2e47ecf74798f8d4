// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/protocol/reply.h"

#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "services/queue-gateway/protocol/xml_writer.h"

namespace muster::queue_gateway::protocol {
namespace {

constexpr int kBusy = 503;
constexpr char kServer[] = "muster-queue-gateway";
// "9999-12-31 23:59:59" in seconds since 1970.
constexpr int64_t kLastSecond = 253402300799;

}  // namespace

std::string HttpDate(absl::Time time) {
  return absl::FormatTime("%a, %d %b %E4Y %H:%M:%S GMT",
                          std::min(time, absl::FromUnixSeconds(kLastSecond)), absl::UTCTimeZone());
}

http::Reply Empty(int status, http::Headers headers) { return {status, std::move(headers), ""}; }

http::Reply Xml(int status, std::string document) {
  return {status, {{"Content-Type", "application/xml"}}, std::move(document)};
}

std::string NewRequestId() {
  std::array<unsigned char, 16> bytes;
  MUSTER_CHECK(RAND_bytes(bytes.data(), bytes.size()) == 1, "no random bytes");
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0F) | 0x40);
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3F) | 0x80);
  const std::string hex = absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  return absl::StrCat(hex.substr(0, 8), "-", hex.substr(8, 4), "-", hex.substr(12, 4), "-",
                      hex.substr(16, 4), "-", hex.substr(20));
}

http::Reply ErrorReply(const Error& error, const ReplyContext& context) {
  const errors::ErrorInfo& info = errors::InfoOf(error.code);
  XmlWriter xml;
  xml.Open("Error").Leaf("Code", info.name);
  xml.Leaf("Message", absl::StrCat(info.message, "\nRequestId:", context.request_id, "\nTime:",
                                   absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", context.now,
                                                    absl::UTCTimeZone())));
  for (const auto& [name, value] : error.details) xml.Leaf(name, value);
  xml.Close();
  http::Reply reply = Xml(info.http_status, std::move(xml).Finish());
  reply.headers.emplace_back("x-ms-error-code", info.name);
  return reply;
}

void AddStandardHeaders(const ReplyContext& context, http::Reply* reply) {
  reply->headers.emplace_back("Server", kServer);
  reply->headers.emplace_back("x-ms-request-id", context.request_id);
  if (!context.version.empty()) reply->headers.emplace_back("x-ms-version", context.version);
  if (!context.client_request_id.empty()) {
    reply->headers.emplace_back("x-ms-client-request-id", context.client_request_id);
  }
  reply->headers.emplace_back("Date", HttpDate(context.now));
  if (reply->status == kBusy && !http::HeaderOf(reply->headers, "Retry-After").has_value()) {
    reply->headers.emplace_back("Retry-After", "1");
  }
}

}  // namespace muster::queue_gateway::protocol
