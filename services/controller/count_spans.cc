// SPDX-License-Identifier: Apache-2.0
#include "services/controller/count_spans.h"

#include <string>
#include <utility>

#include "muster/item/batch_trace.h"

namespace muster::controller {

void CountSpans::NoteResult(uint64_t batch, const std::optional<base::TraceContext>& trace) {
  if (!telemetry::Wants(sink_, trace)) return;
  for (ByBatch* const results : {&received_, &in_hand_}) {
    Results& of_batch = (*results)[batch];
    of_batch.trace = *trace;
    of_batch.processed.push_back(trace->parent);
  }
}

void CountSpans::RecordReceive(absl::Time began) {
  for (const auto& [batch, results] : received_) {
    Record(item::QueueSpan(results.trace, batch, "receive", partition_), results, began,
           absl::OkStatus());
  }
  received_.clear();
}

void CountSpans::RecordCommit(absl::Time began, const absl::Status& ended) {
  for (const auto& [batch, results] : in_hand_) {
    Record(item::BatchPart(results.trace, batch, "commit report", telemetry::SpanKind::kClient),
           results, began, ended);
  }
}

void CountSpans::RecordSettle(absl::Time began, const absl::Status& ended) {
  for (const auto& [batch, results] : in_hand_) {
    Record(item::QueueSpan(results.trace, batch, "settle", partition_), results, began, ended);
  }
  in_hand_.clear();
}

void CountSpans::Record(telemetry::Span span, const Results& results, absl::Time began,
                        const absl::Status& ended) const {
  span.start = began;
  span.end = clock_->Now();
  span.Set("messaging.batch.message_count", static_cast<int64_t>(results.processed.size()));
  span.links = results.processed;
  if (!ended.ok()) {
    span.error = absl::StatusCodeToString(ended.code());
    span.why = std::string(ended.message());
  }
  sink_->Record(std::move(span));
}

}  // namespace muster::controller
