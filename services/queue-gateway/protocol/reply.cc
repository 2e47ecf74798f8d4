// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/protocol/reply.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/lru_map.h"
#include "muster/base/random.h"
#include "services/queue-gateway/protocol/xml_writer.h"

namespace muster::queue_gateway::protocol {
namespace {

constexpr int kBusy = 503;
constexpr char kServer[] = "muster-queue-gateway";
// "9999-12-31 23:59:59" in seconds since 1970.
constexpr int64_t kLastSecond = 253402300799;
constexpr size_t kRecentDates = 8;

}  // namespace

// The replies of a moment have the same few dates.
std::string HttpDate(absl::Time time) {
  thread_local base::LruMap<int64_t, std::string> recent(kRecentDates);
  const int64_t second = std::min(absl::ToUnixSeconds(time), kLastSecond);
  const auto [text, is_new] = recent.FindOrAdd(second);
  if (is_new) {
    *text = absl::FormatTime("%a, %d %b %E4Y %H:%M:%S GMT", absl::FromUnixSeconds(second),
                             absl::UTCTimeZone());
  }
  return *text;
}

http::Reply Empty(int status, http::Headers headers) { return {status, std::move(headers), ""}; }

http::Reply Xml(int status, std::string document) {
  return {status, {{"Content-Type", "application/xml"}}, std::move(document)};
}

std::string NewRequestId() {
  thread_local std::mt19937_64 random(base::RandomSeed());
  const std::string hex =
      absl::StrCat(absl::Hex((random() & ~uint64_t{0xF000}) | 0x4000, absl::kZeroPad16),
                   absl::Hex((random() >> 2) | uint64_t{1} << 63, absl::kZeroPad16));
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
