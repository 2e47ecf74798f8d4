// NatsServer: a real nats-server with JetStream, for a test to kill and start again.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "muster/os/temp_dir.h"

namespace muster::nats::testing {

// Each call that cannot do its part ends the process: a test cannot go on without its server.
// Not thread-safe.
class NatsServer {
 public:
  // The programs to test against: those that MUSTER_NATS_SERVERS names, with colons between, or
  // nats-server from the PATH.
  static std::vector<std::string> Programs();

  enum class Persistence { kJetStream, kNone };

  // Starts `program` on a port of its own, with an empty store. `extra_config` is added to its
  // configuration file. The port stays its own while it is killed.
  explicit NatsServer(std::string program = Programs().front(), std::string extra_config = "",
                      Persistence persistence = Persistence::kJetStream);
  // Kills it.
  ~NatsServer();
  NatsServer(const NatsServer&) = delete;
  NatsServer& operator=(const NatsServer&) = delete;

  // Stays the same over restarts.
  std::string url() const;
  const std::string& program() const { return program_; }
  const std::string& store_dir() const { return store_dir_; }

  // With SIGKILL; returns when it is gone.
  void Kill();
  // Starts it again on the same port and store; returns when it listens.
  void Restart();
  // Holds all of it; returns when it does nothing any more.
  void Freeze();
  void Thaw();

 private:
  void Start();
  void AwaitPort();

  const std::string program_;
  const std::string extra_config_;
  const Persistence persistence_;
  const os::TempDir dir_;
  const std::string store_dir_ = dir_ / "store";
  const int port_holder_;  // a socket
  const int port_;
  pid_t process_ = 0;
};

}  // namespace muster::nats::testing
