// SPDX-License-Identifier: Apache-2.0

// Collects the findings of a check, for tests.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "muster/os/quarantine.h"

namespace muster::os {

class CollectedFindings final : public Findings {
 public:
  absl::Status Add(const Damage& damage) override {
    all.push_back(damage);
    return absl::OkStatus();
  }
  void Note(const std::string& line) override { notes.push_back(line); }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Damage& damage : all) names.push_back(damage.name);
    return names;
  }

  std::vector<Damage> all;
  std::vector<std::string> notes;
};

}  // namespace muster::os
