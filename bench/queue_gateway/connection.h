// SPDX-License-Identifier: Apache-2.0

// Connection: HTTP/1.1 over a socket that does not block, one request at a time.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace muster::gateway_bench {

struct Reply {
  int status = 0;
  std::string body;
};

// Ends the process when the server goes away or its reply is none: the figures would be void.
class Connection {
 public:
  // Connects to PORT of 127.0.0.1.
  explicit Connection(int port);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int descriptor() const { return socket_; }
  // Whether a reply is awaited.
  bool is_busy() const { return is_busy_; }

  void Send(absl::string_view bytes);
  // Reads what is there. True: `reply` is whole now.
  bool Receive(Reply* reply);

 private:
  bool Parse(Reply* reply);

  int socket_;
  bool is_busy_ = false;
  std::string unread_;
};

[[noreturn]] void Die(absl::string_view why);

}  // namespace muster::gateway_bench
