// Relay: a way to a server that a test can cut and block.
#pragma once

#include <string>
#include <thread>
#include <vector>

#include "muster/base/mutex.h"

namespace muster::kubernetes_test {

// Passes bytes between whoever connects to it, on loopback, and a server on loopback. Thread-safe.
// Ends the process when it gets no port.
class Relay {
 public:
  explicit Relay(int server_port);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  int port() const { return port_; }
  // Cuts all connections that there are.
  void Cut();
  // From now on nothing gets through, in whichever direction, and nobody is told.
  void Block();
  // Cuts what was blocked, and lets new connections through.
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
  // Closed only at the end: a number that is used again would be another's.
  std::vector<Pair> pairs_ ABSL_GUARDED_BY(mu_);
  std::vector<std::thread> passers_ ABSL_GUARDED_BY(mu_);

  std::thread acceptor_;
};

}  // namespace muster::kubernetes_test
