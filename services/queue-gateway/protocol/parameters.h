// SPDX-License-Identifier: Apache-2.0

// Parameters: reads the query parameters of one request, and keeps the first error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "services/queue-gateway/protocol/error.h"
#include "services/queue-gateway/protocol/target.h"

namespace muster::queue_gateway::protocol {

// Not thread-safe. `target` outlives it.
class Parameters {
 public:
  explicit Parameters(const Target& target) : target_(target) {}

  // nullopt: it is not there.
  std::optional<int64_t> Integer(absl::string_view name, int64_t min, int64_t max);
  // MissingRequiredQueryParameter: it is not there.
  int64_t RequiredInteger(absl::string_view name, int64_t min, int64_t max);
  std::string Required(absl::string_view name);
  std::string Text(absl::string_view name) const;

  void Fail(Error error);
  // Of the first that was wrong; nullopt: none was.
  const std::optional<Error>& error() const { return error_; }

 private:
  const Target& target_;  // not owned
  std::optional<Error> error_;
};

}  // namespace muster::queue_gateway::protocol
