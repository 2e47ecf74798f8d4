// SPDX-License-Identifier: Apache-2.0

// What tests of replica processes share: programs that stand in for a processor, and a folder for
// them. The fixture ends the processes that a test leaves running, and the test fails if one does
// not end.
#pragma once

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/actuator/process/process_actuator.h"
#include "muster/actuator/process/replica_store.h"
#include "muster/os/temp_dir.h"

namespace muster::actuator::process {

// Even the slowest machine needs less time for any step.
inline constexpr absl::Duration kPatience = absl::Seconds(40);

// Polls until the condition is true, because processes do not report what they do.
template <typename Condition>
bool Eventually(Condition condition) {
  const absl::Duration deadline = base::RealClock()->Monotonic() + kPatience;
  while (!condition()) {
    if (base::RealClock()->Monotonic() >= deadline) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

// Tells its keeper that it is ready, as muster's services do, or that it is not any more.
inline constexpr char kSaysReady[] = MUSTER_TELL_READY " 1";
inline constexpr char kSaysNotReady[] = MUSTER_TELL_READY " 0";

// A program for a shell.
inline Program Script(const std::string& text) { return {"/bin/sh", {"-c", text}, {}}; }
// It waits in short sleeps: a long one would outlive it.
inline Program Worker() {
  return Script(absl::StrCat("trap 'exit 0' TERM; ", kSaysReady, "; while :; do sleep 0.05; done"));
}

inline std::string Content(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();  // empty for a process that ends meanwhile
  return std::move(text).str();
}

// Returns the command lines of all processes whose environment contains `text`. The children of a
// replica inherit its environment.
inline std::vector<std::string> ProcessesWith(const std::string& text) {
  std::vector<std::string> found;
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    if (!absl::StrContains(Content(process.path() / "environ"), text)) continue;
    std::string command = Content(process.path() / "cmdline");
    std::replace(command.begin(), command.end(), '\0', ' ');
    found.push_back(std::move(command));
  }
  return found;
}

class StateFolder {
 public:
  ~StateFolder() {
    for (const LivingReplica& living : TakeInventory().living) {
      // The kernel then sends SIGTERM to the program.
      SendSignal(living.record.keeper, SIGKILL);
    }
    // Looked at once more, a `sleep` that outlives its shell by a moment would count.
    EXPECT_TRUE(Eventually([&] { return ProcessesWith(path()).empty(); }))
        << ::testing::PrintToString(ProcessesWith(path()));
  }
  std::string path() const { return folder_ / "state"; }
  ReplicaInventory TakeInventory() const { return ReplicaStore(path()).TakeInventory(); }
  // The processes that run, without asking the actuator.
  int Serving(const std::string& target) const {
    int serving = 0;
    for (const LivingReplica& living : TakeInventory().living) {
      const bool counts =
          living.record.target == target && living.state != actuator::ReplicaState::kDraining;
      serving += counts ? 1 : 0;
    }
    return serving;
  }

 private:
  os::TempDir folder_;
};

}  // namespace muster::actuator::process
