// SPDX-License-Identifier: Apache-2.0

// ScratchFolder: a temporary directory for a program that this process starts.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/os/file_descriptor.h"

namespace muster::os {

// Made empty, for this user alone, in the machine's folder for temporary files; removed with all it
// holds when destroyed. A process that is killed leaves it there: the first one that another
// process of this user makes, a minute later or more, removes it.
class ScratchFolder {
 public:
  // ResourceExhausted, PermissionDenied …: it cannot be made.
  static absl::StatusOr<std::unique_ptr<ScratchFolder>> Make();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  ScratchFolder(std::string path, FileDescriptor lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  const std::string path_;
  const FileDescriptor lock_;  // of the directory: its owner lives
};

// Removes those within `folder` whose owners have died: named as ScratchFolder's are, of this user,
// locked by nobody, and at `now` unchanged for a minute, for one is made a moment before it is
// locked. What cannot be removed stays.
void RemoveAbandonedScratchFolders(const std::string& folder, absl::Time now);

}  // namespace muster::os
