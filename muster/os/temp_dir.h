// SPDX-License-Identifier: Apache-2.0

// ScratchFolder: a temporary directory for a program that this process starts. TempDir: one for a
// test.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::os {

// Made empty, for this user alone, in the machine's folder for temporary files; removed with all it
// holds when destroyed. A process that is killed leaves it there.
class ScratchFolder {
 public:
  // ResourceExhausted, PermissionDenied …: it cannot be made.
  static absl::StatusOr<std::unique_ptr<ScratchFolder>> Make();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}

  const std::string path_;
};

// Created empty, in the machine's folder for temporary files; removed with all it holds when
// destroyed. Ends the process when it cannot be created: a test cannot go on without it.
class TempDir {
 public:
  TempDir();

  const std::string& path() const { return folder_->path(); }
  // The path of `name` within it.
  std::string operator/(absl::string_view name) const;

 private:
  const std::unique_ptr<ScratchFolder> folder_;
};

}  // namespace muster::os
