// SPDX-License-Identifier: Apache-2.0

// TempDir: a temporary directory for a test.
#pragma once

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "muster/os/scratch_folder.h"

namespace muster::os {

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
