// SPDX-License-Identifier: Apache-2.0

// The keeper process of one replica (Keep), and the log that it writes (ReplicaLog).
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/os/file_descriptor.h"

namespace muster::actuator::process {

// ReplicaLog: stores a replica's output.
//
// Not thread-safe. Two files at most: a full file becomes `path`.1, and a new one begins. When the
// disk is full, output is lost and the replica goes on.
class ReplicaLog {
 public:
  explicit ReplicaLog(std::string path) : path_(std::move(path)) {}

  void Append(absl::string_view bytes);

  // The last kLastLines non-blank lines, joined into one; they mostly tell why a program ended.
  std::string LastLines() const;

 private:
  void Write(absl::string_view bytes);
  void EndLine();

  const std::string path_;
  os::FileDescriptor file_;
  size_t file_bytes_ = 0;
  std::string line_;  // the unfinished line, cut to the length that is kept
  std::deque<std::string> last_lines_;
};

// The keeper: the parent process of one replica. It starts the replica's program, writes its log,
// tells it to end, kills it if it does not, and records how it ended.
//
// Why a separate process: a replica should survive a restart of its agent, yet never run unattended
// for long. So its parent must outlive the agent and end with the replica. The kernel binds the
// program to its keeper: when the keeper is killed, the program gets SIGTERM and drains. The keeper
// checks whether an agent is present; after too long without one it makes the program drain. So a
// replica is without an agent for a limited time only, whichever process dies first, and it
// finishes its work in each case.
//
// The program tells its keeper whether it is ready, at NOTIFY_SOCKET (muster/os/notify_socket.h).
// The keeper sets or clears the mark in its folder, where agents read it, later ones, too.

struct KeeperOrder {
  std::string folder;  // a ReplicaFolder; its name is the instance
  std::string target;
  std::string agents_file;           // see AnnounceAgent
  absl::Duration kill_after;         // after the program was told to end
  absl::Duration unattended_limit;   // without any agent
  std::vector<std::string> program;  // and its arguments
};

// Converts the order to the keeper's command line, without the program's name, and back.
// InvalidArgument: `arguments` are not such a command line. The instance is an argument of its own.
std::vector<std::string> ToArguments(const KeeperOrder& order);
absl::StatusOr<KeeperOrder> FromArguments(const std::vector<std::string>& arguments);

// The keeper's main function. Writes one line to stdout and nothing more: "started" once the
// program was executed, or else the reason why not (see ParseAnswer). Returns the keeper's exit
// code after the program has ended.
int Keep(const KeeperOrder& order);

// Converts the keeper's line on stdout to a status.
absl::Status ParseAnswer(absl::string_view line);

}  // namespace muster::actuator::process
