// SPDX-License-Identifier: Apache-2.0

// PromiseState: whether a batch keeps the latency that it was promised.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "muster/ledger/batch_ledger.h"

namespace muster::item {

struct PromiseState {
  absl::Duration sla;
  absl::Time deadline;  // created + sla
  // How much later than promised the batch was complete; of one that is not, how long the deadline
  // has passed. Zero: it kept its promise, or keeps it so far.
  absl::Duration late_by = absl::ZeroDuration();
  // The batch is open, and at its pace since it was created it will be late: the rest of its
  // transactions takes longer than what is left. Before the first one is counted: more than half of
  // the promised time has passed.
  bool at_risk = false;
};

// nullopt: nothing was promised. `known` is the number of the batch's transactions as far as it is
// split, of which `counted` are in the report.
std::optional<PromiseState> StateOfPromise(const ledger::Batch& batch, int64_t known,
                                           int64_t counted, absl::Time now);

// "12.3s later than promised (30s)".
std::string ShowLateness(const PromiseState& promise);

}  // namespace muster::item
