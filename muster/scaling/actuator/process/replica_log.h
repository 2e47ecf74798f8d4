// ReplicaLog: keeps what a replica says, and hears from it whether the replica is ready.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
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

}  // namespace muster::scaling::actuator::process
