// The bounds of handlers over gRPC, each with its reason. Those of
// proto/muster/v1/handler_service.proto are promised to who writes handlers.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/handler/handler.h"
#include "muster/handler/health.h"
#include "muster/rpc/tls.h"

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

// A handler that is a server of its own, which speaks muster.v1.HandlerService. For users:
// docs/grpc_handlers.md; the contract is proto/muster/v1/handler_service.proto.

struct GrpcOptions {
  std::string address;                            // HOST:PORT
  std::optional<rpc::TlsFiles> tls;               // nullopt: plaintext, which is for loopback
  bool allow_plaintext = false;                   // to other hosts, too
  std::map<std::string, std::string> parameters;  // what the handler gets as such
  // That the batches are pinned to. A handler that says another is given no items.
  std::string version = "1";
  std::string processor = "local";  // role instance; for the handler's logs
  // From handing out an item to its answer. Time in which the item waits for a call, or for its
  // turn, does not count; an item for which that takes longer than this is deferred.
  absl::Duration deadline = absl::Seconds(60);
  absl::Duration ready_timeout = kReadyTimeout;
  absl::Duration first_hold_back = kFirstHoldBack;
  absl::Duration max_hold_back = kMaxHoldBack;
  absl::Duration end_grace = kEndGrace;
  // The handler said that it cannot work on such a job; who can stop working for it should. From a
  // worker's thread, each time that it is asked. May be empty.
  std::function<void(const absl::Status&)> on_refused;
  // No connection to the server has come to be within reach_patience of the first call; who can do
  // without it should. As on_refused.
  std::function<void(const absl::Status&)> on_unreached;
  absl::Duration reach_patience = kReachPatience;
  // Where the handlers tell whether the server can be called; null: nowhere. Shared with who reads
  // it, whom they may outlive.
  std::shared_ptr<handler::HealthIssues> health;
  base::Clock* clock = base::RealClock();  // not owned
};

// All handlers that the factory and its copies make share one call of the server; they must be for
// one job. The factory answers InvalidArgument when address or certificates are wrong, or when the
// address wants certificates (rpc::Address::IsLoopback) and there are none. It calls nobody: that
// happens with the first item, and the call ends when the factory, its copies and all that they
// made are gone.
//
// Process gives Retry, with the reason, when the answer is late or anything but what the contract
// allows, and when the call ends before it is there. Where the item is not at fault (the server
// cannot be reached, is about to stop, has another version, refuses the job, or another item's
// answer had the call cancelled) it gives Defer. When the stop token is set the handler is told to
// abandon the item, which is released.
handler::HandlerFactory GrpcHandlerFactory(GrpcOptions options);

}  // namespace muster::handler::grpc
