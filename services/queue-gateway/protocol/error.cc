// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/protocol/error.h"

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"

namespace muster::queue_gateway::protocol {

Error OutOfRange(absl::string_view name, absl::string_view value, int64_t min, int64_t max) {
  return {ErrorCode::kOutOfRangeQueryParameterValue,
          {{"QueryParameterName", std::string(name)},
           {"QueryParameterValue", std::string(value)},
           {"MinimumAllowed", absl::StrCat(min)},
           {"MaximumAllowed", absl::StrCat(max)}}};
}

Error InvalidParameter(absl::string_view name, absl::string_view value, absl::string_view reason) {
  return {ErrorCode::kInvalidQueryParameterValue,
          {{"QueryParameterName", std::string(name)},
           {"QueryParameterValue", std::string(value)},
           {"Reason", std::string(reason)}}};
}

Error FromStore(const absl::Status& status) {
  if (absl::IsNotFound(status)) return ErrorCode::kQueueNotFound;
  if (absl::IsAlreadyExists(status)) return ErrorCode::kQueueAlreadyExists;
  if (absl::IsResourceExhausted(status)) return ErrorCode::kServerBusy;
  if (absl::IsUnavailable(status)) return ErrorCode::kOperationTimedOut;
  if (absl::IsUnimplemented(status)) return ErrorCode::kNotImplemented;
  base::LogUnlessOk(base::kError, "the queue store failed", status);
  return ErrorCode::kInternalError;
}

}  // namespace muster::queue_gateway::protocol
