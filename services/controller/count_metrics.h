// SPDX-License-Identifier: Apache-2.0

// CountMetrics: what the controller has counted, as metrics. The commit decides: a duplicate adds
// nothing to items and transactions.
#pragma once

#include <vector>

#include "absl/time/time.h"
#include "muster/report/report_store.h"
#include "muster/telemetry/registry.h"

namespace muster::controller {

// Where the way of an item began.
struct ItemOrigin {
  absl::Time put;                // into its queue; the infinite past: not known
  telemetry::Exemplar exemplar;  // its attempt's span, if the batch is sampled
  bool redelivered = false;      // its result had been received before
};

// Thread-safe.
class CountMetrics {
 public:
  // `registry` is not owned and outlives it; null: nothing is recorded.
  explicit CountMetrics(telemetry::Registry* registry);

  // Records a commit of `items`, which was durable `now`. `origins` are parallel to the items.
  void Record(const std::vector<report::CountedItem>& items, const std::vector<ItemOrigin>& origins,
              const report::CommitSummary& summary, absl::Time now) const;

 private:
  const bool records_;
  const telemetry::Counters<2> transactions_;
  const telemetry::Counters<2> items_;
  const telemetry::Counters<2> duplicates_;
  const telemetry::Histograms<1> latency_;
};

}  // namespace muster::controller
