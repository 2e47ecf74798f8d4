// SPDX-License-Identifier: Apache-2.0

// Backlog: the queued work in the form that formulas need, oldest first.
#pragma once

#include <cstdint>
#include <deque>

#include "absl/time/time.h"

namespace muster::scaling::policy {

// Items that were put at about the same time, the first of them at `arrived`.
struct Cohort {
  absl::Time arrived;
  int64_t items = 0;
};

struct Backlog {
  const std::deque<Cohort>* cohorts = nullptr;  // not owned
  double items = 0;                             // of all cohorts
  // How many of the oldest items are probably done although no reading shows it yet.
  double done = 0;
};

}  // namespace muster::scaling::policy
