// SPDX-License-Identifier: Apache-2.0
#include "muster/os/find_program.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace muster::os {
namespace {

namespace fs = std::filesystem;

bool IsFile(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool CanExecute(const fs::path& path) { return access(path.c_str(), X_OK) == 0; }

// People write a command line where a list of words is wanted.
std::string HintToSplit(absl::string_view name) {
  if (!absl::StrContains(name, ' ')) return "";
  const std::vector<absl::string_view> words = absl::StrSplit(name, ' ', absl::SkipEmpty());
  return absl::StrCat("; for a program with arguments write each as an item of its own: [",
                      absl::StrJoin(words, ", "), "]");
}

// People write what a shell makes a path of.
std::string HintOnShell(absl::string_view path) {
  const bool is_for_shell =
      absl::StartsWith(path, "~") || absl::StrContains(path, "/~") || absl::StrContains(path, '$');
  return is_for_shell ? "; no shell reads the command, so write out what ~ and $ stand for" : "";
}

// What may be wrong with `path`, as people wrote it, that leads to no file.
std::string HintOnPath(absl::string_view path, absl::string_view working_dir) {
  std::string hint = HintOnShell(path);
  const bool is_relative = working_dir.empty() && !absl::StartsWith(path, "/");
  if (!hint.empty() || !is_relative) return hint;
  return "; a relative path leads from the folder in which this process runs";
}

absl::StatusOr<std::string> FindInPath(absl::string_view name, absl::string_view working_dir) {
  const char* const path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): never changed
  const absl::string_view folders = path == nullptr ? kUsualPath : path;
  for (const absl::string_view folder : absl::StrSplit(folders, ':')) {
    const fs::path candidate = fs::path(std::string(folder)) / std::string(name);
    std::error_code error;
    const fs::path absolute = fs::absolute(candidate, error);  // the program may run elsewhere
    if (!error && IsFile(absolute) && CanExecute(absolute)) return absolute.string();
  }
  std::error_code error;
  const fs::path beside = fs::path(std::string(working_dir)) / std::string(name);
  const bool is_beside = fs::is_regular_file(beside, error);
  return absl::NotFoundError(absl::StrCat(
      "no program '", name, "' in PATH", HintToSplit(name),
      is_beside ? absl::StrCat("; there is a file of this name: ./", name) : std::string()));
}

// The first bytes of a file; enough for the first line of a script.
std::string HeadOf(const std::string& path) {
  constexpr size_t kHeadBytes = 256;
  std::string head(kHeadBytes, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return head;
}

// Every format of programs that are not scripts has bytes that no text has.
bool IsPlainText(absl::string_view head) {
  return !head.empty() && !absl::StartsWith(head, "#!") &&
         std::none_of(head.begin(), head.end(), [](unsigned char c) {
           return absl::ascii_iscntrl(c) && !absl::ascii_isspace(c);
         });
}

absl::Status CheckInterpreter(const std::string& path, absl::string_view first_line) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(first_line.substr(2), absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (words.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": its first line names no program"));
  }
  const bool by_env = fs::path(std::string(words[0])).filename() == "env" && words.size() > 1 &&
                      !absl::StartsWith(words[1], "-") && !absl::StrContains(words[1], '=');
  const absl::Status found = FindProgram(words[0], "").status();
  const absl::Status named = found.ok() && by_env ? FindProgram(words[1], "").status() : found;
  if (named.ok()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": its first line, ", first_line, ", leads nowhere: ", named.message()));
}

// Without a version: "python3.11" is "python".
std::string BareName(const std::string& program) {
  const std::string name = fs::path(program).filename().string();
  return name.substr(0, name.find_last_not_of("0123456789.") + 1);
}

bool IsInterpreter(const std::string& program) {
  static constexpr absl::string_view kInterpreters[] = {"bash", "dash",    "lua",    "node",
                                                        "perl", "php",     "python", "pypy",
                                                        "ruby", "Rscript", "sh",     "zsh"};
  return std::find(std::begin(kInterpreters), std::end(kInterpreters), BareName(program)) !=
         std::end(kInterpreters);
}

// Options of Python that have no argument, and leave the script behind them what runs. In a shell
// some of them mean that stdin holds the program.
bool IsHarmlessOption(const std::string& interpreter, absl::string_view argument) {
  const std::string name = BareName(interpreter);
  if (name != "python" && name != "pypy") return false;
  static constexpr absl::string_view kOptions[] = {"-u",  "-B", "-E", "-I", "-O",
                                                   "-OO", "-q", "-s", "-S"};
  return std::find(std::begin(kOptions), std::end(kOptions), argument) != std::end(kOptions);
}

bool IsPath(const std::string& argument) {
  if (absl::StartsWith(argument, "-")) return false;
  return absl::StrContains(argument, '/') || fs::path(argument).has_extension();
}

// As ScriptOf, as it is written.
std::optional<std::string> ScriptIn(const std::vector<std::string>& argv) {
  if (argv.empty() || !IsInterpreter(argv[0])) return std::nullopt;
  const auto script = std::find_if_not(
      argv.begin() + 1, argv.end(),
      [&argv](const std::string& argument) { return IsHarmlessOption(argv[0], argument); });
  if (script == argv.end() || !IsPath(*script)) return std::nullopt;
  return *script;
}

}  // namespace

absl::StatusOr<std::string> FindProgram(absl::string_view name, absl::string_view working_dir) {
  if (name.find('/') == absl::string_view::npos) return FindInPath(name, working_dir);
  std::error_code error;
  const fs::path path = fs::absolute(fs::path(std::string(working_dir)) / std::string(name), error);
  if (error || !IsFile(path)) {
    return absl::NotFoundError(absl::StrCat(
        "no program ", path.string(), fs::is_directory(path, error) ? ", which is a folder" : "",
        HintToSplit(name), HintOnPath(name, working_dir)));
  }
  if (!CanExecute(path)) {
    return absl::PermissionDeniedError(
        absl::StrCat(path.string(),
                     " is not executable: make it so (chmod +x), or name its "
                     "interpreter before it, such as [python3, ",
                     name, "]"));
  }
  return path.string();
}

absl::Status CheckProgram(const std::string& path) {
  const std::string head = HeadOf(path);
  std::error_code error;
  if (head.empty() && fs::file_size(path, error) == 0 && !error) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is empty"));
  }
  if (IsPlainText(head)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path,
                     " is a text without #! at its beginning, which no system runs by itself: its "
                     "first line has to name its interpreter, as #!/usr/bin/env python3"));
  }
  if (!absl::StartsWith(head, "#!")) return absl::OkStatus();
  const absl::string_view line = absl::string_view(head).substr(0, head.find('\n'));
  if (absl::EndsWith(line, "\r")) {
    return absl::FailedPreconditionError(
        absl::StrCat(path,
                     ": its first line ends with CR LF, as on Windows, and so names a program "
                     "that is not there: save the file with LF alone"));
  }
  return CheckInterpreter(path, line);
}

absl::Status ExplainStart(const absl::Status& why, const std::string& path,
                          const std::string& working_dir) {
  std::error_code error;
  if (!working_dir.empty() && !fs::is_directory(working_dir, error)) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot start ", path, ": there is no folder ", working_dir));
  }
  if (!fs::exists(path, error)) return why;
  if (absl::Status checked = CheckProgram(path); !checked.ok()) {
    return absl::FailedPreconditionError(absl::StrCat("cannot start ", checked.message()));
  }
  const bool is_text = !absl::StartsWith(HeadOf(path), "#!");
  if (is_text && absl::StrContains(why.message(), "Exec format error")) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot start ", path,
                     ": it is no program of this machine; the first line of "
                     "a script names its interpreter: #!/usr/bin/env python3"));
  }
  return why;
}

// The interpreter itself would say so only once there is an item.
absl::Status CheckScript(const std::vector<std::string>& argv, absl::string_view working_dir) {
  const std::optional<std::string> script = ScriptOf(argv, working_dir);
  std::error_code error;
  if (!script.has_value() || fs::exists(*script, error)) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("no script ", *script, " for ", argv[0],
                                          HintOnPath(*ScriptIn(argv), working_dir)));
}

std::optional<std::string> ScriptOf(const std::vector<std::string>& argv,
                                    absl::string_view working_dir) {
  const std::optional<std::string> script = ScriptIn(argv);
  if (!script.has_value()) return std::nullopt;
  std::error_code error;
  const fs::path path = fs::path(std::string(working_dir)) / *script;
  const fs::path absolute = fs::absolute(path, error);
  return error ? path.string() : absolute.string();
}

}  // namespace muster::os
