// SPDX-License-Identifier: Apache-2.0

// OneOf: an option that takes one of some names.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster::cli {

// For CLI::Option::transform of an option whose value is an Enum. Unlike CLI::CheckedTransformer it
// takes no numbers, and its complaint names the choices alone.
template <typename Enum>
CLI::Validator OneOf(const std::vector<std::pair<std::string, Enum>>& choices) {
  std::vector<std::string> names;
  for (const auto& [name, value] : choices) names.push_back(name);
  const auto set = [choices, names](std::string& text) -> std::string {
    for (const auto& [name, value] : choices) {
      if (name != text) continue;
      text = absl::StrCat(static_cast<int>(value));
      return "";
    }
    return absl::StrCat("'", text, "' is none of ", absl::StrJoin(names, ", "));
  };
  return CLI::Validator(set, absl::StrCat("{", absl::StrJoin(names, ","), "}"));
}

}  // namespace muster::cli
