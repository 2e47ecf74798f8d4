// The bounds of handlers over gRPC, each with its reason. Those of
// proto/muster/v1/handler_service.proto are promised to who writes handlers.
#pragma once

#include <cstddef>

#include "absl/time/time.h"

namespace muster::handler::grpc {

inline constexpr int kProtocolVersion = 1;

// As gRPC takes by default, in both directions.
inline constexpr size_t kMaxMessageBytes = size_t{4} << 20;
// From the start of a call to the handler's `ready`.
inline constexpr absl::Duration kReadyTimeout = absl::Seconds(10);
// After the nth failure in a row the next call waits kFirstHoldBack × 2^(n−1), at most
// kMaxHoldBack: a server that is down is not stormed.
inline constexpr absl::Duration kFirstHoldBack = absl::Milliseconds(100);
inline constexpr absl::Duration kMaxHoldBack = absl::Seconds(30);
// A trouble that stays the same is told again only after so long: every few seconds it would bury
// all else in the log.
inline constexpr absl::Duration kTellAgainAfter = absl::Minutes(1);
// From the first call to a server that nobody has ever reached: time to start one beside it.
inline constexpr absl::Duration kReachPatience = absl::Seconds(30);
// How long a handler may take to end its side of a call that the processor has ended.
inline constexpr absl::Duration kEndGrace = absl::Seconds(1);

inline constexpr size_t kMaxReadyTextBytes = 256;  // of its name, and of its version
inline constexpr int kMaxConcurrency = 1000;
// Answers of abandoned items that may still come. Beyond it the oldest are no longer expected, and
// ones that come all the same are a mistake: a handler that owes so many hangs.
inline constexpr size_t kMaxStrays = 10'000;

}  // namespace muster::handler::grpc
