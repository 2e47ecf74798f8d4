// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/server.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/server_builder.h"
#include "muster/base/status.h"
#include "muster/rpc/call_metrics.h"
#include "muster/rpc/connection_acceptor.h"
#include "muster/rpc/grpc_log.h"
#include "muster/rpc/health_service.h"
#include "muster/rpc/limits.h"
#include "muster/rpc/policy_guard.h"
#include "muster/rpc/queued_calls.h"
#include "muster/rpc/reflection_limiter.h"

namespace muster::rpc {

absl::Status RefuseIfLate(absl::Time deadline, absl::Time now) {
  if (now < deadline) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat("the call's deadline had passed ",
                                                  absl::FormatDuration(now - deadline),
                                                  " before work on it could begin"));
}

absl::Status WithAdvice(absl::Status status) {
  if (RetryAfter(status).has_value()) return status;
  if (absl::IsUnavailable(status)) return WithRetryAfter(std::move(status), kRetryUnavailable);
  if (absl::IsResourceExhausted(status)) return WithRetryAfter(std::move(status), kRetryExhausted);
  return status;
}

// FallbackService: answers the calls of every service that a server does not have, in place of
// gRPC's Unimplemented: for a server that gets its services later.
//
// Thread-safe.
class FallbackService final : public grpc::CallbackGenericService {
 public:
  // gRPC's threads call `answer` with each call: be quick. It must not return OK; its status is
  // sent as any other answer is (ToGrpc).
  explicit FallbackService(std::function<absl::Status()> answer) : answer_(std::move(answer)) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

 private:
  const std::function<absl::Status()> answer_;
};

namespace {

// Ends its call at once, and itself when gRPC has done with it.
class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(const absl::Status& why) { Finish(ToGrpc(WithAdvice(why))); }

  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerGenericBidiReactor* FallbackService::CreateReactor(
    grpc::GenericCallbackServerContext*) {
  return new Refusal(answer_());
}

namespace {

// chrono's clocks count nanoseconds in 64 bits; a year is no limit in practice.
constexpr absl::Duration kMaxGrace = absl::Hours(24 * 365);

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

void SetLimits(grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder->SetMaxSendMessageSize(kMaxMessageBytes);
  grpc::ResourceQuota quota("muster");
  quota.SetMaxThreads(kMaxCallThreads);
  builder->SetResourceQuota(quota);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection);
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                              Milliseconds(kHandshakeTimeout));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(kKeepaliveTime));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(kKeepaliveTimeout));
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                              Milliseconds(kMinPingInterval));
  // Streams that wait for news are silent for hours.
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
}

absl::Status CheckPlaintext(const Address& address, const ServerOptions& options) {
  if (address.IsLoopback()) return absl::OkStatus();
  if (!options.allow_plaintext) {
    return absl::InvalidArgumentError(absl::StrCat(
        address.ToString(), " is neither localhost nor 127.0.0.1 nor [::1]: others can reach it, ",
        "so it needs TLS (--tls-cert and --tls-key) or --allow-plaintext"));
  }
  if (!options.policy_file.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the policy '", options.policy_file, "' cannot hold on ", address.ToString(),
                     " without TLS: callers cannot prove their identity there"));
  }
  return absl::OkStatus();
}

// TLS alone keeps listeners out, not callers.
absl::Status CheckClients(const Address& address, const ServerOptions& options) {
  const bool knows_clients = !options.tls->roots.empty() || !options.policy_file.empty();
  if (address.IsLoopback() || knows_clients || options.allow_any_client) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      address.ToString(),
      " is neither localhost nor 127.0.0.1 nor [::1]: any host that reaches it ",
      "could call everything, so it needs to know its clients (--tls-roots, --policy) or ",
      "--allow-any-client"));
}

// On loopback it is gRPC's "local" transport: plaintext for clients, but the server sees to it that
// the peer is on this machine, and a policy can ask for that.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> CredentialsFor(
    const Address& address, const ServerOptions& options) {
  if (options.tls.has_value()) {
    MUSTER_RETURN_IF_ERROR(CheckClients(address, options));
    return ServerCredentials(*options.tls);
  }
  MUSTER_RETURN_IF_ERROR(CheckPlaintext(address, options));
  return address.IsLoopback() ? grpc::experimental::LocalServerCredentials(LOCAL_TCP)
                              : grpc::InsecureServerCredentials();
}

std::vector<std::string> NamesOf(absl::Span<const ServedService> services) {
  std::vector<std::string> names;
  for (const ServedService& served : services) names.push_back(served.name);
  return names;
}

// gRPC demands that a queue is empty before it is destroyed.
void Discard(grpc::ServerCompletionQueue* queue) {
  queue->Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) continue;
}

}  // namespace

Server::Server() = default;

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                                      absl::Span<const ServedService> services,
                                                      std::vector<ListenSockets> inherited) {
  PrepareGrpc();
  // Reflection, for every server that is built from now on; again, it does nothing.
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  std::unique_ptr<Server> server(new Server());
  grpc::ServerBuilder builder;
  SetLimits(&builder);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(ReflectionLimiter(options.clock));
  if (options.metrics != nullptr) {
    interceptors.push_back(CallMetrics(NamesOf(services), options.metrics, options.clock));
  }
  builder.experimental().SetInterceptorCreators(std::move(interceptors));
  MUSTER_RETURN_IF_ERROR(server->Listen(options, std::move(inherited), &builder));
  server->health_ = std::make_unique<HealthService>(NamesOf(services));
  std::vector<QueuedCalls*> queued = {server->health_.get()};
  for (const ServedService& served : services) {
    builder.RegisterService(served.service);
    if (served.queued != nullptr) queued.push_back(served.queued);
  }
  builder.RegisterService(server->health_.get());
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues(queued.size());
  for (auto& queue : queues) queue = builder.AddCompletionQueue();
  if (options.otherwise) {
    server->fallback_ = std::make_unique<FallbackService>(options.otherwise);
    builder.RegisterCallbackGenericService(server->fallback_.get());
  }
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr) {
    for (const auto& queue : queues) Discard(queue.get());
    return absl::InternalError("gRPC did not start the server");
  }
  for (size_t i = 0; i < queued.size(); ++i) queued[i]->Serve(std::move(queues[i]));
  server->queued_ = std::move(queued);
  server->acceptor_->Start();
  return server;
}

absl::Status Server::Listen(const ServerOptions& options, std::vector<ListenSockets> inherited,
                            grpc::ServerBuilder* builder) {
  using Builder = grpc::ServerBuilder::experimental_type;
  if (options.addresses.empty()) {
    return absl::InvalidArgumentError("a server needs an address to listen on");
  }
  std::shared_ptr<PolicyGuard> guard;
  if (!options.policy_file.empty()) {
    MUSTER_ASSIGN_OR_RETURN(guard, PolicyGuard::Open(options.policy_file, options.clock));
  }
  acceptor_ = std::make_unique<ConnectionAcceptor>(options.max_connections, options.clock);
  for (size_t i = 0; i < options.addresses.size(); ++i) {
    MUSTER_ASSIGN_OR_RETURN(const Address address, ParseAddress(options.addresses[i]));
    MUSTER_ASSIGN_OR_RETURN(const auto credentials, CredentialsFor(address, options));
    if (guard != nullptr) credentials->SetAuthMetadataProcessor(guard);
    // Shared, because the function that holds it is copied.
    const std::shared_ptr<grpc::experimental::ExternalConnectionAcceptor> grpc_takes =
        builder->experimental().AddExternalConnectionAcceptor(
            Builder::ExternalConnectionType::FROM_FD, credentials);
    const auto take = [grpc_takes](int listener, int fd) {
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
      connection.listener_fd = listener;
      connection.fd = fd;
      grpc_takes->HandleNewConnection(&connection);
    };
    ListenSockets sockets;
    if (i < inherited.size()) {
      sockets = std::move(inherited[i]);
    } else {
      MUSTER_ASSIGN_OR_RETURN(sockets, ListenOn(address));
    }
    addresses_.push_back(sockets.address.ToString());
    MUSTER_RETURN_IF_ERROR(acceptor_->Add(std::move(sockets), take));
  }
  return absl::OkStatus();
}

Server::~Server() { Drain(absl::ZeroDuration()); }

void Server::SetReady(bool ready) { health_->SetReady(ready); }

void Server::SetServiceReady(const std::string& service, bool ready) {
  health_->SetServiceReady(service, ready);
}

void Server::Drain(absl::Duration grace) {
  End(grace, [this] { acceptor_->Stop(); });
}

std::vector<ListenSockets> Server::HandOver() {
  std::vector<ListenSockets> sockets;
  End(absl::ZeroDuration(), [&] { sockets = acceptor_->Stop(); });
  return sockets;
}

void Server::End(absl::Duration grace, absl::FunctionRef<void()> stop_accepting) {
  base::MutexLock lock(&drain_mu_);
  if (drained_ || server_ == nullptr) return;
  drained_ = true;
  for (QueuedCalls* const queued : queued_) queued->Drain();
  stop_accepting();  // before the server, which drops a connection that comes later, and leaks it
  server_->Shutdown(absl::ToChronoTime(absl::Now() + std::min(grace, kMaxGrace)));
  server_->Wait();
  for (QueuedCalls* const queued : queued_) queued->End();
}

}  // namespace muster::rpc
