// SPDX-License-Identifier: Apache-2.0
#include "muster/os/temp_dir.h"

#include <cstdlib>
#include <utility>

#include "absl/status/statusor.h"
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

TempDir::TempDir() : folder_(MakeOrAbort()) {}

std::string TempDir::operator/(absl::string_view name) const {
  return absl::StrCat(path(), "/", name);
}

}  // namespace muster::os
