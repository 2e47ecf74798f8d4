// SPDX-License-Identifier: Apache-2.0

// CountSpans: what the controller does with results, as spans in the traces of their batches
// (item/batch_trace.h): receive, commit and settle, each with links to the process spans of the
// results.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/trace_context.h"
#include "muster/queue/queue_store.h"
#include "muster/telemetry/span.h"

namespace muster::controller {

// For one partition of an output queue. Not thread-safe.
class CountSpans {
 public:
  // Neither pointer is owned; both outlive it. No sink: nothing is recorded.
  CountSpans(telemetry::SpanSink* sink, base::Clock* clock, queue::QueueId partition)
      : sink_(sink), clock_(clock), partition_(std::move(partition)) {}

  // When an operation begins; any time if nothing is recorded.
  absl::Time Now() const { return sink_ == nullptr ? absl::Time() : clock_->Now(); }

  // A result of `batch` has come, with the trace context that it carries.
  void NoteResult(uint64_t batch, const std::optional<base::TraceContext>& trace);

  // The receives that began at `began` have ended.
  void RecordReceive(absl::Time began);
  // The transaction that counts all results noted since the last settle has ended.
  void RecordCommit(absl::Time began, const absl::Status& ended);
  // So have the deletes of their messages.
  void RecordSettle(absl::Time began, const absl::Status& ended);

 private:
  struct Results {
    base::TraceContext trace;
    std::vector<uint64_t> processed;  // ids of their process spans
  };
  using ByBatch = std::map<uint64_t, Results>;

  void Record(telemetry::Span span, const Results& results, absl::Time began,
              const absl::Status& ended) const;

  telemetry::SpanSink* const sink_;  // not owned
  base::Clock* const clock_;         // not owned
  const queue::QueueId partition_;
  ByBatch received_;  // since the last RecordReceive
  ByBatch in_hand_;   // since the last RecordSettle
};

}  // namespace muster::controller
