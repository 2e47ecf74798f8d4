// SPDX-License-Identifier: Apache-2.0

// A handler over gRPC, and its bounds, each with its reason. The bounds named in
// proto/muster/v1/handler_service.proto are promised to authors of handlers.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/handler/handler.h"
#include "muster/handler/health_troubles.h"
#include "muster/handler/restarts.h"
#include "muster/rpc/tls.h"

namespace muster::handler::grpc {

inline constexpr int kProtocolVersion = 1;

// gRPC's default, in both directions.
inline constexpr size_t kMaxMessageBytes = size_t{4} << 20;
// From the start of a call to the handler's `ready`.
inline constexpr absl::Duration kReadyTimeout = absl::Seconds(10);
// After the nth failure in a row the next call waits kFirstHoldBack × 2^(n−1), at most
// kMaxHoldBack: a server that is down is not stormed.
inline constexpr absl::Duration kFirstHoldBack = absl::Milliseconds(100);
inline constexpr absl::Duration kMaxHoldBack = absl::Seconds(30);
// An unchanged problem is logged again only after this: more often it would bury the rest of the
// log.
inline constexpr absl::Duration kTellAgainAfter = absl::Minutes(1);
// While no server of the wanted version is there: leaves time to start one.
inline constexpr absl::Duration kServerPatience = absl::Seconds(30);
// How long a handler may take to end its side of a call that the processor has ended.
inline constexpr absl::Duration kEndGrace = absl::Seconds(1);

inline constexpr size_t kMaxReadyTextBytes = 256;  // of its name, and of its version
inline constexpr int kMaxConcurrency = 1000;
// The most abandoned items with answers that may still come. Beyond it muster no longer expects the
// oldest, and takes their answers for a mistake: a handler that owes so many hangs.
inline constexpr size_t kMaxStrays = 10'000;

// A handler that runs in a server of its own, which implements muster.v1.HandlerService. For users:
// docs/grpc_handlers.md; the contract is proto/muster/v1/handler_service.proto.

struct GrpcOptions {
  std::string address;                            // HOST:PORT
  std::optional<rpc::TlsFiles> tls;               // nullopt: plaintext, which is for loopback
  bool allow_plaintext = false;                   // to other hosts, too
  std::map<std::string, std::string> parameters;  // what the handler gets as such
  // The version that the batches are pinned to. A handler that reports another one gets no items.
  std::string version = "1";
  std::string processor = "local";  // role instance; for the handler's logs
  // From handing out an item to its answer. Time in which the item waits for a call, or for its
  // turn, does not count; an item that would have to wait longer than this is deferred.
  absl::Duration deadline = absl::Seconds(60);
  absl::Duration ready_timeout = kReadyTimeout;
  absl::Duration first_hold_back = kFirstHoldBack;
  absl::Duration max_hold_back = kMaxHoldBack;
  absl::Duration end_grace = kEndGrace;
  // Called when the handler said that it cannot do such a job, so that the process can stop working
  // for it. Runs on a worker's thread, each time that the handler is asked. May be empty.
  std::function<void(const absl::Status&)> on_refused;
  // Called with Unavailable, each time that the handler is called in vain, once server_patience is
  // over, so that the process can go on without the server. It is over when no server of `version`
  // was there for so long: no connection was made since the first call, or a server of another
  // version, or one without the service, has answered, and since then none of `version`. A server
  // that worked and is gone is waited for without end. The message says what to start. Threads as
  // on_refused.
  std::function<void(const absl::Status&)> on_no_server;
  absl::Duration server_patience = kServerPatience;
  // Set: the process gives up working for the job as it was. Items that are with the server are
  // finished; one that waits for a call is released.
  std::stop_token draining = {};
  // Where the handlers note whether the server can be called; null: nowhere. Shared with its
  // readers; the handlers may outlive them.
  std::shared_ptr<handler::HealthTroubles> health;
  // Where they note each call of the server that another one has to follow; null: nowhere. Shared
  // likewise.
  std::shared_ptr<handler::Restarts> restarts = nullptr;
  base::Clock* clock = base::RealClock();  // not owned
};

// All handlers that the factory and its copies make share one call of the server; they must be for
// one job. The factory returns InvalidArgument when address or certificates are wrong, or when the
// address needs certificates (rpc::Address::IsLoopback) and there are none. It makes no call: the
// first item does. The call ends when the factory, its copies and all their handlers are destroyed.
//
// Process returns Retry, with the reason, when the answer is late or breaks the contract, and when
// the call ends before the answer. It returns Defer if the item is not at fault: the server cannot
// be reached, is about to stop, has another version or refuses the job, or another item's answer
// caused the call to be cancelled. When the stop token is set, Process asks the handler to abandon
// the item, and releases it. It also releases an item that would wait for a call after `draining`
// is set.
handler::HandlerFactory GrpcHandlerFactory(GrpcOptions options);

}  // namespace muster::handler::grpc
