// SPDX-License-Identifier: Apache-2.0
#include "muster/item/batch_trace.h"

#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "muster/base/fingerprint.h"
#include "muster/item/queue_names.h"

namespace muster::item {
namespace {

// A span id that follows from what identifies the span.
uint64_t IdOf(absl::string_view kind, const base::TraceContext& trace, uint64_t batch,
              uint64_t index) {
  const base::Fingerprint128 hash = base::Fingerprint(
      absl::StrCat(kind, ":", trace.trace_high, ":", trace.trace_low, ":", batch, ":", index));
  return hash.low != 0 ? hash.low : 1;
}

// The parent in the context of a trace that has no caller: no span has this id.
uint64_t NoCallerOf(const base::TraceContext& trace) { return IdOf("trace", trace, 0, 0); }

telemetry::SpanKind KindOf(absl::string_view operation) {
  if (operation == "create") return telemetry::SpanKind::kProducer;
  if (operation == "process") return telemetry::SpanKind::kConsumer;
  return telemetry::SpanKind::kClient;
}

}  // namespace

base::TraceContext BeginTrace(double rate) {
  base::TraceContext trace = base::NewTrace(rate);
  trace.parent = NoCallerOf(trace);
  return trace;
}

uint64_t CallerSpanId(const base::TraceContext& trace) {
  return trace.parent == NoCallerOf(trace) ? 0 : trace.parent;
}

uint64_t BatchSpanId(const base::TraceContext& trace, uint64_t batch) {
  return IdOf("batch", trace, batch, 0);
}

uint64_t ItemSpanId(const base::TraceContext& trace, uint64_t batch, uint32_t index) {
  return IdOf("item", trace, batch, index);
}

telemetry::Span BatchPart(const base::TraceContext& trace, uint64_t batch, absl::string_view name,
                          telemetry::SpanKind kind) {
  telemetry::Span span;
  span.trace = trace;
  span.id = telemetry::NewSpanId();
  span.parent = BatchSpanId(trace, batch);
  span.name = std::string(name);
  span.kind = kind;
  span.Set("muster.batch", absl::StrCat(batch));
  return span;
}

telemetry::Span QueueSpan(const base::TraceContext& trace, uint64_t batch,
                          absl::string_view operation, const queue::QueueId& queue) {
  const std::string destination = LogicalName(queue.name);
  telemetry::Span span =
      BatchPart(trace, batch, absl::StrCat(operation, " ", destination), KindOf(operation));
  span.Set("messaging.system", "muster");
  span.Set("messaging.operation.name", operation);
  span.Set("messaging.operation.type", operation);
  span.Set("messaging.destination.name", destination);
  if (destination.size() < queue.name.size()) {
    span.Set("messaging.destination.partition.id",
             absl::string_view(queue.name).substr(destination.size() + 1));
  }
  return span;
}

}  // namespace muster::item
