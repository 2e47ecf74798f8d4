// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/status.h"

#include <algorithm>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/rpc/limits.h"

namespace muster::rpc {
namespace {

// Other payloads are private to this process and do not leave it.
constexpr absl::string_view kDetailPrefix = "type.googleapis.com/google.rpc.";
constexpr absl::string_view kDomain = "muster";

template <typename Detail>
std::string TypeUrl() {
  return absl::StrCat("type.googleapis.com/", std::string(Detail::descriptor()->full_name()));
}

template <typename Detail>
absl::Status With(absl::Status status, const Detail& detail) {
  status.SetPayload(TypeUrl<Detail>(), absl::Cord(absl::string_view(detail.SerializeAsString())));
  return status;
}

template <typename Detail>
std::optional<Detail> Find(const absl::Status& status) {
  const auto payload = status.GetPayload(TypeUrl<Detail>());
  Detail detail;
  if (!payload.has_value() || !detail.ParseFromString(std::string(*payload))) return std::nullopt;
  return detail;
}

// UTF-8 as protobuf demands it, cut between two characters.
std::string Sendable(absl::string_view message) {
  std::string text;
  while (!message.empty()) {
    const size_t bytes = base::Utf8Prefix(message);
    const size_t taken = std::max<size_t>(bytes, 1);
    if (text.size() + taken > kMaxStatusMessageBytes) break;
    absl::StrAppend(&text, bytes == 0 ? absl::string_view("?") : message.substr(0, bytes));
    message.remove_prefix(taken);
  }
  return text;
}

std::vector<std::pair<std::string, std::string>> DetailsOf(const absl::Status& status) {
  std::vector<std::pair<std::string, std::string>> details;
  status.ForEachPayload([&details](absl::string_view type, const absl::Cord& payload) {
    if (absl::StartsWith(type, kDetailPrefix)) {
      details.emplace_back(std::string(type), std::string(payload));
    }
  });
  // Payloads come in no order; the same status should be the same bytes.
  std::sort(details.begin(), details.end());
  return details;
}

google::rpc::Status Packed(const absl::Status& status, const std::string& message) {
  google::rpc::Status packed;
  packed.set_code(static_cast<int>(status.code()));
  packed.set_message(message);
  size_t bytes = 0;
  for (auto& [type, value] : DetailsOf(status)) {
    bytes += type.size() + value.size();
    if (bytes > kMaxStatusDetailBytes) break;
    google::protobuf::Any* const detail = packed.add_details();
    detail->set_type_url(type);
    detail->set_value(std::move(value));
  }
  return packed;
}

// With the reason that it has in this process, for programs elsewhere.
absl::Status WithItsReason(const absl::Status& status) {
  const std::optional<base::Mismatch> mismatch = base::MismatchOf(status);
  if (!mismatch.has_value() || Reason(status).has_value()) return status;
  return WithReason(status, {kStreamIncompatible,
                             {{"stream", mismatch->what},
                              {"field", mismatch->field},
                              {"is", mismatch->is},
                              {"wanted", mismatch->wanted}}});
}

// What gRPC itself answers without a word: Internal, where it cannot read the request, such as a
// string that is not UTF-8. Unimplemented has none here: callers say it with the address.
std::string NoReason(absl::StatusCode code) {
  if (code == absl::StatusCode::kUnimplemented) return "";
  const std::string words =
      absl::StrCat("the server gave no reason for ", absl::StatusCodeToString(code));
  return code == absl::StatusCode::kInternal ? absl::StrCat(words, "; is a text not UTF-8?")
                                             : words;
}

bool IsGrpcCode(int code) {
  return code >= grpc::StatusCode::OK && code <= grpc::StatusCode::UNAUTHENTICATED;
}

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const int raw_code = status.raw_code();
  const auto code =
      IsGrpcCode(raw_code) ? static_cast<grpc::StatusCode>(raw_code) : grpc::StatusCode::UNKNOWN;
  const std::string message = Sendable(status.message());
  const google::rpc::Status packed = Packed(WithItsReason(status), message);
  // Without details the trailer would only say the code and the message once more.
  if (packed.details().empty()) return grpc::Status(code, message);
  return grpc::Status(code, message, packed.SerializeAsString());
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  absl::Status result(code,
                      status.error_message().empty() ? NoReason(code) : status.error_message());
  google::rpc::Status packed;
  if (status.error_details().empty() || !packed.ParseFromString(status.error_details())) {
    return result;
  }
  for (const google::protobuf::Any& detail : packed.details()) {
    if (absl::StartsWith(detail.type_url(), kDetailPrefix)) {
      result.SetPayload(detail.type_url(), absl::Cord(absl::string_view(detail.value())));
    }
  }
  return result;
}

absl::Status WithViolations(absl::Status status, const std::vector<FieldViolation>& violations) {
  google::rpc::BadRequest detail;
  for (const FieldViolation& violation : violations) {
    auto* const added = detail.add_field_violations();
    added->set_field(violation.field);
    added->set_description(Sendable(violation.description));
  }
  return With(std::move(status), detail);
}

absl::Status BadField(absl::string_view field, absl::string_view why) {
  return WithViolations(absl::InvalidArgumentError(absl::StrCat(field, ": ", why)),
                        {{std::string(field), std::string(why)}});
}

absl::Status WithRetryAfter(absl::Status status, absl::Duration delay) {
  google::rpc::RetryInfo detail;
  const int64_t seconds = absl::IDivDuration(delay, absl::Seconds(1), &delay);
  detail.mutable_retry_delay()->set_seconds(seconds);
  detail.mutable_retry_delay()->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(delay)));
  return With(std::move(status), detail);
}

absl::Status WithReason(absl::Status status, const ErrorReason& reason) {
  google::rpc::ErrorInfo detail;
  detail.set_reason(reason.reason);
  detail.set_domain(std::string(kDomain));
  for (const auto& [name, value] : reason.metadata) {
    (*detail.mutable_metadata())[name] = Sendable(value);
  }
  return With(std::move(status), detail);
}

std::vector<FieldViolation> Violations(const absl::Status& status) {
  std::vector<FieldViolation> violations;
  const auto detail = Find<google::rpc::BadRequest>(status);
  if (!detail.has_value()) return violations;
  for (const auto& violation : detail->field_violations()) {
    violations.push_back({violation.field(), violation.description()});
  }
  return violations;
}

std::optional<absl::Duration> RetryAfter(const absl::Status& status) {
  const auto detail = Find<google::rpc::RetryInfo>(status);
  if (!detail.has_value()) return std::nullopt;
  return absl::Seconds(detail->retry_delay().seconds()) +
         absl::Nanoseconds(detail->retry_delay().nanos());
}

std::optional<ErrorReason> Reason(const absl::Status& status) {
  const auto detail = Find<google::rpc::ErrorInfo>(status);
  if (!detail.has_value() || detail->domain() != std::string(kDomain)) return std::nullopt;
  return ErrorReason{detail->reason(), {detail->metadata().begin(), detail->metadata().end()}};
}

}  // namespace muster::rpc
