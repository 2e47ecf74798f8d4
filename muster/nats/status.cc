// SPDX-License-Identifier: Apache-2.0
#include "muster/nats/status.h"

#include <nats/nats.h>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace muster::nats {
namespace {

constexpr absl::string_view kNobodyListensUrl = "muster/nats-nobody-listens";

absl::StatusCode CodeOf(natsStatus status) {
  switch (status) {
    case NATS_IO_ERROR:
    case NATS_CONNECTION_CLOSED:
    case NATS_NO_SERVER:
    case NATS_STALE_CONNECTION:
    case NATS_CONNECTION_DISCONNECTED:
    case NATS_NOT_YET_CONNECTED:
    case NATS_DRAINING:
    case NATS_TIMEOUT:
    case NATS_NO_RESPONDERS:
    case NATS_SYS_ERROR:
      return absl::StatusCode::kUnavailable;
    case NATS_ADDRESS_MISSING:
    case NATS_INVALID_SUBJECT:
    case NATS_INVALID_ARG:
    case NATS_INVALID_TIMEOUT:
    case NATS_MAX_PAYLOAD:
    case NATS_SSL_ERROR:
    case NATS_SECURE_CONNECTION_WANTED:
    case NATS_SECURE_CONNECTION_REQUIRED:
      return absl::StatusCode::kInvalidArgument;
    case NATS_CONNECTION_AUTH_FAILED:
    case NATS_NOT_PERMITTED:
      return absl::StatusCode::kPermissionDenied;
    case NATS_NOT_FOUND:
      return absl::StatusCode::kNotFound;
    case NATS_NO_MEMORY:
    case NATS_INSUFFICIENT_BUFFER:
      return absl::StatusCode::kResourceExhausted;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::Status ToStatus(int nats_status, absl::string_view context) {
  const auto status = static_cast<natsStatus>(nats_status);
  if (status == NATS_OK) return absl::OkStatus();
  return absl::Status(CodeOf(status), absl::StrCat(context, ": ", natsStatus_GetText(status)));
}

absl::Status NobodyListens(absl::string_view subject) {
  absl::Status status = absl::UnavailableError(
      absl::StrCat("no answer from ", subject, ": no process listens there"));
  status.SetPayload(kNobodyListensUrl, absl::Cord());
  return status;
}

bool IsNobodyListens(const absl::Status& status) {
  return status.GetPayload(kNobodyListensUrl).has_value();
}

}  // namespace muster::nats
