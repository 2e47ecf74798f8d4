// SPDX-License-Identifier: Apache-2.0

// Connection: one peer of the HTTP server, from its first byte to its last.
//
// All of it happens on the thread of its socket; only ConnectionHost::Run carries a request away to
// another one.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <functional>
#include <memory>

#include "services/queue-gateway/http/message.h"
#include "services/queue-gateway/http/server.h"

namespace muster::queue_gateway::http {

class Connection;

// What a connection asks of its server. Thread-safe.
class ConnectionHost {
 public:
  virtual ~ConnectionHost() = default;

  virtual const ServerOptions& options() const = 0;
  virtual Reply Refuse(int status, const Request& head) const = 0;
  // Takes `bytes` of what all bodies may have; false: they are not there, or too many are taken.
  virtual bool TakeBodyBytes(size_t bytes) = 0;
  // Takes them for a body that is in memory already, if need be beyond the limit.
  virtual void CountBodyBytes(size_t bytes) = 0;
  virtual void ReturnBodyBytes(size_t bytes) = 0;
  // Runs the handler on a worker. `has_hung_up`: whether the peer of the exchange has; thread-safe
  // while there is the exchange.
  virtual void Run(Request request, std::shared_ptr<Exchange> exchange,
                   std::function<bool()> has_hung_up) = 0;
  // Whether the server accepts no more requests.
  virtual bool is_draining() const = 0;
  // The connection ends.
  virtual void OnClosed(Connection* connection) = 0;
};

class Connection {
 public:
  virtual ~Connection() = default;
  // Called once, on the thread of the socket.
  virtual void Start() = 0;
  // Thread-safe. Closes the connection if it is idle; a request that is under way, or of which a
  // byte has arrived, is answered first.
  virtual void Drain() = 0;
  // Closes the socket at once. Called when the thread of the socket has stopped.
  virtual void CutOff() = 0;
};

// `host` is not owned and outlives the connection. The connection keeps itself alive while it is
// open. `tls` is null for plaintext, and needed during the call only.
std::shared_ptr<Connection> MakeConnection(boost::asio::ip::tcp::socket socket,
                                           boost::asio::ssl::context* tls, ConnectionHost* host);

}  // namespace muster::queue_gateway::http
