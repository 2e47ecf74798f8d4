// SPDX-License-Identifier: Apache-2.0

// Converts an absl::Status for the wire and back: its code as gRPC's, which has the same numbers,
// and its details as google.rpc messages that clients in every language understand.
//
//   absl::Status ──ToGrpc──► status, message, grpc-status-details-bin ──FromGrpc──► absl::Status
//
// In an absl::Status a detail is a payload, under its type URL: Annotate and StatusOr keep it, and
// other callers do not notice it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/support/status.h"

namespace muster::rpc {

// The reason for a base::Mismatch: a stream exists with other settings than required
// (base/status.h). Metadata: stream, field, is, wanted.
inline constexpr char kStreamIncompatible[] = "STREAM_INCOMPATIBLE";

// What of `status` a trailer can hold (limits.h): a longer message is cut between two characters,
// bytes in it that are not UTF-8 become "?", and details that do not fit are left out, the last
// ones first. A code that gRPC does not have becomes UNKNOWN. A base::Mismatch becomes its reason.
grpc::Status ToGrpc(const absl::Status& status);

// The other way. Details that cannot be read are left out; the code and message stay.
absl::Status FromGrpc(const grpc::Status& status);

// A field of a request, and why it is refused.
struct FieldViolation {
  std::string field;  // its path: "header.request_id"
  std::string description;

  friend bool operator==(const FieldViolation&, const FieldViolation&) = default;
};

// Why a call failed, for programs.
struct ErrorReason {
  std::string reason;  // in capitals, like WRONG_OFFSET; docs/api.md names them
  std::map<std::string, std::string> metadata = {};

  friend bool operator==(const ErrorReason&, const ErrorReason&) = default;
};

// Each returns `status` with the detail added; it replaces one of its kind. OK stays OK.
absl::Status WithViolations(absl::Status status, const std::vector<FieldViolation>& violations);
absl::Status WithRetryAfter(absl::Status status, absl::Duration delay);
// In the domain "muster".
absl::Status WithReason(absl::Status status, const ErrorReason& reason);

// InvalidArgument for one field of a request: "field: why", with that violation.
absl::Status BadField(absl::string_view field, absl::string_view why);

// Each reads the detail, added here or by the server. Empty and nullopt: no such detail, or another
// domain.
std::vector<FieldViolation> Violations(const absl::Status& status);
std::optional<absl::Duration> RetryAfter(const absl::Status& status);
std::optional<ErrorReason> Reason(const absl::Status& status);

}  // namespace muster::rpc
