// Fields of answers, read without trust: what is not there, or is of another kind, is the fallback.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "nlohmann/json_fwd.hpp"

namespace muster::kubernetes {

using FieldPath = std::initializer_list<const char*>;

// nullptr: not there.
const nlohmann::json* FieldAt(const nlohmann::json& root, FieldPath path);

std::string TextAt(const nlohmann::json& root, FieldPath path);
int64_t IntegerAt(const nlohmann::json& root, FieldPath path, int64_t fallback = 0);
bool TruthAt(const nlohmann::json& root, FieldPath path);
// RFC 3339. InfinitePast: there is none.
absl::Time TimeAt(const nlohmann::json& root, FieldPath path);

}  // namespace muster::kubernetes
