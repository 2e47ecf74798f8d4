// SPDX-License-Identifier: Apache-2.0

// Reads what a server answers to the API of JetStream.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"

namespace muster::nats {

// Parses an answer of the API; returns the error that it holds, if any. Checks its form first, so
// that no exception of the JSON library reaches the callers.
absl::StatusOr<nlohmann::json> ParseAnswer(absl::string_view data, absl::string_view context);

// Returns `field`, or `otherwise` if it is missing or of another type: an answer to a request is
// untrusted input.
template <typename T>
T Field(const nlohmann::json& object, const char* field, T otherwise) {
  const auto found = object.find(field);
  if (found == object.end()) return otherwise;
  try {
    return found->get<T>();
  } catch (const nlohmann::json::exception&) {
    return otherwise;
  }
}
std::string Text(const nlohmann::json& object, const char* field);
// InfinitePast: it is missing, or no time.
absl::Time TimeOf(const nlohmann::json& object, const char* field);
// Returns the object in `field`; an empty object if there is none.
nlohmann::json Part(const nlohmann::json& object, const char* field);

}  // namespace muster::nats
