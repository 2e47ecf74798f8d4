// SPDX-License-Identifier: Apache-2.0
#include "bench/queue_bench/beanstalkd_server.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/queue_bench/check.h"
#include "bench/queue_bench/connection.h"

namespace muster::queue_bench {
namespace {

constexpr absl::Duration kStartTimeout = absl::Seconds(10);
constexpr int kNotFound = 127;

// Runs in the child, where the parent's other threads are missing and cannot release their locks:
// it makes system calls only.
[[noreturn]] void BecomeServer(pid_t parent, const char* port, const char* directory) {
  // The parent may have died before the request to die with it.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(1);
  execlp("beanstalkd", "beanstalkd", "-l", "127.0.0.1", "-p", port, "-b", directory, "-f", "0",
         nullptr);
  _exit(kNotFound);
}

pid_t Fork(const std::string& port, const std::string& directory) {
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) Die("cannot fork");
  if (pid == 0) BecomeServer(parent, port.c_str(), directory.c_str());
  return pid;
}

// Returns true once the server listens, and false when there is no such program to run.
bool ComesUp(pid_t pid, int port) {
  const absl::Time deadline = absl::Now() + kStartTimeout;
  while (absl::Now() < deadline) {
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) == pid) {
      if (WIFEXITED(status) && WEXITSTATUS(status) == kNotFound) return false;
      Die("beanstalkd ended at once");
    }
    if (Listens(port)) return true;
    absl::SleepFor(absl::Milliseconds(5));
  }
  Die("beanstalkd does not listen");
}

}  // namespace

std::unique_ptr<BeanstalkdServer> BeanstalkdServer::Start(const std::string& directory) {
  std::filesystem::create_directories(directory);
  const int port = FreePort();
  const pid_t pid = Fork(absl::StrCat(port), directory);
  if (!ComesUp(pid, port)) return nullptr;
  return std::unique_ptr<BeanstalkdServer>(new BeanstalkdServer(pid, port));
}

BeanstalkdServer::~BeanstalkdServer() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

}  // namespace muster::queue_bench
