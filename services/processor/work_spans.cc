// SPDX-License-Identifier: Apache-2.0
#include "services/processor/work_spans.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/text.h"
#include "muster/item/batch_trace.h"

namespace muster::processor {
namespace {

using listener::Settlement;

// Of a reason in a span; the log and the dead letter have all of it.
constexpr size_t kMaxWhyBytes = 256;

absl::string_view OutcomeOf(const Settlement& settlement) {
  switch (settlement.kind) {
    case Settlement::Kind::kOk:
      // Without a result: its batch is cancelled, or waits for another worker.
      return settlement.outputs.empty() ? "dropped" : "ok";
    case Settlement::Kind::kDefer:
      return "defer";
    case Settlement::Kind::kRelease:
      return "release";
    case Settlement::Kind::kUnset:
    case Settlement::Kind::kRetry:
    case Settlement::Kind::kDead:
      break;
  }
  return ErrorOf(settlement.kind);
}

}  // namespace

absl::string_view ErrorOf(Settlement::Kind kind) {
  switch (kind) {
    case Settlement::Kind::kUnset:
    case Settlement::Kind::kRetry:
      return "retry";
    case Settlement::Kind::kDead:
      return "dead";
    case Settlement::Kind::kOk:
    case Settlement::Kind::kDefer:
    case Settlement::Kind::kRelease:
      break;
  }
  return "";
}

void WorkSpans::RecordReceive(absl::Span<const listener::Delivery> deliveries) {
  if (received_.empty()) return;
  const listener::Delivery& first = deliveries.front();
  const absl::Time epoch = clock_->Now() - clock_->Monotonic();  // of the monotonic clock
  for (auto& [batch, received] : received_) {
    telemetry::Span span = item::QueueSpan(received.trace, batch, "receive", *first.queue);
    span.start = epoch + first.asked_at;
    span.end = epoch + first.received_at;
    span.Set("messaging.batch.message_count", static_cast<int64_t>(received.items.size()));
    span.links = std::move(received.items);
    sink_->Record(std::move(span));
  }
  received_.clear();
}

AttemptSpan::AttemptSpan(WorkSpans* spans, const queue::QueueId* queue, int attempt,
                         item::WorkItem* item)
    : spans_(queue != nullptr && telemetry::Wants(spans->sink_, item->identity.trace) ? spans
                                                                                      : nullptr) {
  if (spans_ == nullptr) return;
  const uint64_t batch = item->identity.batch;
  base::TraceContext& trace = *item->identity.trace;
  batch_ = batch;
  queue_ = *queue;
  process_ = item::QueueSpan(trace, batch, "process", queue_);
  process_.parent = item::ItemSpanId(trace, batch, item->index);
  process_.start = spans_->clock_->Now();
  message_id_ = absl::StrCat(batch, "/", item->index);
  process_.Set("messaging.message.id", message_id_);
  process_.Set("muster.attempt", attempt);
  process_.Set("muster.transactions", static_cast<int64_t>(item->transactions));
  WorkSpans::Received& received = spans_->received_[batch];
  received.trace = trace;
  received.items.push_back(process_.parent);
  trace.parent = process_.id;
}

void AttemptSpan::End(Settlement* settlement) {
  if (spans_ == nullptr) return;
  process_.end = spans_->clock_->Now();
  process_.Set("muster.outcome", OutcomeOf(*settlement));
  process_.error = std::string(ErrorOf(settlement->kind));
  if (!process_.error.empty()) process_.why = base::Printable(settlement->why, kMaxWhyBytes);
  telemetry::Span settle = item::QueueSpan(process_.trace, batch_, "settle", queue_);
  settle.parent = process_.id;
  settle.Set("messaging.message.id", message_id_);
  settle.start = process_.end;
  settlement->on_settled = [span = std::move(settle), sink = spans_->sink_,
                            clock = spans_->clock_](const absl::Status& settled) {
    telemetry::Span ended = span;
    ended.end = clock->Now();
    if (!settled.ok()) {
      ended.error = absl::StatusCodeToString(settled.code());
      ended.why = std::string(settled.message());
    }
    sink->Record(std::move(ended));
  };
  spans_->sink_->Record(std::move(process_));
}

}  // namespace muster::processor
