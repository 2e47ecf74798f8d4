// SPDX-License-Identifier: Apache-2.0

// ProcessedStreams: the event processors that an initiator runs for its callers, and how far behind
// the ends of their streams their checkpoints are, read at each scrape.
#pragma once

#include <functional>
#include <memory>
#include <set>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/stream/event_stream_store.h"
#include "muster/stream/processor/event_processor.h"
#include "muster/telemetry/registry.h"

namespace muster::initiator::api {

// A scrape waits so long for the ends of all streams, and for one more call to the store.
inline constexpr absl::Duration kStreamReadTime = absl::Seconds(2);

// Thread-safe.
class ProcessedStreams {
 public:
  using ProcessorPtr = std::shared_ptr<stream::processor::EventProcessor>;  // with a scrape

  // None is owned; all outlive this. `registry` may be null. `is_connected`: the store answers now.
  ProcessedStreams(stream::EventStreamStore* streams, std::function<bool()> is_connected,
                   base::Clock* clock, telemetry::Registry* registry);

  // From Add to Remove, and to the end of a scrape that runs then, it holds the processor, whose
  // handler must not end before Remove if it is not stopped.
  void Add(const ProcessorPtr& processor) ABSL_LOCKS_EXCLUDED(mu_);
  void Remove(const ProcessorPtr& processor) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Status Read(telemetry::Samples* samples) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status ReadLag(const stream::processor::EventProcessor& processor, absl::Duration deadline,
                       telemetry::Samples* samples);

  stream::EventStreamStore* const streams_;  // not owned
  const std::function<bool()> is_connected_;
  base::Clock* const clock_;  // not owned
  base::Mutex mu_;
  std::set<ProcessorPtr> processors_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<telemetry::Reading> reading_;  // last: it uses all of the above
};

}  // namespace muster::initiator::api
