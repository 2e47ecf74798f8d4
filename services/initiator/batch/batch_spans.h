// SPDX-License-Identifier: Apache-2.0

// BatchSpans: the initiator's spans in the trace of a batch (item/batch_trace.h): submit, create,
// send, and that of the batch as a whole.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/queue/queue_store.h"
#include "muster/telemetry/span.h"

namespace muster::initiator::batch {

// Nothing is recorded without a sink, or of a batch that is not sampled.

// The batch was taken in, from `began` until `ended`.
void RecordSubmit(telemetry::SpanSink* sink, const ledger::Batch& batch, absl::Time began,
                  absl::Time ended);

// A put of items, and how it ended.
struct PutItems {
  absl::Span<const uint64_t> items;  // their indexes
  absl::Time began;
  absl::Time ended;
  absl::Status status;
};

// Records one send span, and a create span for each item that was put.
void RecordPut(telemetry::SpanSink* sink, const ledger::Batch& batch, const queue::QueueId& queue,
               const PutItems& put);

// The batch is over: complete, or cancelled.
void RecordBatch(telemetry::SpanSink* sink, const ledger::Batch& batch, absl::Time ended);

}  // namespace muster::initiator::batch
