// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/nats/nats_tool.h"

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace muster::nats::testing {
namespace {

constexpr int kNotInstalled = 77;

}  // namespace

std::optional<std::string> RunNatsTool(const std::vector<std::string>& arguments) {
  const char* const python = std::getenv("MUSTER_PYTHON");
  std::string command =
      absl::StrCat("'", python == nullptr ? "python3" : python, "' '", MUSTER_NATS_TOOL, "'");
  for (const std::string& argument : arguments) absl::StrAppend(&command, " '", argument, "'");
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "failed to start";
  std::string said;
  std::array<char, 4096> buffer;
  while (const size_t bytes = fread(buffer.data(), 1, buffer.size(), pipe)) {
    said.append(buffer.data(), bytes);
  }
  const int ended = pclose(pipe);
  const int code = WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
  if (code == kNotInstalled) return std::nullopt;
  if (code != 0) return absl::StrCat("failed: ", code);
  return std::string(absl::StripSuffix(said, "\n"));
}

}  // namespace muster::nats::testing
