// SPDX-License-Identifier: Apache-2.0

// OneOf: an option that takes one of some names.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/args/option.h"

namespace muster::cli {

// For args::Option::Transform of an option whose value is an Enum. Its complaint names the choices
// alone, and the help shows them as `shown`; by default, all of them.
template <typename Enum>
args::Validator OneOf(const std::vector<std::pair<std::string, Enum>>& choices,
                      const std::string& shown = "") {
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
  return {set, shown.empty() ? absl::StrCat("{", absl::StrJoin(names, ","), "}") : shown};
}

}  // namespace muster::cli
