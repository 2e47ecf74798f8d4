// SPDX-License-Identifier: Apache-2.0

// Finding: the result of one check of `muster doctor`.
#pragma once

#include <string>
#include <vector>

namespace muster::cli {

// kUnknown: the doctor has not looked.
enum class Health { kOk, kUnknown, kWarning, kWrong };

struct Finding {
  Health health = Health::kOk;
  std::string what;     // what was looked at: "processor p-1", "queue local/shop-in-0"
  std::string found;    // the state, in words
  std::string to_do{};  // how to mend it; empty: nothing to do
};
using Findings = std::vector<Finding>;

}  // namespace muster::cli
