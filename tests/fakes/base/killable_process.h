// SPDX-License-Identifier: Apache-2.0

// KillableProcess: a second process for a test to kill. It is this test program again, which does
// what was registered under a name instead of running tests: a process that has started threads
// (RocksDB's) must not go on after a mere fork.
//
//   const RegisteredProcess writer("writer", [](const std::string& dir) { …; Send("done"); });
//
//   KillableProcess victim("writer", dir.path());
//   EXPECT_EQ(victim.Receive(), "done");
//   victim.Kill();
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <functional>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace muster::base::testing {

// Runs in the victim: sends one line to the test. Thread-safe; ends the process when the test has
// gone.
void Send(absl::string_view line);
// Runs in the victim: waits to be killed.
[[noreturn]] void AwaitKill();

// Define it at the namespace scope of a test.
class RegisteredProcess {
 public:
  // A victim ends with 0 when `act` returns.
  RegisteredProcess(std::string name, std::function<void(const std::string& argument)> act);
};

// Used in the test. Not thread-safe.
class KillableProcess {
 public:
  // Starts the process that was registered under `name`.
  KillableProcess(const std::string& name, const std::string& argument);
  // Kills it.
  ~KillableProcess();
  KillableProcess(const KillableProcess&) = delete;
  KillableProcess& operator=(const KillableProcess&) = delete;

  pid_t id() const { return process_; }

  // Returns the victim's next line; nullopt once it is dead. Lines that it sent before the kill can
  // still be received.
  std::optional<std::string> Receive();

  // Kills with SIGKILL; returns when the victim is dead. Returns false when it ended by itself.
  // Killing twice is fine.
  bool Kill();

 private:
  pid_t process_ = 0;
  FILE* received_ = nullptr;  // owned
  bool killed_ = false;
};

}  // namespace muster::base::testing
