// SPDX-License-Identifier: Apache-2.0

// WorkSpans, AttemptSpan: what a worker does, as spans in the traces of its items' batches
// (item/batch_trace.h): receive, process and settle.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/base/clock.h"
#include "muster/base/trace_context.h"
#include "muster/item/work_item_codec.h"
#include "muster/listener/subscriber.h"
#include "muster/queue/queue_store.h"
#include "muster/telemetry/span.h"

namespace muster::processor {

// error.type of an attempt that ended so: retry, or dead; empty: it is none.
absl::string_view ErrorOf(listener::Settlement::Kind kind);

// Collects which items of one receive are traced. Not thread-safe: one per worker.
class WorkSpans {
 public:
  // Neither is owned; both outlive it and its attempts. No sink: nothing is recorded.
  WorkSpans(telemetry::SpanSink* sink, base::Clock* clock) : sink_(sink), clock_(clock) {}

  // Records a receive span for each batch of which items were noted since the last call. All
  // `deliveries` are of one receive, and at least one.
  void RecordReceive(absl::Span<const listener::Delivery> deliveries);

 private:
  friend class AttemptSpan;
  struct Received {
    base::TraceContext trace;
    std::vector<uint64_t> items;  // ids of their create spans
  };

  telemetry::SpanSink* const sink_;        // not owned
  base::Clock* const clock_;               // not owned
  std::map<uint64_t, Received> received_;  // by batch
};

// One attempt at an item: a process span below the item's create span, and a settle span below
// that. Does nothing if the batch is not sampled.
class AttemptSpan {
 public:
  // Makes the process span the parent in the item's trace context, so that the handler's own spans
  // lie below it, and the item's result names it. Nothing is owned; all outlives the attempt.
  AttemptSpan(WorkSpans* spans, const queue::QueueId* queue, int attempt, item::WorkItem* item);

  // The attempt has ended with `settlement`. Has the settle span recorded when the listener
  // settles.
  void End(listener::Settlement* settlement);

 private:
  WorkSpans* const spans_;  // null: not traced
  uint64_t batch_ = 0;
  queue::QueueId queue_;
  std::string message_id_;
  telemetry::Span process_;
};

}  // namespace muster::processor
