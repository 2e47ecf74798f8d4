// SPDX-License-Identifier: Apache-2.0

// Macros that pass an absl::Status upwards, and two kinds of status of muster's own: Busy,
// Mismatch.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster::base {

// Of what a call returned, a Status or a StatusOr.
inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

// `status` with "context: " before its message; code and payloads are kept. OK stays OK.
inline absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) {
    annotated.SetPayload(type, payload);
  });
  return annotated;
}

// `status` for people: its code and message, without the payloads, which are for programs.
inline std::string InWords(const absl::Status& status) {
  return status.ToString(absl::StatusToStringMode::kWithNoExtraData);
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

namespace muster::base {

// Busy: another process or instance holds what is needed, perhaps for days. The code is
// FailedPrecondition, so that a policy which only waits out short faults does not retry it; the
// caller may come back later.
absl::Status Busy(absl::string_view message);

// Whether `status` came from Busy, annotated or not.
bool IsBusy(const absl::Status& status);

// Mismatch: a thing exists with other settings than required, and this process may not change it.
// It is of no use until an operator corrects it; the caller may wait for that.

struct Mismatch {
  std::string what;  // its name
  std::string field;
  std::string is;
  std::string wanted;

  friend bool operator==(const Mismatch&, const Mismatch&) = default;
};

// `status` with the mismatch as its cause. OK stays OK.
absl::Status WithMismatch(absl::Status status, const Mismatch& mismatch);
// What WithMismatch added; nullopt for any other status.
std::optional<Mismatch> MismatchOf(const absl::Status& status);

}  // namespace muster::base
