// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/operations/put_message.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "services/queue-gateway/operations/limits.h"
#include "services/queue-gateway/operations/message_text.h"
#include "services/queue-gateway/operations/operations.h"
#include "services/queue-gateway/operations/pop_receipt.h"
#include "services/queue-gateway/operations/queue_settings.h"
#include "services/queue-gateway/protocol/parameters.h"
#include "services/queue-gateway/protocol/reply.h"
#include "services/queue-gateway/protocol/version.h"
#include "services/queue-gateway/protocol/xml_writer.h"

namespace muster::queue_gateway::operations {
namespace {

using protocol::ErrorCode;
using protocol::Parameters;

constexpr char kTtl[] = "messagettl";
constexpr int64_t kForever = -1;

// The dialect of 2008 puts with PUT and a raw body, and gets no document back.
bool IsRaw(const Call& call) { return call.http.method == "PUT"; }

absl::Duration ReadTtl(const Call& call, const queue::Traits& engine, Parameters* parameters) {
  // Where no message expires, a caller that leaves the choice to the service accepts that. So does
  // one that sends the service's choice along, as Azure's first SDK for Java does with each put.
  if (!engine.per_message_ttl) {
    if (parameters->Text(kTtl) != absl::StrCat(kDefaultTtlSeconds)) {
      parameters->Integer(kTtl, kForever, kForever);
    }
    return queue::kNeverExpires;
  }
  const bool is_long_allowed = call.version >= protocol::kLongLivesVersion;
  const int64_t max = is_long_allowed ? INT32_MAX : kMaxSeconds;
  const auto text = parameters->Text(kTtl);
  // 0 is no time to live; it is told apart from one that is only too long.
  const int64_t seconds =
      parameters->Integer(kTtl, INT64_MIN, INT64_MAX).value_or(int64_t{kDefaultTtlSeconds});
  if (seconds > max) parameters->Fail(protocol::OutOfRange(kTtl, text, 1, max));
  if (seconds == kForever && is_long_allowed) return queue::kNeverExpires;
  if (seconds < 1) {
    parameters->Fail(protocol::InvalidParameter(kTtl, text, "It is at least 1, or -1."));
    return absl::ZeroDuration();
  }
  return absl::Seconds(seconds);
}

protocol::OrError<queue::NewMessage> MessageOf(const Call& call, const queue::Traits& engine) {
  Parameters parameters(call.target);
  queue::NewMessage message;
  message.ttl = ReadTtl(call, engine, &parameters);
  const int64_t max_delay = engine.delayed_put ? kMaxSeconds : 0;
  message.delay = absl::Seconds(parameters.Integer(kVisibility, 0, max_delay).value_or(0));
  if (!parameters.error().has_value() && message.delay >= message.ttl) {
    parameters.Fail(protocol::OutOfRange(kVisibility, parameters.Text(kVisibility), 0,
                                         absl::ToInt64Seconds(message.ttl) - 1));
  }
  if (parameters.error().has_value()) return *parameters.error();
  protocol::OrError<std::string> text = IsRaw(call) ? RawTextOf(call) : TextOf(call);
  if (!text.ok()) return text.error();
  if (text->size() > engine.max_body_bytes) {
    return protocol::Error(ErrorCode::kRequestBodyTooLarge,
                           {{"MaxLimit", absl::StrCat(engine.max_body_bytes)}});
  }
  message.body = *std::move(text);
  return message;
}

// The digest of what makes two puts one: of any length, it fits into an id.
std::string Digest(absl::string_view kind, absl::string_view content) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  MUSTER_CHECK(
      EVP_Digest(content.data(), content.size(), digest.data(), &size, EVP_sha256(), nullptr) == 1,
      "no SHA-256");
  return absl::StrCat(kind, absl::BytesToHexString(absl::string_view(
                                reinterpret_cast<const char*>(digest.data()), size)));
}

// A put without a request id is one of its own.
std::string DedupId(const Call& call, DedupBy by, absl::string_view text) {
  if (by == DedupBy::kText) return Digest("text ", text);
  const auto id = http::HeaderOf(call.http.headers, "x-ms-client-request-id");
  if (by == DedupBy::kNothing || !id.has_value() || id->empty()) return "";
  return Digest("request ", *id);
}

std::string Document(const queue::PutResult& put) {
  protocol::XmlWriter xml;
  xml.Open("QueueMessagesList").Open("QueueMessage");
  xml.Leaf("MessageId", put.message_id);
  xml.Leaf("InsertionTime", protocol::HttpDate(put.insertion_time));
  xml.Leaf("ExpirationTime", protocol::HttpDate(put.expiration_time));
  xml.Leaf("PopReceipt", PopReceiptOf(put.receipt, put.message_id));
  xml.Leaf("TimeNextVisible", protocol::HttpDate(put.next_visible_time));
  xml.Close().Close();
  return std::move(xml).Finish();
}

}  // namespace

protocol::OrError<queue::NewMessage> ReadPut(const Call& call, const Stores& stores) {
  if (IsRaw(call) && !call.in_first_dialect()) return ErrorCode::kUnsupportedHttpVerb;
  protocol::OrError<queue::NewMessage> message = MessageOf(call, stores.queues->traits());
  if (!message.ok()) return message.error();
  const auto settings = SettingsOf(call.queue(), stores);
  if (!settings.ok()) return protocol::FromStore(settings.status());
  message->dedup_id = DedupId(call, settings->dedup_by, message->body);
  return message;
}

Outcome ShowPut(const absl::StatusOr<queue::PutResult>& put, const Call& call) {
  if (!put.ok()) return protocol::FromStore(put.status());
  return IsRaw(call) ? protocol::Empty(201) : protocol::Xml(201, Document(*put));
}

Outcome PutMessage(const Call& call, const Stores& stores) {
  const protocol::OrError<queue::NewMessage> message = ReadPut(call, stores);
  if (!message.ok()) return message.error();
  const auto put = stores.queues->Put(call.queue(), absl::MakeConstSpan(&*message, 1));
  return put.ok() ? ShowPut(put->front(), call) : ShowPut(put.status(), call);
}

}  // namespace muster::queue_gateway::operations
