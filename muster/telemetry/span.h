// SPDX-License-Identifier: Apache-2.0

// Span: one operation of the mesh on a batch, as a tracing system shows it. SpanSink: where spans
// go.
//
// All spans of a batch belong to one trace, the batch's (base/trace_context.h), and are recorded
// when they have ended: muster has no current span, and hands none from thread to thread. Which
// spans there are, and how their ids are found, says item/batch_trace.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/trace_context.h"

namespace muster::telemetry {

// As OpenTelemetry has them.
enum class SpanKind { kInternal, kServer, kClient, kProducer, kConsumer };

struct SpanAttribute {
  absl::string_view key;  // a constant
  std::variant<std::string, int64_t> value;
};

struct Span {
  base::TraceContext trace;  // its parent does not count here
  uint64_t id = 0;           // not 0
  uint64_t parent = 0;       // a span of the same trace; 0: the span is the trace's root
  std::string name;
  SpanKind kind = SpanKind::kInternal;
  absl::Time start;
  absl::Time end;
  std::vector<SpanAttribute> attributes;
  std::vector<uint64_t> links;  // spans of the same trace
  std::string error;  // the attribute error.type: a short word; empty: the operation is OK
  std::string why;    // of an error: a sentence

  void Set(absl::string_view key, absl::string_view value) {
    attributes.push_back({key, std::string(value)});
  }
  void Set(absl::string_view key, int64_t value) { attributes.push_back({key, value}); }
};

// Thread-safe.
class SpanSink {
 public:
  virtual ~SpanSink() = default;

  // Takes a span. Never waits: what is too much is dropped and counted.
  virtual void Record(Span span) = 0;
};

// Whether the spans of a batch with this trace are wanted. A null sink wants none.
inline bool Wants(const SpanSink* sink, const std::optional<base::TraceContext>& trace) {
  return sink != nullptr && trace.has_value() && trace->sampled();
}

// A random id for a span.
uint64_t NewSpanId();

}  // namespace muster::telemetry
