// SPDX-License-Identifier: Apache-2.0
#include "tests/mesh/service_program.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/match.h"

namespace muster {
namespace {

void Require(bool done, const char* what) {
  if (done) return;
  std::perror(what);
  std::abort();
}

}  // namespace

ServiceProgram::ServiceProgram(const std::vector<std::string>& argv) {
  std::array<int, 2> log{};
  Require(pipe2(log.data(), O_CLOEXEC) == 0, "pipe2");
  posix_spawn_file_actions_t actions;
  Require(posix_spawn_file_actions_init(&actions) == 0, "file actions");
  Require(posix_spawn_file_actions_adddup2(&actions, log[1], STDERR_FILENO) == 0, "dup2");
  Require(posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) == 0,
          "stdin");
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  Require(posix_spawn(&process_, arguments[0], &actions, nullptr, arguments.data(), environ) == 0,
          "posix_spawn");
  posix_spawn_file_actions_destroy(&actions);
  close(log[1]);
  reader_ = std::thread([this, fd = log[0]] { ReadLog(fd); });
}

ServiceProgram::~ServiceProgram() {
  if (!waited_) {
    Signal(SIGKILL);
    Wait();
  }
  reader_.join();
}

// Also prints the log, to help to find the cause of a failed test.
void ServiceProgram::ReadLog(int fd) {
  std::FILE* const log = fdopen(fd, "r");
  char* line = nullptr;
  size_t capacity = 0;
  while (getline(&line, &capacity, log) > 0) {
    std::fputs(line, stderr);
    base::MutexLock lock(&mu_);
    lines_.emplace_back(line);
    changed_.NotifyAll();
  }
  std::free(line);
  std::fclose(log);
  base::MutexLock lock(&mu_);
  closed_ = true;
  changed_.NotifyAll();
}

std::string ServiceProgram::AwaitLine(absl::string_view text) {
  base::MutexLock lock(&mu_);
  for (size_t next = 0;;) {
    for (; next < lines_.size(); ++next) {
      if (absl::StrContains(lines_[next], text)) return lines_[next];
    }
    if (closed_) return "";
    changed_.Wait(&mu_);
  }
}

std::string ServiceProgram::AwaitAddress() {
  const std::string line = AwaitLine("msg=listening");
  const size_t begin = line.find(" at=");
  if (begin == line.npos) return "";
  return line.substr(begin + 4, line.find_first_of(" \n", begin + 4) - begin - 4);
}

void ServiceProgram::Signal(int signal) const { kill(process_, signal); }

int ServiceProgram::Wait() {
  if (!waited_) {
    int status = 0;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) continue;
    exit_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    waited_ = true;
  }
  return exit_;
}

}  // namespace muster
