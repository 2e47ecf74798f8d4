// SPDX-License-Identifier: Apache-2.0
#include "services/processor/handler_programs.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/os/find_program.h"

namespace muster::processor {
namespace {

namespace fs = std::filesystem;

using Entries = std::vector<std::string>;

constexpr char kOption[] = "--handler-programs";

// With links followed; what does not exist stays as it is named.
std::string RealPath(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(path, error);
  return error ? path : real.string();
}

bool IsGlob(absl::string_view entry) {
  return entry.find_first_of("*?[") != absl::string_view::npos;
}

bool IsBelow(const std::string& path, std::string folder) {
  if (!absl::EndsWith(folder, "/")) folder += '/';
  return absl::StartsWith(path, folder);
}

// With these variables, a program that is allowed runs code that is not: libraries, modules, start
// files, or other programs by the same names.
bool LoadsCode(absl::string_view variable) {
  static constexpr absl::string_view kHarmless[] = {"PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED",
                                                    "PYTHONIOENCODING",        "PYTHONOPTIMIZE",
                                                    "PYTHONUNBUFFERED",        "PYTHONUTF8"};
  static constexpr absl::string_view kNames[] = {"CDPATH",
                                                 "CLASSPATH",
                                                 "DOTNET_ADDITIONAL_DEPS",
                                                 "DOTNET_ROOT",
                                                 "DOTNET_SHARED_STORE",
                                                 "DOTNET_STARTUP_HOOKS",
                                                 "ENV",
                                                 "GCONV_PATH",
                                                 "GLIBC_TUNABLES",
                                                 "HOME",
                                                 "IFS",
                                                 "JAVACMD",
                                                 "JAVA_HOME",
                                                 "JAVA_OPTS",
                                                 "PATH",
                                                 "PHPRC",
                                                 "PS4",
                                                 "SHELLOPTS",
                                                 "TAR_OPTIONS",
                                                 "ZDOTDIR",
                                                 "_JAVA_OPTIONS",
                                                 "JDK_JAVA_OPTIONS",
                                                 "JAVA_TOOL_OPTIONS"};
  static constexpr absl::string_view kPrefixes[] = {
      "BASH",  "BUNDLE_",  "CORECLR_", "ERL_", "GEM_",   "LD_", "LUA_",
      "NODE_", "OPENSSL_", "PERL",     "PHP_", "PYTHON", "R_",  "RUBY"};
  const auto is_variable = [&](absl::string_view name) { return variable == name; };
  const auto begins_it = [&](absl::string_view prefix) {
    return absl::StartsWith(variable, prefix);
  };
  if (std::any_of(std::begin(kHarmless), std::end(kHarmless), is_variable)) return false;
  return std::any_of(std::begin(kNames), std::end(kNames), is_variable) ||
         std::any_of(std::begin(kPrefixes), std::end(kPrefixes), begins_it);
}

}  // namespace

bool HandlerPrograms::AllowsAny() const {
  return std::find(entries_.begin(), entries_.end(), kAnyProgram) != entries_.end();
}

bool HandlerPrograms::Allows(const std::string& path) const {
  const std::string real = RealPath(path);
  return std::any_of(entries_.begin(), entries_.end(), [&](const std::string& entry) {
    if (IsGlob(entry)) return fnmatch(entry.c_str(), real.c_str(), FNM_PATHNAME) == 0;
    const std::string allowed = RealPath(entry);
    return real == allowed || IsBelow(real, allowed);
  });
}

absl::Status HandlerPrograms::Check(const job::CommandHandlerSpec& command,
                                    const std::string& working_dir) const {
  if (AllowsAny() || command.argv.empty()) return absl::OkStatus();
  for (const auto& [name, value] : command.env) {
    if (!LoadsCode(name)) continue;
    return absl::PermissionDeniedError(
        absl::StrCat("the job's env sets ", name, ", which makes a program load other code; ",
                     "a processor takes that only with ", kOption, " ", kAnyProgram));
  }
  MUSTER_ASSIGN_OR_RETURN(std::string program, os::FindProgram(command.argv[0], working_dir));
  if (Allows(program)) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(os::CheckScript(command.argv, working_dir));
  // An interpreter that the job brings along is a program like others.
  const bool is_from_path = !absl::StrContains(command.argv[0], '/');
  if (const auto script = os::ScriptOf(command.argv, working_dir); script && is_from_path) {
    if (Allows(*script)) return absl::OkStatus();
    program = *script;
  }
  return absl::PermissionDeniedError(absl::StrCat(
      "the job's command runs ", base::Printable(RealPath(program), 256),
      ", which this processor does not allow; it allows ",
      entries_.empty() ? "no program" : absl::StrCat("those of ", absl::StrJoin(entries_, ", ")),
      " (", kOption, ")"));
}

HandlerPrograms HandlerPrograms::Of(const std::vector<std::string>& texts) {
  std::vector<std::string> entries;
  for (const std::string& text : texts) {
    std::error_code error;
    const fs::path absolute = fs::absolute(text, error);
    entries.push_back(text == kAnyProgram || error ? text : absolute.string());
  }
  return HandlerPrograms(std::move(entries));
}

HandlerPrograms UsualPrograms(bool is_on_loopback) {
  std::error_code error;
  const fs::path here = fs::current_path(error);
  if (!is_on_loopback || error || here == here.root_path()) return HandlerPrograms(Entries());
  return HandlerPrograms(Entries{here.string()});
}

}  // namespace muster::processor
