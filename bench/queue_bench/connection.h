// SPDX-License-Identifier: Apache-2.0

// Connection: blocking TCP to a server on this machine.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace muster::queue_bench {

// Whether a server accepts connections at this port of 127.0.0.1.
bool Listens(int port);

// Returns a port of 127.0.0.1 that was free a moment ago.
int FreePort();

// Ends the process when the server is missing or goes away. Not thread-safe.
class Connection {
 public:
  explicit Connection(int port);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Send(absl::string_view bytes);
  // Returns the bytes up to the next "\r\n", without it.
  std::string ReadLine();
  void Skip(size_t bytes);

 private:
  void ReadMore();

  int socket_;
  std::string unread_;
  size_t at_ = 0;  // where in `unread_` the next byte is
};

}  // namespace muster::queue_bench
