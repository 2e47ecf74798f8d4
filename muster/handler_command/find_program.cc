#include "muster/handler_command/find_program.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster::handler_command {
namespace {

namespace fs = std::filesystem;

// What a shell takes when there is no PATH.
constexpr char kUsualPath[] = "/usr/local/bin:/usr/bin:/bin";

bool IsFile(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool CanExecute(const fs::path& path) { return access(path.c_str(), X_OK) == 0; }

absl::StatusOr<std::string> FindInPath(absl::string_view name) {
  const char* const path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  const absl::string_view folders = path == nullptr ? kUsualPath : path;
  for (const absl::string_view folder : absl::StrSplit(folders, ':')) {
    const fs::path candidate = fs::path(std::string(folder)) / std::string(name);
    std::error_code error;
    const fs::path absolute = fs::absolute(candidate, error);  // the program may run elsewhere
    if (!error && IsFile(absolute) && CanExecute(absolute)) return absolute.string();
  }
  return absl::NotFoundError(absl::StrCat("no program '", name, "' in PATH"));
}

}  // namespace

absl::StatusOr<std::string> FindProgram(absl::string_view name, absl::string_view working_dir) {
  if (name.find('/') == absl::string_view::npos) return FindInPath(name);
  std::error_code error;
  const fs::path path = fs::absolute(fs::path(std::string(working_dir)) / std::string(name), error);
  if (error || !IsFile(path))
    return absl::NotFoundError(absl::StrCat("no program ", path.string()));
  if (!CanExecute(path)) {
    return absl::PermissionDeniedError(absl::StrCat(path.string(), " is not executable"));
  }
  return path.string();
}

}  // namespace muster::handler_command
