// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/batch/batch_spans.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/item/batch_trace.h"

namespace muster::initiator::batch {

void RecordSubmit(telemetry::SpanSink* sink, const ledger::Batch& batch, absl::Time began,
                  absl::Time ended) {
  if (!telemetry::Wants(sink, batch.trace)) return;
  telemetry::Span span = item::BatchPart(
      *batch.trace, batch.number, absl::StrCat("submit ", batch.job), telemetry::SpanKind::kServer);
  span.start = began;
  span.end = ended;
  span.Set("muster.job", batch.job);
  if (!batch.handler_version.empty()) span.Set("muster.handler_version", batch.handler_version);
  sink->Record(std::move(span));
}

void RecordPut(telemetry::SpanSink* sink, const ledger::Batch& batch, const queue::QueueId& queue,
               const PutItems& put) {
  if (!telemetry::Wants(sink, batch.trace)) return;
  telemetry::Span send = item::QueueSpan(*batch.trace, batch.number, "send", queue);
  send.start = put.began;
  send.end = put.ended;
  send.Set("messaging.batch.message_count", static_cast<int64_t>(put.items.size()));
  if (!put.status.ok()) {
    send.error = absl::StatusCodeToString(put.status.code());
    send.why = std::string(put.status.message());
  }
  for (const uint64_t item : put.items) {
    telemetry::Span create = item::QueueSpan(*batch.trace, batch.number, "create", queue);
    create.id = item::ItemSpanId(*batch.trace, batch.number, static_cast<uint32_t>(item));
    create.start = put.began;
    create.end = put.ended;
    create.Set("messaging.message.id", absl::StrCat(batch.number, "/", item));
    send.links.push_back(create.id);
    if (put.status.ok()) sink->Record(std::move(create));
  }
  sink->Record(std::move(send));
}

void RecordBatch(telemetry::SpanSink* sink, const ledger::Batch& batch, absl::Time ended) {
  if (!telemetry::Wants(sink, batch.trace)) return;
  const bool is_cancelled = batch.state == ledger::BatchState::kCancelled;
  telemetry::Span span =
      item::BatchPart(*batch.trace, batch.number, absl::StrCat("batch ", batch.job),
                      telemetry::SpanKind::kInternal);
  span.id = item::BatchSpanId(*batch.trace, batch.number);
  span.parent = item::CallerSpanId(*batch.trace);
  span.start = batch.created;
  span.end = ended;
  span.Set("muster.job", batch.job);
  span.Set("muster.items", static_cast<int64_t>(batch.items));
  span.Set("muster.transactions", static_cast<int64_t>(batch.transactions));
  span.Set("muster.outcome", is_cancelled ? "cancelled" : "complete");
  if (batch.sla.has_value()) {
    span.Set("muster.late", ended > batch.created + *batch.sla ? "true" : "false");
  }
  sink->Record(std::move(span));
}

}  // namespace muster::initiator::batch
