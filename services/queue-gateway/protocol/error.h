// SPDX-License-Identifier: Apache-2.0

// Error: why a request is refused, as the Queue Storage API says it.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "services/queue-gateway/errors/error_code.h"

namespace muster::queue_gateway::protocol {

using errors::ErrorCode;

struct Error {
  // NOLINTNEXTLINE(google-explicit-constructor): a code alone is an error
  Error(ErrorCode c) : code(c) {}
  Error(ErrorCode c, std::vector<std::pair<std::string, std::string>> d)
      : code(c), details(std::move(d)) {}

  ErrorCode code;
  // Further elements of the body: what was wrong, and what would be right.
  std::vector<std::pair<std::string, std::string>> details;
};

// Of a query parameter that breaks the bounds of its value.
Error OutOfRange(absl::string_view name, absl::string_view value, int64_t min, int64_t max);
// Of a query parameter whose value is none.
Error InvalidParameter(absl::string_view name, absl::string_view value, absl::string_view reason);
// Of a queue's store, where NotFound means the queue. The text of the status stays in the log: it
// is not for the caller.
Error FromStore(const absl::Status& status);

// A value or the error that there is instead: what a Status cannot say is which of 40 codes it is.
template <typename T>
class OrError {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): as absl::StatusOr
  OrError(T value) : content_(std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  OrError(Error error) : content_(std::move(error)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  OrError(ErrorCode code) : content_(Error(code)) {}

  bool ok() const { return std::holds_alternative<T>(content_); }
  const Error& error() const { return std::get<Error>(content_); }
  const T& operator*() const& { return std::get<T>(content_); }
  T& operator*() & { return std::get<T>(content_); }
  T&& operator*() && { return std::get<T>(std::move(content_)); }
  const T* operator->() const { return &std::get<T>(content_); }
  T* operator->() { return &std::get<T>(content_); }

 private:
  std::variant<T, Error> content_;
};

}  // namespace muster::queue_gateway::protocol
