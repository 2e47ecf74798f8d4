// SPDX-License-Identifier: Apache-2.0

// Server: an HTTP/1.1 server, for requests whose work blocks.
//
//   accept ─► connection: header ─► body ─► worker: handler ─► reply ─┐
//                 ▲                                                   │
//                 └──────────────── keep-alive ───────────────────────┘
//
// A few threads read and write for all connections, so that an idle connection costs no thread;
// `workers` threads run the handler. A connection has one request under way at a time: what a peer
// sends ahead (pipelining) waits in the socket. So at most as many requests wait for a worker as
// there are connections. One whose peer hangs up while it waits there is not run: when workers come
// back from a disk that stood still, its peer has tried again. A handler that has a request wait
// after that, as for the call that others share (operations/gatherer.h), asks its exchange the
// same.
//
// What is no proper request is refused without the handler, and the connection closed: 400
// (malformed, two lengths, no Host), 413 (body over its limit), 431 (headers over theirs), 501
// (another transfer coding than chunked), 503 (too many bodies at a time). A peer that sends or
// reads too slowly is cut off. Connections beyond their limit are closed at once.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "services/queue-gateway/http/limits.h"
#include "services/queue-gateway/http/message.h"

namespace muster::queue_gateway::http {

struct ServerOptions {
  std::string address;  // HOST:PORT; port 0: one that is free
  // Of the certificate and its key (TlsContext); both empty: plaintext.
  std::string certificate;
  std::string key;
  int io_threads = kIoThreads;
  int workers = kWorkerThreads;
  int max_connections = kMaxConnections;
  size_t max_header_bytes = kMaxHeaderBytes;
  size_t max_body_bytes = kMaxBodyBytes;
  size_t max_all_bodies_bytes = kMaxAllBodiesBytes;
  absl::Duration idle_timeout = kIdleTimeout;
  absl::Duration request_timeout = kRequestTimeout;
  absl::Duration reply_timeout = kReplyTimeout;
  absl::Duration stale_after = kStaleAfter;
  absl::Duration certificate_refresh = kCertificateRefresh;
  base::Clock* clock = base::RealClock();  // not owned; of the certificate, not of the timeouts
};

// Called by the workers, several at a time. Must not throw. It may return before it answers, and
// keep the exchange, which keeps the connection; let go of all before the server is destroyed.
using AsyncHandler = std::function<void(Request, std::shared_ptr<Exchange>)>;
// One that answers before it returns.
using Handler = std::function<Reply(const Request&)>;
// The reply to what is no proper request, by its status, and with as much of its line and headers
// as was read; called by the I/O threads: be quick.
using Refusal = std::function<Reply(int status, const Request& head)>;

// Thread-safe.
class Server {
 public:
  // Listens. InvalidArgument: the address or the certificate is wrong; Unavailable naming the
  // address: it is in use, or not this machine's.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       AsyncHandler handler, Refusal refusal);
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       Handler handler, Refusal refusal);
  // Drains without a grace.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // HOST:PORT, with the port that was picked.
  const std::string& address() const;
  int connections() const;

  // Accepts no more, closes idle connections, and the others after the reply to the request that is
  // under way or has arrived; that says so. Returns at once. Calling it again does nothing.
  void BeginDrain();
  // The same, and waits. After `grace` it cuts off those that are left, and returns when the last
  // handler has returned. Calling it again does nothing.
  void Drain(absl::Duration grace);

 private:
  class Core;
  explicit Server(std::unique_ptr<Core> core);

  const std::unique_ptr<Core> core_;
};

}  // namespace muster::queue_gateway::http
