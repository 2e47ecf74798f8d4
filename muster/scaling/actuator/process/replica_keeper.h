// ReplicaLog: keeps what a replica says, and hears from it whether the replica is ready.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/os/file_descriptor.h"

namespace muster::scaling::actuator::process {

// Not thread-safe. Two files at most: when one is full it becomes `path`.1, and another begins.
// What the disk does not take is lost; the replica goes on.
class ReplicaLog {
 public:
  // Ready is who said so last, in the words of muster's services:
  //   … msg=ready instance=INSTANCE            … msg="not ready" instance=INSTANCE
  ReplicaLog(std::string path, absl::string_view instance);

  void Append(absl::string_view bytes);

  bool is_ready() const { return is_ready_; }

  // The last kLastLines lines that were not blank, as one: mostly what a program died of.
  std::string LastLines() const;

 private:
  void Write(absl::string_view bytes);
  void EndLine();

  const std::string path_;
  const std::string when_ready_;
  const std::string when_not_ready_;
  os::FileDescriptor file_;
  size_t file_bytes_ = 0;
  std::string line_;  // as far as it has come, and as much of it as is kept
  std::deque<std::string> last_lines_;
  bool is_ready_ = false;
};

// Keeper: the process that one replica lives under. It starts the replica's program, keeps its log,
// tells it to go, kills it if it does not, and leaves behind how it ended.
//
// Why a process of its own. A replica should go on while its agent is started anew, and yet never
// be left alone: so somebody must be there who outlives the agent, and who goes with the replica.
// The kernel binds the program to its keeper: when the keeper is killed the program gets SIGTERM,
// and drains. The keeper looks whether an agent is there; when there was none for long enough it
// lets the program drain. So a replica is without an agent for a while at most, whoever dies in
// whatever order, and its work is finished in each case.

struct KeeperOrder {
  std::string folder;  // a ReplicaFolder; its name is the instance's
  std::string target;
  std::string agents_file;           // as of AnnounceAgent
  absl::Duration kill_after;         // it was told to go
  absl::Duration unattended_limit;   // without any agent
  std::vector<std::string> program;  // and its arguments
};

// As the keeper's command line, without its name, and back. InvalidArgument: it is none. The
// instance stands on it by itself.
std::vector<std::string> ToArguments(const KeeperOrder& order);
absl::StatusOr<KeeperOrder> FromArguments(const std::vector<std::string>& arguments);

// The keeper's main. Once the program was executed it says "started" on its stdout, or else one
// line of why not (ParseAnswer), and nothing more. Returns when the program has ended, with the
// exit code.
int Keep(const KeeperOrder& order);

// What the keeper said on its stdout.
absl::Status ParseAnswer(absl::string_view line);

}  // namespace muster::scaling::actuator::process
