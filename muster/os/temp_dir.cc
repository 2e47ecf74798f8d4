// SPDX-License-Identifier: Apache-2.0
#include "muster/os/temp_dir.h"

#include <stdlib.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/log.h"

namespace muster::os {
namespace {

std::unique_ptr<ScratchFolder> MakeOrAbort() {
  absl::StatusOr<std::unique_ptr<ScratchFolder>> made = ScratchFolder::Make();
  if (!made.ok()) {
    base::Log(base::kError, "no temporary directory", {{"why", made.status().message()}});
    std::abort();
  }
  return *std::move(made);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ScratchFolder>> ScratchFolder::Make() {
  const char* const named = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe): never changed
  const std::string folder = named == nullptr || *named == '\0' ? "/tmp" : named;
  std::string path = absl::StrCat(folder, "/muster-XXXXXX");
  if (mkdtemp(path.data()) == nullptr) {
    return absl::ErrnoToStatus(errno, absl::StrCat("no folder for temporary files in ", folder,
                                                   ", which TMPDIR may name"));
  }
  return std::unique_ptr<ScratchFolder>(new ScratchFolder(std::move(path)));
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;  // what is left lies in the folder for temporary files
  std::filesystem::remove_all(path_, ignored);
}

TempDir::TempDir() : folder_(MakeOrAbort()) {}

std::string TempDir::operator/(absl::string_view name) const {
  return absl::StrCat(path(), "/", name);
}

}  // namespace muster::os
