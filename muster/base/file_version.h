// SPDX-License-Identifier: Apache-2.0

// FileVersion: tells whether a file is still the one that was read.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"

namespace muster::base {

// What changes when the file is written anew, or a link to it leads elsewhere; nullopt: it cannot
// be looked at. By the time of its last change, which cannot be set back as that of its content
// can.
inline std::optional<std::string> FileVersion(const std::string& path) {
  struct stat file = {};
  if (stat(path.c_str(), &file) != 0) return std::nullopt;
  return absl::StrCat(file.st_dev, ":", file.st_ino, ":", file.st_size, ":", file.st_ctim.tv_sec,
                      ".", file.st_ctim.tv_nsec);
}

}  // namespace muster::base
