// SPDX-License-Identifier: Apache-2.0

// Job files for the tests of the registry.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster::job {

// A sound job. `column` decides results; `ttl`, such as "1d", does not.
inline std::string JobText(absl::string_view name, absl::string_view column = "amount",
                           absl::string_view ttl = "7d") {
  return absl::StrCat("name: ", name, "\ninput:\n  format: csv\n  columns: {", column, ": ", column,
                      "}\nhandler: {linked: sums}\ngroups:\n  - name: totals\n    keys: [", column,
                      "]\n    measures: {count: int}\nqueue: {ttl: ", ttl, "}\n");
}

}  // namespace muster::job
