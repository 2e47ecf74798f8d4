// The three macros that carry absl::Status upwards.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster::base {

// `status` with "context: " before its message; code and payloads are kept. OK stays OK.
inline absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) {
    annotated.SetPayload(type, payload);
  });
  return annotated;
}

}  // namespace muster::base

#define MUSTER_RETURN_IF_ERROR(expr)                                                         \
  do {                                                                                       \
    if (::absl::Status muster_status_ = (expr); !muster_status_.ok()) return muster_status_; \
  } while (false)

#define MUSTER_STATUS_CONCAT_INNER_(a, b) a##b
#define MUSTER_STATUS_CONCAT_(a, b) MUSTER_STATUS_CONCAT_INNER_(a, b)

// MUSTER_ASSIGN_OR_RETURN(auto value, Expression());
#define MUSTER_ASSIGN_OR_RETURN(lhs, expr) \
  MUSTER_ASSIGN_OR_RETURN_IMPL_(MUSTER_STATUS_CONCAT_(muster_or_, __LINE__), lhs, expr)
#define MUSTER_ASSIGN_OR_RETURN_IMPL_(result, lhs, expr) \
  auto result = (expr);                                  \
  if (!result.ok()) return std::move(result).status();   \
  lhs = *std::move(result)
