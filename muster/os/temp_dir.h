// TempDir: a temporary directory for one test.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace muster::os {

// Created empty, in the machine's folder for temporary files; removed with all it holds when
// destroyed. Ends the process when it cannot be created: a test cannot go on without it.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  // The path of `name` within it.
  std::string operator/(absl::string_view name) const;

 private:
  std::string path_;
};

}  // namespace muster::os
