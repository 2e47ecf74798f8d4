// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/api/processed_streams.h"

#include <algorithm>
#include <string>
#include <utility>

#include "muster/base/status.h"
#include "muster/telemetry/catalogue.h"

namespace muster::initiator::api {

using stream::processor::EventProcessor;

ProcessedStreams::ProcessedStreams(stream::EventStreamStore* streams,
                                   std::function<bool()> is_connected, base::Clock* clock,
                                   telemetry::Registry* registry)
    : streams_(streams),
      is_connected_(std::move(is_connected)),
      clock_(clock),
      reading_(
          telemetry::ReadAtScrape(registry, "streams", {telemetry::kCheckpointLag.entry()},
                                  [this](telemetry::Samples* samples) { return Read(samples); })) {}

void ProcessedStreams::Add(const ProcessorPtr& processor) {
  base::MutexLock lock(&mu_);
  processors_.insert(processor);
}

void ProcessedStreams::Remove(const ProcessorPtr& processor) {
  base::MutexLock lock(&mu_);
  processors_.erase(processor);
}

absl::Status ProcessedStreams::Read(telemetry::Samples* samples) {
  std::set<ProcessorPtr> processors;
  {
    base::MutexLock lock(&mu_);
    processors = processors_;
  }
  if (processors.empty()) return absl::OkStatus();
  if (!is_connected_()) return absl::UnavailableError("there is no connection");
  const absl::Duration deadline = clock_->Monotonic() + kStreamReadTime;
  for (const ProcessorPtr& processor : processors) {
    MUSTER_RETURN_IF_ERROR(ReadLag(*processor, deadline, samples));
  }
  return absl::OkStatus();
}

absl::Status ProcessedStreams::ReadLag(const EventProcessor& processor, absl::Duration deadline,
                                       telemetry::Samples* samples) {
  int64_t lag = 0;
  for (const EventProcessor::Place& place : processor.Places()) {
    if (clock_->Monotonic() >= deadline) {
      return absl::DeadlineExceededError("there is no time for all streams");
    }
    const absl::StatusOr<stream::PartitionExtent> extent =
        streams_->Extent(processor.stream(), place.partition);
    if (absl::IsNotFound(extent.status())) continue;  // it was deleted meanwhile
    MUSTER_RETURN_IF_ERROR(extent.status());
    lag += std::max<int64_t>(0, extent->next - place.goes_on_at);
  }
  samples->Set(telemetry::kCheckpointLag, {processor.group()}, static_cast<double>(lag));
  return absl::OkStatus();
}

}  // namespace muster::initiator::api
