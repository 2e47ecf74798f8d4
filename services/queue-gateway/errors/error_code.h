// SPDX-License-Identifier: Apache-2.0

// ErrorCode: why a request is refused, by the codes of the Queue Storage API. The table of all of
// them, with their HTTP status and text, is in error_code.cc.
#pragma once

#include "absl/strings/string_view.h"

namespace muster::queue_gateway::errors {

enum class ErrorCode {
  kAuthenticationFailed,
  kAuthorizationPermissionMismatch,
  kAuthorizationProtocolMismatch,
  kAuthorizationResourceTypeMismatch,
  kAuthorizationServiceMismatch,
  kAuthorizationSourceIpMismatch,
  kCorsPreflightFailure,
  kEmptyMetadataKey,
  kInsufficientAccountPermissions,
  kInternalError,
  kInvalidAuthenticationInfo,  // of a bearer token it is 401
  kInvalidHeaderValue,
  kInvalidInput,
  kInvalidMarker,
  kInvalidMd5,
  kInvalidMetadata,
  kInvalidQueryParameterValue,
  kInvalidResourceName,
  kInvalidUri,
  kInvalidXmlDocument,
  kMd5Mismatch,
  kMessageNotFound,
  kMetadataTooLarge,
  kMissingRequiredHeader,
  kMissingRequiredQueryParameter,
  kNoAuthenticationInformation,
  kNotImplemented,
  kOperationTimedOut,
  kOutOfRangeInput,
  kOutOfRangeQueryParameterValue,
  kPopReceiptMismatch,
  kQueueAlreadyExists,
  kQueueNotFound,
  kRequestBodyTooLarge,
  kRequestHeadersTooLarge,
  kResourceNotFound,
  kServerBusy,
  kUnsupportedHttpVerb,
};

struct ErrorInfo {
  ErrorCode code;
  absl::string_view name;  // as in x-ms-error-code
  int http_status;
  absl::string_view message;
};

const ErrorInfo& InfoOf(ErrorCode code);

}  // namespace muster::queue_gateway::errors
