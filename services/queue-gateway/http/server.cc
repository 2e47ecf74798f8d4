// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/http/server.h"

#include <unistd.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "muster/base/log.h"
#include "muster/base/mutex.h"
#include "muster/base/status.h"
#include "muster/base/worker_pool.h"
#include "muster/os/file_descriptor.h"
#include "muster/rpc/address.h"
#include "muster/rpc/listen_sockets.h"
#include "services/queue-gateway/http/connection.h"
#include "services/queue-gateway/http/tls_context.h"

namespace muster::queue_gateway::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// One thread and the sockets that it serves.
class IoThread {
 public:
  IoThread() : work_(context_.get_executor()), thread_([this] { Run(); }) {}
  ~IoThread() { Stop(); }

  asio::io_context& context() { return context_; }
  void Stop() {
    context_.stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  // What is thrown ends the connection that it is about, for nothing else holds it, and not the
  // process: the trailer of a chunked body can bring a header that is too long for Boost.
  void Run() {
    for (;;) {
      try {
        context_.run();
        return;
      } catch (const std::exception& error) {
        base::Log(base::kWarning, "a connection is dropped", {{"why", error.what()}});
      }
    }
  }

  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace

// Accepts on the first I/O thread, and gives the connections to all of them in turn.
class Server::Core final : public ConnectionHost {
 public:
  Core(const ServerOptions& options, AsyncHandler handler, Refusal refusal,
       std::unique_ptr<TlsContext> tls)
      : options_(options),
        handler_(std::move(handler)),
        refusal_(std::move(refusal)),
        tls_(std::move(tls)),
        workers_(std::make_unique<base::WorkerPool>(options.workers)) {
    for (int i = 0; i < options.io_threads; ++i) threads_.push_back(std::make_unique<IoThread>());
    accept_pause_ = std::make_unique<asio::steady_timer>(threads_.front()->context());
  }

  ~Core() override {
    Drain(absl::ZeroDuration());
    // A stopped thread leaves what waits for it, and that uses the members below.
    acceptors_.clear();
    accept_pause_.reset();
    threads_.clear();
  }

  void Listen(rpc::ListenSockets sockets) {
    address_ = sockets.address.ToString();
    for (os::FileDescriptor& socket : sockets.sockets) {
      acceptors_.push_back(std::make_unique<tcp::acceptor>(threads_.front()->context()));
      sockaddr_storage bound = {};
      socklen_t size = sizeof(bound);
      getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &size);
      acceptors_.back()->assign(bound.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(),
                                socket.Release());
    }
    asio::post(threads_.front()->context(), [this] {
      for (const auto& acceptor : acceptors_) Accept(acceptor.get());
    });
  }

  void BeginDrain() ABSL_LOCKS_EXCLUDED(mu_) {
    if (draining_.exchange(true)) return;
    asio::post(threads_.front()->context(), [this] {
      error_code ignored;
      for (const auto& acceptor : acceptors_) acceptor->close(ignored);
      accept_pause_->cancel();
    });
    for (const auto& connection : OpenConnections()) connection->Drain();
  }

  void Drain(absl::Duration grace) ABSL_LOCKS_EXCLUDED(mu_) {
    BeginDrain();
    if (drained_.exchange(true)) return;
    const absl::Duration deadline = options_.clock->Monotonic() + grace;
    {
      base::MutexLock lock(&mu_);
      while (!connections_.empty() && !options_.clock->WaitUntil(&changed_, &mu_, deadline)) {
      }
    }
    for (const auto& thread : threads_) thread->Stop();
    // Waits for the handlers. Their replies go to threads that are stopped, and end with them.
    workers_.reset();
    for (const auto& connection : OpenConnections()) connection->CutOff();
  }

  const std::string& address() const { return address_; }
  int connections() ABSL_LOCKS_EXCLUDED(mu_) {
    base::MutexLock lock(&mu_);
    return static_cast<int>(connections_.size());
  }

  const ServerOptions& options() const override { return options_; }
  Reply Refuse(int status, const Request& head) const override { return refusal_(status, head); }

  bool TakeBodyBytes(size_t bytes) override {
    if (body_bytes_.fetch_add(bytes) + bytes <= options_.max_all_bodies_bytes) return true;
    body_bytes_.fetch_sub(bytes);
    return false;
  }
  void CountBodyBytes(size_t bytes) override { body_bytes_.fetch_add(bytes); }
  void ReturnBodyBytes(size_t bytes) override { body_bytes_.fetch_sub(bytes); }

  void Run(Request request, std::shared_ptr<Exchange> exchange,
           std::function<bool()> has_hung_up) override {
    workers_->Add([this, came = options_.clock->Monotonic(), request = std::move(request),
                   exchange = std::move(exchange), has_hung_up = std::move(has_hung_up)]() mutable {
      const bool is_stale = options_.clock->Monotonic() - came >= options_.stale_after;
      if (is_stale && has_hung_up()) return;
      handler_(std::move(request), std::move(exchange));
    });
  }

  bool is_draining() const override { return draining_; }

  void OnClosed(Connection* connection) override ABSL_LOCKS_EXCLUDED(mu_) {
    base::MutexLock lock(&mu_);
    connections_.erase(connection);
    changed_.NotifyAll();
  }

 private:
  void Accept(tcp::acceptor* acceptor) {
    IoThread& thread = *threads_[next_thread_++ % threads_.size()];
    acceptor->async_accept(thread.context(),
                           [this, acceptor, &thread](error_code error, tcp::socket socket) {
                             OnAccepted(acceptor, &thread, error, std::move(socket));
                           });
  }

  void OnAccepted(tcp::acceptor* acceptor, IoThread* thread, error_code error, tcp::socket socket) {
    if (draining_) return;
    if (error) return PauseAccepting(acceptor, error);
    Accept(acceptor);  // first: what is thrown below ends this connection alone
    // Beyond the limit the socket is closed here, before it costs more.
    if (connections() < options_.max_connections) {
      const std::shared_ptr<Connection> connection =
          MakeConnection(std::move(socket), tls_ == nullptr ? nullptr : &tls_->Current(), this);
      Keep(connection);
      asio::post(thread->context(), [connection] { connection->Start(); });
    }
  }

  void PauseAccepting(tcp::acceptor* acceptor, error_code error) {
    if (error == asio::error::connection_aborted) return Accept(acceptor);
    base::Log(base::kWarning, "a connection cannot be accepted", {{"why", error.message()}});
    accept_pause_->expires_after(
        std::chrono::milliseconds(absl::ToInt64Milliseconds(kAcceptPause)));
    accept_pause_->async_wait([this, acceptor](error_code) {
      if (!draining_) Accept(acceptor);
    });
  }

  void Keep(const std::shared_ptr<Connection>& connection) ABSL_LOCKS_EXCLUDED(mu_) {
    base::MutexLock lock(&mu_);
    connections_[connection.get()] = connection;
  }

  std::vector<std::shared_ptr<Connection>> OpenConnections() ABSL_LOCKS_EXCLUDED(mu_) {
    std::vector<std::shared_ptr<Connection>> open;
    base::MutexLock lock(&mu_);
    for (const auto& [key, weak] : connections_) {
      if (auto connection = weak.lock()) open.push_back(std::move(connection));
    }
    return open;
  }

  const ServerOptions options_;
  const AsyncHandler handler_;
  const Refusal refusal_;
  const std::unique_ptr<TlsContext> tls_;  // null: plaintext; of the first I/O thread
  std::string address_;
  size_t next_thread_ = 0;  // of the first I/O thread
  std::atomic<bool> draining_ = false;
  std::atomic<bool> drained_ = false;  // Drain was called
  std::atomic<size_t> body_bytes_ = 0;

  base::Mutex mu_;
  base::CondVar changed_;
  // Weak: a connection keeps itself alive.
  absl::flat_hash_map<Connection*, std::weak_ptr<Connection>> connections_ ABSL_GUARDED_BY(mu_);

  std::unique_ptr<base::WorkerPool> workers_;
  // They outlive what waits on them.
  std::vector<std::unique_ptr<IoThread>> threads_;
  std::unique_ptr<asio::steady_timer> accept_pause_;
  std::vector<std::unique_ptr<tcp::acceptor>> acceptors_;
};

Server::Server(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Server::~Server() = default;

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options, Handler handler,
                                                      Refusal refusal) {
  return Start(options,
               AsyncHandler([handler = std::move(handler)](
                                const Request& request, const std::shared_ptr<Exchange>& exchange) {
                 exchange->Answer(handler(request));
               }),
               std::move(refusal));
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                                      AsyncHandler handler, Refusal refusal) {
  MUSTER_ASSIGN_OR_RETURN(const rpc::Address address, rpc::ParseAddress(options.address));
  if (options.certificate.empty() != options.key.empty()) {
    return absl::InvalidArgumentError("a certificate needs its key, and a key its certificate");
  }
  std::unique_ptr<TlsContext> tls;
  if (!options.certificate.empty()) {
    MUSTER_ASSIGN_OR_RETURN(tls, TlsContext::Load({options.certificate, options.key},
                                                  options.certificate_refresh, options.clock));
  }
  MUSTER_ASSIGN_OR_RETURN(rpc::ListenSockets sockets, rpc::ListenOn(address));
  auto core =
      std::make_unique<Core>(options, std::move(handler), std::move(refusal), std::move(tls));
  core->Listen(std::move(sockets));
  // Not make_unique: the constructor is private.
  return std::unique_ptr<Server>(new Server(std::move(core)));
}

const std::string& Server::address() const { return core_->address(); }
int Server::connections() const { return core_->connections(); }
void Server::BeginDrain() { core_->BeginDrain(); }
void Server::Drain(absl::Duration grace) { core_->Drain(grace); }

}  // namespace muster::queue_gateway::http
