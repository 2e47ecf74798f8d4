#include "muster/os/find_program.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster::os {
namespace {

namespace fs = std::filesystem;

bool IsFile(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool CanExecute(const fs::path& path) { return access(path.c_str(), X_OK) == 0; }

absl::StatusOr<std::string> FindInPath(absl::string_view name) {
  const char* const path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): never changed
  const absl::string_view folders = path == nullptr ? kUsualPath : path;
  for (const absl::string_view folder : absl::StrSplit(folders, ':')) {
    const fs::path candidate = fs::path(std::string(folder)) / std::string(name);
    std::error_code error;
    const fs::path absolute = fs::absolute(candidate, error);  // the program may run elsewhere
    if (!error && IsFile(absolute) && CanExecute(absolute)) return absolute.string();
  }
  return absl::NotFoundError(absl::StrCat("no program '", name, "' in PATH"));
}

// Without a version: "python3.11" is "python".
bool IsInterpreter(const std::string& program) {
  static constexpr absl::string_view kInterpreters[] = {"bash", "dash",    "lua",    "node",
                                                        "perl", "php",     "python", "pypy",
                                                        "ruby", "Rscript", "sh",     "zsh"};
  const std::string name = fs::path(program).filename().string();
  const absl::string_view bare =
      absl::string_view(name).substr(0, name.find_last_not_of("0123456789.") + 1);
  return std::find(std::begin(kInterpreters), std::end(kInterpreters), bare) !=
         std::end(kInterpreters);
}

bool IsPath(const std::string& argument) {
  if (absl::StartsWith(argument, "-")) return false;
  return absl::StrContains(argument, '/') || fs::path(argument).has_extension();
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

// The interpreter itself would say so only once there is an item.
absl::Status CheckScript(const std::vector<std::string>& argv, absl::string_view working_dir) {
  const std::optional<std::string> script = ScriptOf(argv, working_dir);
  std::error_code error;
  if (!script.has_value() || fs::exists(*script, error)) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("no script ", *script, " for ", argv[0]));
}

std::optional<std::string> ScriptOf(const std::vector<std::string>& argv,
                                    absl::string_view working_dir) {
  if (argv.size() < 2 || !IsInterpreter(argv[0]) || !IsPath(argv[1])) return std::nullopt;
  std::error_code error;
  const fs::path path = fs::path(std::string(working_dir)) / argv[1];
  const fs::path absolute = fs::absolute(path, error);
  return error ? path.string() : absolute.string();
}

}  // namespace muster::os
