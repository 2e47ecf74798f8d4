// TraceContext: what ties together all that a batch sets off, for whoever follows it from afar. It
// is W3C Trace Context, level 1 (https://www.w3.org/TR/trace-context-1/):
//
//   traceparent   00-<trace id: 32 hex digits>-<parent id: 16>-<flags: 2>
//   stored        version │ trace id │ parent id │ flags
//                 1 byte  │ 16       │ 8         │ 1        26 bytes, integers big-endian
//
// A context is chosen once for a batch, with the decision whether it is sampled, and never changed:
// the spans of a batch are all recorded, or none is.
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

// Of the tracestate of one context: what the standard wants everybody to pass on at least.
inline constexpr size_t kMaxTraceStateBytes = 512;

struct TraceContext {
  uint64_t trace_high = 0;  // of the trace id; not both halves are zero
  uint64_t trace_low = 0;
  uint64_t parent = 0;  // span id of whoever began it; not zero
  uint8_t flags = 0;    // bit 0: sampled
  std::string state;    // the tracestate that came with it; for those who know it

  bool sampled() const { return (flags & 1) != 0; }
  std::string ToTraceparent() const;
  // All but the state.
  std::string ToBytes() const;

  // Of a traceparent. One of a later version is read as far as it is known, and flags that are not
  // known are zero. InvalidArgument: it is none; the message says what is wrong.
  static absl::StatusOr<TraceContext> FromTraceparent(absl::string_view text);
  // nullopt: these bytes are none, or of a version that is not known. A trace is never worth the
  // work that it tells of.
  static std::optional<TraceContext> FromBytes(absl::string_view bytes);

  friend bool operator==(const TraceContext&, const TraceContext&) = default;
};

// InvalidArgument unless `state` can be passed on: at most 512 bytes of printable ASCII.
absl::Status CheckTraceState(absl::string_view state);

// A new trace, sampled with a probability of `rate`, 0 to 1. Its own random id decides, so that the
// decision can be checked. `random` yields any number, each as likely as any other.
TraceContext NewTrace(double rate, const std::function<uint64_t()>& random);
TraceContext NewTrace(double rate);

}  // namespace muster::base
