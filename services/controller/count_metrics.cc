// SPDX-License-Identifier: Apache-2.0
#include "services/controller/count_metrics.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "muster/base/check.h"
#include "muster/item/queue_names.h"
#include "muster/telemetry/catalogue.h"

namespace muster::controller {
namespace {

// What one commit adds to one queue. Handles are looked up once for a commit, not for each item.
struct Sums {
  double items = 0, dead_items = 0;
  double redelivered = 0, repeated = 0;                    // duplicates
  double aggregated = 0, rejected = 0, dead_lettered = 0;  // transactions

  void Add(const report::CountedItem& item, const ItemOrigin& origin, report::Verdict verdict) {
    switch (verdict) {
      case report::Verdict::kCounted:
        ++items;
        aggregated += static_cast<double>(item.aggregated);
        rejected += static_cast<double>(item.rejected);
        break;
      case report::Verdict::kDeadLettered:
      case report::Verdict::kRefused:
        ++dead_items;
        dead_lettered += static_cast<double>(item.transactions);
        break;
      case report::Verdict::kDuplicate:
        ++(origin.redelivered ? redelivered : repeated);
        break;
      case report::Verdict::kConflict:
        break;  // a fault, which the log tells
    }
  }
};

struct OfBatch {
  std::string queue;
  telemetry::Histogram latency;
  Sums sums;
};

bool IsNew(report::Verdict verdict) {
  return verdict != report::Verdict::kDuplicate && verdict != report::Verdict::kConflict;
}

// Also 0: a counter that is there before its first event lets increase() see that. `kind`: its
// outcome or reason.
void AddTo(const telemetry::Counters<2>& counters, const std::string& queue, const char* kind,
           double by) {
  counters.With({queue, kind}).Add(by);
}

}  // namespace

CountMetrics::CountMetrics(telemetry::Registry* registry)
    : records_(registry != nullptr),
      transactions_(registry, telemetry::kTransactions),
      items_(registry, telemetry::kItems),
      duplicates_(registry, telemetry::kDuplicates),
      latency_(registry, telemetry::kItemLatency) {}

void CountMetrics::Record(const std::vector<report::CountedItem>& items,
                          const std::vector<ItemOrigin>& origins,
                          const report::CommitSummary& summary, absl::Time now) const {
  if (!records_) return;
  MUSTER_CHECK(items.size() == summary.verdicts.size() && items.size() == origins.size(), "items ",
               items.size(), ", verdicts ", summary.verdicts.size(), ", origins ", origins.size());
  std::map<uint64_t, OfBatch> batches;
  for (const report::Progress& progress : summary.progress) {
    const std::string queue = item::LogicalInput(progress.job);
    batches[progress.batch] = {queue, latency_.With({queue}), {}};
  }
  for (size_t i = 0; i < items.size(); ++i) {
    OfBatch& of_batch = batches[items[i].batch];
    const report::Verdict verdict = summary.verdicts[i].verdict;
    const ItemOrigin& origin = origins[i];
    of_batch.sums.Add(items[i], origin, verdict);
    if (!IsNew(verdict) || origin.put == absl::InfinitePast()) continue;
    // Two clocks are at work: that of the queue and this one.
    of_batch.latency.Observe(std::max(absl::ZeroDuration(), now - origin.put), origin.exemplar);
  }
  for (const auto& [number, of_batch] : batches) {
    const Sums& sums = of_batch.sums;
    AddTo(items_, of_batch.queue, "aggregated", sums.items);
    AddTo(items_, of_batch.queue, "dead_lettered", sums.dead_items);
    AddTo(transactions_, of_batch.queue, "aggregated", sums.aggregated);
    AddTo(transactions_, of_batch.queue, "rejected", sums.rejected);
    AddTo(transactions_, of_batch.queue, "dead_lettered", sums.dead_lettered);
    AddTo(duplicates_, of_batch.queue, "redelivered", sums.redelivered);
    AddTo(duplicates_, of_batch.queue, "repeated", sums.repeated);
  }
}

}  // namespace muster::controller
