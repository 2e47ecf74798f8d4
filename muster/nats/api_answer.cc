// SPDX-License-Identifier: Apache-2.0
#include "muster/nats/api_answer.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/nats/jetstream.h"

namespace muster::nats {

namespace {

using nlohmann::json;

constexpr absl::string_view kErrorCodeUrl = "muster/nats-error-code";

// Error codes of the server that do not follow from their HTTP codes.
constexpr int kStreamNameInUse = 10058;
constexpr int kNoSuitablePeers = 10005;
constexpr int kConsumerNameInUse = 10013;
constexpr int kConsumerExists = 10148;
constexpr int kInsufficientResources = 10023;
constexpr int kStoreFailed = 10077;  // a limit of the stream, a full disk

// With which a server refuses an atomic batch that it may take as single messages. "Incomplete" is
// also its word after a lost message, and for a first message that it has refused silently.
constexpr int kAtomicRefusals[] = {
    10158,  // a message with the id of another is on its way
    kAtomicNotAllowed,
    10176,  // incomplete
    10199,  // too large
    10201,  // a message with the id of another one is there
    10210,  // too many of them are on their way
};

absl::StatusCode CodeOf(int http_code, int error_code) {
  switch (error_code) {
    case kStreamNameInUse:
    case kConsumerNameInUse:
    case kConsumerExists:
      return absl::StatusCode::kAlreadyExists;
    case kWrongLastSequence:
      return absl::StatusCode::kFailedPrecondition;
    case kNoSuitablePeers:
      // Of the servers of the cluster too few are there, or have room: one that forms has a leader
      // before it has all of its servers.
    case kLastSequenceUndecided:
      return absl::StatusCode::kUnavailable;
    case kInsufficientResources:
    case kStoreFailed:
      return absl::StatusCode::kResourceExhausted;
    default:
      break;
  }
  switch (http_code) {
    case 404:
      return absl::StatusCode::kNotFound;
    case 503:
      return absl::StatusCode::kUnavailable;
    case 500:
      // The server answers with this when storage is full, or a limit of the account is reached.
      return absl::StatusCode::kResourceExhausted;
    default:
      return absl::StatusCode::kInternal;
  }
}

absl::Status ErrorOf(const json& error, absl::string_view context) {
  const int http_code = Field(error, "code", 0), error_code = Field(error, "err_code", 0);
  absl::Status status(
      CodeOf(http_code, error_code),
      absl::StrCat(context, ": ", Field(error, "description", std::string("an error")),
                   " (JetStream error ", error_code, ")"));
  status.SetPayload(kErrorCodeUrl, absl::Cord(absl::string_view(absl::StrCat(error_code))));
  return status;
}

}  // namespace

absl::StatusOr<json> ParseAnswer(absl::string_view data, absl::string_view context) {
  json answer = json::parse(data.begin(), data.end(), nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) {
    return absl::InternalError(absl::StrCat(context, ": the answer is no JSON object"));
  }
  const auto error = answer.find("error");
  if (error != answer.end() && error->is_object()) return ErrorOf(*error, context);
  return answer;
}

std::string Text(const json& object, const char* field) {
  return Field(object, field, std::string());
}

json Part(const json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_object() ? *found : json::object();
}

absl::Time TimeOf(const json& object, const char* field) {
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, Text(object, field), &time, &error)) {
    return absl::InfinitePast();
  }
  return time;
}

int ErrorCodeOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kErrorCodeUrl);
  int code = 0;
  return payload.has_value() && absl::SimpleAtoi(std::string(*payload), &code) ? code : 0;
}

bool IsAtomicRefusal(const absl::Status& status) {
  const int code = ErrorCodeOf(status);
  return std::find(std::begin(kAtomicRefusals), std::end(kAtomicRefusals), code) !=
         std::end(kAtomicRefusals);
}

bool IsNoStream(const absl::Status& status) {
  return absl::IsNotFound(status) && ErrorCodeOf(status) != kNoMessageFound;
}

}  // namespace muster::nats
