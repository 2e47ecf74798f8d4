#include "muster/kubernetes/json_fields.h"

#include "nlohmann/json.hpp"

namespace muster::kubernetes {

const nlohmann::json* FieldAt(const nlohmann::json& root, FieldPath path) {
  const nlohmann::json* at = &root;
  for (const char* const key : path) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(key);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

std::string TextAt(const nlohmann::json& root, FieldPath path) {
  const nlohmann::json* const field = FieldAt(root, path);
  return field != nullptr && field->is_string() ? field->get<std::string>() : std::string();
}

int64_t IntegerAt(const nlohmann::json& root, FieldPath path, int64_t fallback) {
  const nlohmann::json* const field = FieldAt(root, path);
  return field != nullptr && field->is_number_integer() ? field->get<int64_t>() : fallback;
}

bool TruthAt(const nlohmann::json& root, FieldPath path) {
  const nlohmann::json* const field = FieldAt(root, path);
  return field != nullptr && field->is_boolean() && field->get<bool>();
}

absl::Time TimeAt(const nlohmann::json& root, FieldPath path) {
  absl::Time time;
  std::string error;
  const std::string text = TextAt(root, path);
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, &error)) return absl::InfinitePast();
  return time;
}

}  // namespace muster::kubernetes
