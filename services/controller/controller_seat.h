// SPDX-License-Identifier: Apache-2.0

// ControllerSeat: a lock in the data directory of controllers that tells a new process which
// earlier ones are dead: who holds the lock of a seat knows that those whose names are in its file
// do not hold it any more. So a controller that was killed is replaced by the next process at once,
// and one that is suspended, and keeps its seat, is not.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/os/file_descriptor.h"

namespace muster::controller {

// Not thread-safe. The seat is free again when this is destroyed or the process ends.
class ControllerSeat {
 public:
  // The first free seat of `folder`, which is there. Where all are taken, a seat without
  // predecessors.
  static absl::StatusOr<std::unique_ptr<ControllerSeat>> Take(const std::string& folder,
                                                              const std::string& instance);

  // The processes that had this seat since one of them kept it, the last one last; at most
  // partition::kMaxPredecessors.
  const std::vector<std::string>& predecessors() const { return predecessors_; }
  // No other process had a seat of this folder when this one took its own.
  bool is_alone() const { return is_alone_; }
  // Forgets them: the instance owns what they owned.
  void Keep();

 private:
  ControllerSeat(std::string instance, os::FileDescriptor file)
      : instance_(std::move(instance)), file_(std::move(file)) {}

  void Read();
  void Write();

  const std::string instance_;
  const os::FileDescriptor file_;  // -1: all seats are taken
  std::vector<std::string> predecessors_;
  bool is_alone_ = false;
};

}  // namespace muster::controller
