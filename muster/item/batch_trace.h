// SPDX-License-Identifier: Apache-2.0

// The spans of a batch's trace: which there are, and how their ids are found.
//
//   the caller's span, if there is one
//   └─ batch JOB                      from the submit until its results are counted
//      ├─ submit JOB                  the initiator takes the batch in
//      ├─ send JOB-in                 a put of items; links to their create spans
//      ├─ create JOB-in               an item is made (PRODUCER)
//      │  └─ process JOB-in           an attempt at the item (CONSUMER); the handler's own spans
//      │     └─ settle JOB-in         below it; its result is put, and the item deleted
//      ├─ receive JOB-in              a receive of items; links to their create spans
//      ├─ receive JOB-out             a receive of results; links to the process spans
//      ├─ commit report               the transaction that counts them; the same links
//      └─ settle JOB-out              and their deletes
//
// Names and attributes follow OpenTelemetry's conventions for messaging. The ids of the spans of
// batch and item follow from the ids of trace, batch and item, so that every role knows them, also
// after a restart, and a message carries no more than the trace of its batch; other spans have
// random ids. A result carries the id of its process span as the parent in its trace context.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "muster/base/trace_context.h"
#include "muster/queue/queue_store.h"
#include "muster/telemetry/span.h"

namespace muster::item {

// A trace for a batch whose caller has none, sampled with a probability of `rate`, 0 to 1.
base::TraceContext BeginTrace(double rate);

// These depend on the trace's id alone, not on its parent.
uint64_t BatchSpanId(const base::TraceContext& trace, uint64_t batch);
// Of the create span.
uint64_t ItemSpanId(const base::TraceContext& trace, uint64_t batch, uint32_t index);

// The caller's span, by the context that came with the submit; 0: BeginTrace has begun the trace.
uint64_t CallerSpanId(const base::TraceContext& trace);

// A span below that of the batch, with a random id and without times. `name`: "submit retail".
telemetry::Span BatchPart(const base::TraceContext& trace, uint64_t batch, absl::string_view name,
                          telemetry::SpanKind kind);

// The same for an operation on a queue: "send", "receive", "settle" (CLIENT), "create" (PRODUCER)
// or "process" (CONSUMER).
telemetry::Span QueueSpan(const base::TraceContext& trace, uint64_t batch,
                          absl::string_view operation, const queue::QueueId& queue);

}  // namespace muster::item
