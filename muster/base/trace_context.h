// SPDX-License-Identifier: Apache-2.0

// TraceContext: identifies the trace of a batch, so that a tracing system can connect all spans
// that the batch causes. It is W3C Trace Context, level 1 (https://www.w3.org/TR/trace-context-1/):
//
//   traceparent   00-<trace id: 32 hex digits>-<parent id: 16>-<flags: 2>
//   stored        version │ trace id │ parent id │ flags
//                 1 byte  │ 16       │ 8         │ 1        26 bytes, integers big-endian
//
// A batch gets its context once, with the decision whether it is sampled, and keeps it: either all
// spans of a batch are recorded, or none is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::base {

// The most bytes of one context's tracestate: the standard demands that at least these are passed
// on.
inline constexpr size_t kMaxTraceStateBytes = 512;

struct TraceContext {
  uint64_t trace_high = 0;  // of the trace id; not both halves are zero
  uint64_t trace_low = 0;
  uint64_t parent = 0;  // span id of the caller that began the trace; not zero
  uint8_t flags = 0;    // bit 0: sampled
  std::string state;    // the tracestate that came with it, passed on as it is

  bool sampled() const { return (flags & 1) != 0; }
  std::string ToTraceparent() const;
  // 32 hex digits.
  std::string TraceId() const;
  // All but the state.
  std::string ToBytes() const;

  // Parses a traceparent. One of a later version is read as far as this version is known, and
  // unknown flags become zero. InvalidArgument: it is no traceparent; the message says why.
  static absl::StatusOr<TraceContext> FromTraceparent(absl::string_view text);
  // nullopt: the bytes are no context, or one of an unknown version. That is no error: a lost trace
  // must never stop the work that it describes.
  static std::optional<TraceContext> FromBytes(absl::string_view bytes);

  friend bool operator==(const TraceContext&, const TraceContext&) = default;
};

// InvalidArgument unless `state` can be passed on: at most 512 bytes of printable ASCII.
absl::Status CheckTraceState(absl::string_view state);

// A new trace, sampled with a probability of `rate`, 0 to 1. Its own random id decides, so that the
// decision can be checked. `random` yields uniformly distributed numbers.
TraceContext NewTrace(double rate, const std::function<uint64_t()>& random);
TraceContext NewTrace(double rate);

}  // namespace muster::base
