// SPDX-License-Identifier: Apache-2.0

// What every RPC of a muster server begins and ends with. A service's method is
//
//   grpc::Status GetBatch(grpc::ServerContext* context, const v1::GetBatchRequest* request,
//                         v1::GetBatchResponse* response) override {
//     return rpc::Answer(*context, [&] { return Get(*request, response); });
//   }
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/server.h"
#include "grpcpp/server_context.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/rpc/address.h"
#include "muster/rpc/limits.h"
#include "muster/rpc/listen_sockets.h"
#include "muster/rpc/status.h"
#include "muster/rpc/tls.h"
#include "muster/telemetry/registry.h"

namespace grpc {
class ServerBuilder;
}  // namespace grpc

namespace muster::rpc {

// DeadlineExceeded when `deadline` is not after `now`. Calls wait for a thread; by the time one is
// free the caller may have given up, and working for it would only delay the others.
absl::Status RefuseIfLate(absl::Time deadline, absl::Time now);

// Adds the time after which to try again to a status that may pass (Unavailable,
// ResourceExhausted), unless it has one already.
absl::Status WithAdvice(absl::Status status);

// Does `work`, which answers absl::Status, unless the call's deadline has passed.
template <typename Work>
grpc::Status Answer(const grpc::ServerContext& context, Work work,
                    base::Clock* clock = base::RealClock()) {
  const absl::Status late = RefuseIfLate(absl::FromChrono(context.deadline()), clock->Now());
  return ToGrpc(WithAdvice(late.ok() ? work() : late));
}

// Server: one gRPC server with what every role needs: health, reflection, limits, TLS, a policy,
// and a shutdown that lets running calls finish.
//
//   Start ──► listening, not ready ──SetReady(true)──► ready ──Drain──► stopped
//
// The server checks an arriving call against limits and policy before its service sees it; the
// service begins with Answer, which refuses calls that come too late.

class ConnectionAcceptor;
class FallbackService;
class HealthService;
class QueuedCalls;

struct ServerOptions {
  // HOST:PORT each; at least one. Port 0: one that is free.
  std::vector<std::string> addresses;
  // nullopt: plaintext, which is refused on every address but loopback (Address::IsLoopback).
  std::optional<TlsFiles> tls;
  // Plaintext on every address, and so without knowing any client: for networks whose lower layer
  // encrypts, and lets through only known peers.
  bool allow_plaintext = false;
  // TLS on every address without knowing any client: neither client roots nor a policy.
  bool allow_any_client = false;
  // See policy.h; empty: every client that can connect may call everything, which is refused on
  // every address but loopback unless tls->roots says who can connect.
  std::string policy_file;
  // Answers calls of services that the server does not have, and never with OK; empty: gRPC's
  // Unimplemented. Thread-safe and quick.
  std::function<absl::Status()> otherwise;
  // At a time. What is beyond it, or would take one of the spare descriptors (limits.h), is closed
  // at once: its caller gets Unavailable. The log tells of it.
  size_t max_connections = kMaxConnections;
  telemetry::Registry* metrics = nullptr;  // measures the calls; null: nothing does; not owned
  base::Clock* clock = base::RealClock();  // not owned
};

struct ServedService {
  std::string name;                  // as of its proto: v1::QueueService::service_full_name()
  grpc::Service* service = nullptr;  // not owned; outlives the server
  QueuedCalls* queued = nullptr;     // those of the service; not owned; outlives the server
};

// Thread-safe.
class Server {
 public:
  // Listens. Health says that nothing is ready until SetReady.
  //
  // InvalidArgument: an address, a certificate or the policy is wrong; plaintext on an address that
  // other machines can reach; TLS without client roots and policy there; a policy on such
  // plaintext, where no caller can prove its identity.
  // Unavailable naming the address: it is in use, or not this machine's.
  //
  // With `inherited`, of a server with the same addresses, it takes these sockets instead of new
  // ones.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       absl::Span<const ServedService> services,
                                                       std::vector<ListenSockets> inherited = {});
  // Drains without grace.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Where it listens, in the order of the options, with the ports that were picked.
  const std::vector<std::string>& addresses() const { return addresses_; }

  // What health answers, for the server and all its services. Calls are taken either way.
  void SetReady(bool ready);
  // Of one service, "muster.v1.QueueService".
  void SetServiceReady(const std::string& service, bool ready);

  // Makes health say that nothing is ready, refuses new calls, and lets running ones finish within
  // `grace`; then cancels them. Returns when the last has ended: a synchronous method that ignores
  // its cancellation delays it. A second call returns when the first has. Do not call it from
  // within a method.
  //
  // A refused call is answered Unavailable; only a call that arrives on an open connection at the
  // very moment at which the drain begins may be answered Cancelled by gRPC. No service has seen
  // it.
  void Drain(absl::Duration grace) ABSL_LOCKS_EXCLUDED(drain_mu_);
  // Drains without grace, and answers the sockets on which the server has listened; none if it has
  // drained before. They listen on: no other program gets the port, and connections wait for the
  // server that starts with them.
  std::vector<ListenSockets> HandOver() ABSL_LOCKS_EXCLUDED(drain_mu_);

 private:
  Server();

  // Connections wait until the acceptor starts.
  absl::Status Listen(const ServerOptions& options, std::vector<ListenSockets> inherited,
                      grpc::ServerBuilder* builder);
  void End(absl::Duration grace, absl::FunctionRef<void()> stop_accepting)
      ABSL_LOCKS_EXCLUDED(drain_mu_);

  // All outlive server_.
  std::unique_ptr<HealthService> health_;
  std::unique_ptr<FallbackService> fallback_;  // null: there is none
  std::vector<std::string> addresses_;
  std::vector<QueuedCalls*> queued_;  // that serve, health first; not owned
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<ConnectionAcceptor> acceptor_;  // hands connections to server_
  base::Mutex drain_mu_;  // held while draining, so that a second Drain waits
  bool drained_ ABSL_GUARDED_BY(drain_mu_) = false;
};

}  // namespace muster::rpc
