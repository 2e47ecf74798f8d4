// Connection: blocking TCP to a server on this machine.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace muster::queue_bench {

// Whether a server accepts connections at this port of 127.0.0.1.
bool Listens(int port);

// A port of 127.0.0.1 that nobody had a moment ago.
int FreePort();

// Ends the process when the server is not there, or goes away. Not thread-safe.
class Connection {
 public:
  explicit Connection(int port);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Send(absl::string_view bytes);
  // Up to the next "\r\n", which is left out.
  std::string ReadLine();
  void Skip(size_t bytes);

 private:
  void ReadMore();

  int socket_;
  std::string unread_;
  size_t at_ = 0;  // where in `unread_` the next byte is
};

}  // namespace muster::queue_bench
