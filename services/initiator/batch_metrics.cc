// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/batch_metrics.h"

#include <algorithm>
#include <map>
#include <string>

#include "muster/item/queue_names.h"
#include "muster/telemetry/catalogue.h"

namespace muster::initiator {
namespace {

uint64_t KnownTransactions(const batch::BatchStatus& status) {
  const uint64_t split = status.split.has_value() ? status.split->transactions_read : 0;
  const auto counted = static_cast<uint64_t>(status.counted.transactions);
  return std::max({status.batch.transactions, split, counted});
}

}  // namespace

BatchMetrics::BatchMetrics(base::Clock* clock, telemetry::Registry* registry)
    : clock_(clock), registry_(registry), violations_(registry, telemetry::kSlaViolations) {}

void BatchMetrics::Watch(batch::BatchScheduler* scheduler) {
  reading_ = telemetry::ReadAtScrape(
      registry_, "batches",
      {telemetry::kBatchProgress.entry(), telemetry::kBatchEta.entry(),
       telemetry::kBatchDeadlineRemaining.entry(), telemetry::kStoppedUploads.entry(),
       telemetry::kStoppedUploadBytes.entry()},
      [this, scheduler](telemetry::Samples* samples) {
        const auto stopped = scheduler->stopped_uploads();
        samples->Set(telemetry::kStoppedUploads, {}, static_cast<double>(stopped.uploads));
        samples->Set(telemetry::kStoppedUploadBytes, {}, static_cast<double>(stopped.bytes));
        const auto open = scheduler->OpenBatches(kMaxBatchesRead);
        if (!open.ok()) return open.status();
        ShowOpenBatches(*open, clock_->Now(), samples);
        // The counter is there before a batch is late, so that increase()
        // sees the first one.
        for (const batch::BatchStatus& status : *open) {
          violations_.With({item::LogicalInput(status.batch.job)});
        }
        return absl::OkStatus();
      });
}

void ShowOpenBatches(const std::vector<batch::BatchStatus>& open, absl::Time now,
                     telemetry::Samples* samples) {
  struct Sum {
    double known = 0;
    double counted = 0;
  };
  std::map<std::string, Sum> sums;  // by queue
  for (const batch::BatchStatus& status : open) {
    const std::string queue = item::LogicalInput(status.batch.job);
    const auto known = static_cast<double>(KnownTransactions(status));
    const auto counted = static_cast<double>(status.counted.transactions);
    sums[queue].known += known;
    sums[queue].counted += counted;
    if (status.batch.sla.has_value()) {
      samples->Set(telemetry::kBatchDeadlineRemaining, {queue},
                   absl::ToDoubleSeconds(status.batch.created + *status.batch.sla - now));
    }
    const double lapse = absl::ToDoubleSeconds(now - status.batch.created);
    if (counted > 0 && lapse > 0) {
      samples->Set(telemetry::kBatchEta, {queue}, (known - counted) * lapse / counted);
    }
  }
  for (const auto& [queue, sum] : sums) {
    samples->Set(telemetry::kBatchProgress, {queue}, sum.known > 0 ? sum.counted / sum.known : 0);
  }
}

void BatchMetrics::NoteComplete(const ledger::Batch& batch) {
  const bool is_late = batch.sla.has_value() && batch.completed.has_value() &&
                       *batch.completed > batch.created + *batch.sla;
  if (!is_late) return;
  {
    base::MutexLock lock(&mu_);
    if (!late_.insert(batch.number).second) return;
    if (late_.size() > kMaxLateBatches) late_.erase(late_.begin());
  }
  violations_.With({item::LogicalInput(batch.job)}).Add();
}

}  // namespace muster::initiator
