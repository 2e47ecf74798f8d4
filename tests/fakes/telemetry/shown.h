// SPDX-License-Identifier: Apache-2.0

// What a registry shows of one series, for tests of the parts that record.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "muster/telemetry/registry.h"

namespace muster::telemetry {

// Scrapes. `series` is a name with its labels, as Prometheus writes it:
// muster_items_total{queue="q",outcome="aggregated"}. nullopt: there is no such series.
inline std::optional<double> Shown(Registry& registry, absl::string_view series) {
  const std::string page = registry.Scrape();
  for (const absl::string_view line : absl::StrSplit(page, '\n')) {
    double value = 0;
    if (absl::StartsWith(line, absl::StrCat(series, " ")) &&
        absl::SimpleAtod(line.substr(series.size() + 1), &value)) {
      return value;
    }
  }
  return std::nullopt;
}

}  // namespace muster::telemetry
