// SPDX-License-Identifier: Apache-2.0

// NatsServer: a real nats-server with JetStream, for a test to kill and start again.
#pragma once

#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "muster/os/child_process.h"
#include "muster/os/temp_dir.h"

namespace muster::nats::testing {

// A call that fails ends the process: a test cannot go on without its server. The server does not
// outlive the test, however that ends. Not thread-safe.
class NatsServer {
 public:
  // The programs to test against: those in MUSTER_NATS_SERVERS, separated by colons, or otherwise
  // nats-server from the PATH.
  static std::vector<std::string> Programs();

  enum class Persistence { kJetStream, kNone };

  // Starts `program` on its own port, with an empty store. `extra_config` is added to its
  // configuration file. The port stays reserved while the server is dead.
  explicit NatsServer(std::string program = Programs().front(), std::string extra_config = "",
                      Persistence persistence = Persistence::kJetStream);
  // Kills it.
  ~NatsServer();
  NatsServer(const NatsServer&) = delete;
  NatsServer& operator=(const NatsServer&) = delete;

  // Does not change over restarts.
  std::string url() const;
  const std::string& program() const { return program_; }
  const std::string& store_dir() const { return store_dir_; }

  // With SIGKILL; returns when it is gone.
  void Kill() { End(SIGKILL); }
  // With SIGTERM, so that it writes to disk what it has; returns when it is gone.
  void Stop() { End(SIGTERM); }
  // Starts it again on the same port and store; returns when it listens.
  void Restart();
  // Stops all its threads with SIGSTOP; returns when they have stopped.
  void Freeze();
  void Thaw();

 private:
  void Start();
  void End(int signal);
  void AwaitPort();

  const std::string program_;
  const std::string extra_config_;
  const Persistence persistence_;
  const os::TempDir dir_;
  const std::string store_dir_ = dir_ / "store";
  const int port_holder_;  // a socket
  const int port_;
  std::unique_ptr<os::ChildProcess> process_;  // null: it was ended
};

}  // namespace muster::nats::testing
