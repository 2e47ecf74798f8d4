// SPDX-License-Identifier: Apache-2.0

// Relay: a connection to a server that a test can cut and block.
#pragma once

#include <string>
#include <thread>
#include <vector>

#include "muster/base/mutex.h"

namespace muster::kubernetes_test {

// Passes bytes between its clients and a server, both on loopback. Thread-safe. Ends the process
// when there is no free port.
class Relay {
 public:
  explicit Relay(int server_port);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  int port() const { return port_; }
  // Cuts all current connections.
  void Cut();
  // From now on no byte gets through in either direction, and no connection is closed.
  void Block();
  // Cuts the blocked connections, and lets new ones through.
  void Unblock();

 private:
  struct Pair {
    int client;
    int server;
  };

  void Accept();
  void Pass(int from, int to);
  void CutLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int server_port_;
  int listener_ = -1;
  int port_ = 0;

  base::Mutex mu_;
  base::CondVar unblocked_;
  bool is_blocked_ ABSL_GUARDED_BY(mu_) = false;
  // Closed only at the end: a reused descriptor would belong to another connection.
  std::vector<Pair> pairs_ ABSL_GUARDED_BY(mu_);
  std::vector<std::thread> passers_ ABSL_GUARDED_BY(mu_);

  std::thread acceptor_;
};

}  // namespace muster::kubernetes_test
