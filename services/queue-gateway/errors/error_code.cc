// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/errors/error_code.h"

#include <array>

#include "muster/base/check.h"

namespace muster::queue_gateway::errors {
namespace {

// In the order of the enum.
constexpr std::array kErrors = {
    ErrorInfo{ErrorCode::kAuthenticationFailed, "AuthenticationFailed", 403,
              "The request was not authenticated: its credentials or their signature are missing, "
              "not valid, or not valid now."},
    ErrorInfo{ErrorCode::kAuthorizationPermissionMismatch, "AuthorizationPermissionMismatch", 403,
              "The signed permissions do not allow this operation."},
    ErrorInfo{ErrorCode::kAuthorizationProtocolMismatch, "AuthorizationProtocolMismatch", 403,
              "The signed protocols do not contain the protocol of this request."},
    ErrorInfo{ErrorCode::kAuthorizationResourceTypeMismatch, "AuthorizationResourceTypeMismatch",
              403,
              "The signed resource types do not contain the kind of resource that this operation "
              "is about."},
    ErrorInfo{ErrorCode::kAuthorizationServiceMismatch, "AuthorizationServiceMismatch", 403,
              "The signed services do not contain the queue service."},
    ErrorInfo{ErrorCode::kAuthorizationSourceIpMismatch, "AuthorizationSourceIPMismatch", 403,
              "The signed addresses do not contain the address that this request comes from."},
    ErrorInfo{ErrorCode::kCorsPreflightFailure, "CorsPreflightFailure", 403,
              "CORS not enabled or no matching rule found for this request."},
    ErrorInfo{ErrorCode::kEmptyMetadataKey, "EmptyMetadataKey", 400,
              "The key for one of the metadata key-value pairs is empty."},
    ErrorInfo{ErrorCode::kInsufficientAccountPermissions, "InsufficientAccountPermissions", 403,
              "Only operations that read are allowed at the secondary location."},
    ErrorInfo{ErrorCode::kInternalError, "InternalError", 500,
              "The server encountered an internal error. Please retry the request."},
    ErrorInfo{ErrorCode::kInvalidAuthenticationInfo, "InvalidAuthenticationInfo", 400,
              "The authentication information has not the right format. Check the Authorization "
              "header."},
    ErrorInfo{ErrorCode::kInvalidHeaderValue, "InvalidHeaderValue", 400,
              "The value for one of the HTTP headers is not in the correct format."},
    ErrorInfo{ErrorCode::kInvalidInput, "InvalidInput", 400,
              "One of the request inputs is not valid."},
    ErrorInfo{ErrorCode::kInvalidMarker, "InvalidMarker", 400, "The specified marker is invalid."},
    ErrorInfo{ErrorCode::kInvalidMd5, "InvalidMd5", 400,
              "The MD5 value specified in the request is invalid. It must be 128 bits and "
              "Base64-encoded."},
    ErrorInfo{ErrorCode::kInvalidMetadata, "InvalidMetadata", 400,
              "The metadata specified is invalid. It has characters that are not permitted."},
    ErrorInfo{ErrorCode::kInvalidQueryParameterValue, "InvalidQueryParameterValue", 400,
              "Value for one of the query parameters specified in the request URI is invalid."},
    ErrorInfo{ErrorCode::kInvalidResourceName, "InvalidResourceName", 400,
              "The specified resource name contains invalid characters."},
    ErrorInfo{ErrorCode::kInvalidUri, "InvalidUri", 400,
              "The requested URI does not represent any resource on the server."},
    ErrorInfo{ErrorCode::kInvalidXmlDocument, "InvalidXmlDocument", 400,
              "XML specified is not syntactically valid."},
    ErrorInfo{ErrorCode::kMd5Mismatch, "Md5Mismatch", 400,
              "The MD5 value specified in the request did not match with the MD5 value calculated "
              "by the server."},
    ErrorInfo{ErrorCode::kMessageNotFound, "MessageNotFound", 404,
              "The specified message does not exist."},
    ErrorInfo{ErrorCode::kMetadataTooLarge, "MetadataTooLarge", 400,
              "The metadata specified exceeds the maximum allowable limit (8 KB)."},
    ErrorInfo{ErrorCode::kMissingRequiredHeader, "MissingRequiredHeader", 400,
              "An HTTP header that's mandatory for this request is not specified."},
    ErrorInfo{ErrorCode::kMissingRequiredQueryParameter, "MissingRequiredQueryParameter", 400,
              "A query parameter that's mandatory for this request is not specified."},
    ErrorInfo{ErrorCode::kNoAuthenticationInformation, "NoAuthenticationInformation", 401,
              "The request has no credentials. See the header WWW-Authenticate."},
    ErrorInfo{ErrorCode::kNotImplemented, "NotImplemented", 501,
              "The requested operation is not implemented on the specified resource."},
    ErrorInfo{ErrorCode::kOperationTimedOut, "OperationTimedOut", 500,
              "Operation could not be completed within the permitted time. Its outcome is "
              "unknown."},
    ErrorInfo{ErrorCode::kOutOfRangeInput, "OutOfRangeInput", 400,
              "The specified resource name length is not within the permissible limits."},
    ErrorInfo{ErrorCode::kOutOfRangeQueryParameterValue, "OutOfRangeQueryParameterValue", 400,
              "One of the query parameters specified in the request URI is outside the permissible "
              "range."},
    ErrorInfo{ErrorCode::kPopReceiptMismatch, "PopReceiptMismatch", 400,
              "The specified pop receipt did not match the pop receipt for a dequeued message."},
    ErrorInfo{ErrorCode::kQueueAlreadyExists, "QueueAlreadyExists", 409,
              "The specified queue already exists."},
    ErrorInfo{ErrorCode::kQueueNotFound, "QueueNotFound", 404,
              "The specified queue does not exist."},
    ErrorInfo{ErrorCode::kRequestBodyTooLarge, "RequestBodyTooLarge", 413,
              "The request body is too large and exceeds the maximum permissible limit."},
    ErrorInfo{ErrorCode::kRequestHeadersTooLarge, "RequestHeadersTooLarge", 431,
              "The request line and the headers are larger than the server permits."},
    ErrorInfo{ErrorCode::kResourceNotFound, "ResourceNotFound", 404,
              "The specified resource does not exist."},
    ErrorInfo{ErrorCode::kServerBusy, "ServerBusy", 503,
              "The server is currently unable to receive requests. Please retry your request."},
    ErrorInfo{ErrorCode::kUnsupportedHttpVerb, "UnsupportedHttpVerb", 405,
              "The resource doesn't support specified Http Verb."},
};

}  // namespace

const ErrorInfo& InfoOf(ErrorCode code) {
  const ErrorInfo& info = kErrors.at(static_cast<size_t>(code));
  MUSTER_CHECK(info.code == code, "the table is not in the order of the enum at ", info.name);
  return info;
}

}  // namespace muster::queue_gateway::errors
