#include "muster/os/temp_dir.h"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"

namespace muster::os {

TempDir::TempDir() : path_((std::filesystem::temp_directory_path() / "muster-XXXXXX").string()) {
  if (mkdtemp(path_.data()) == nullptr) {
    base::Log(base::kError, "no temporary directory",
              {{"path", path_}, {"why", std::generic_category().message(errno)}});
    std::abort();
  }
}

TempDir::~TempDir() {
  std::error_code ignored;  // what is left lies in the folder for temporary files
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::operator/(absl::string_view name) const {
  return absl::StrCat(path_, "/", name);
}

}  // namespace muster::os
