#include "muster/scaling/actuator/process/keeper_start.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "muster/base/clock.h"
#include "muster/base/status_macros.h"
#include "muster/os/environment.h"

namespace muster::scaling::actuator::process {
namespace {

using os::FileDescriptor;

constexpr size_t kMaxAnswerBytes = 4096;

// What the child does between fork and exec.
class SpawnPlan {
 public:
  explicit SpawnPlan(int answer) {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_adddup2(&files_, answer, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    // Other libraries' files stay out of it, whatever flags they were opened with.
    posix_spawn_file_actions_addclosefrom_np(&files_, STDERR_FILENO + 1);
    posix_spawnattr_init(&attributes_);
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGCHLD}) {
      sigaddset(&usual, number);
    }
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &usual);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  const posix_spawn_file_actions_t* files() const { return &files_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

struct AnswerPipe {
  FileDescriptor read_end, write_end;
};

// Its write end lies above what SpawnPlan opens.
absl::StatusOr<AnswerPipe> MakeAnswerPipe() {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe2");
  AnswerPipe pipe{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
  if (pipe.write_end.get() <= STDERR_FILENO) {
    pipe.write_end =
        FileDescriptor(fcntl(pipe.write_end.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    if (pipe.write_end.get() < 0) return absl::ErrnoToStatus(errno, "fcntl");
  }
  return pipe;
}

// Up to its line feed. What was said so far when `deadline` passed, or the keeper ended.
std::string ReadLine(int fd, absl::Duration deadline) {
  std::string said;
  std::array<char, 512> chunk;
  while (said.size() < kMaxAnswerBytes && said.find('\n') == std::string::npos) {
    const absl::Duration left = deadline - base::RealClock()->Monotonic();
    if (left <= absl::ZeroDuration()) break;
    pollfd event{fd, POLLIN, 0};
    if (poll(&event, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1) <= 0) continue;
    const ssize_t got = read(fd, chunk.data(), chunk.size());
    if (got == 0) break;
    if (got > 0) said.append(chunk.data(), static_cast<size_t>(got));
  }
  return said;
}

}  // namespace

absl::StatusOr<LaunchedKeeper> LaunchKeeper(
    const std::string& keeper, const KeeperOrder& order,
    const std::vector<std::pair<std::string, std::string>>& environment) {
  MUSTER_ASSIGN_OR_RETURN(AnswerPipe pipe, MakeAnswerPipe());
  std::vector<std::string> argv = ToArguments(order);
  argv.insert(argv.begin(), keeper);
  const std::vector<std::string> variables = os::MergeEnvironment(environment);
  const SpawnPlan plan(pipe.write_end.get());
  LaunchedKeeper launched;
  const int error =
      posix_spawn(&launched.pid, keeper.c_str(), plan.files(), plan.attributes(),
                  os::NullTerminated(argv).data(), os::NullTerminated(variables).data());
  if (error != 0) return absl::ErrnoToStatus(error, absl::StrCat("cannot start ", keeper));
  launched.answer = std::move(pipe.read_end);
  return launched;
}

absl::Status AwaitAnswer(const LaunchedKeeper& launched, absl::Duration limit) {
  const std::string said = ReadLine(launched.answer.get(), base::RealClock()->Monotonic() + limit);
  if (said.empty() || said.back() != '\n') {
    // It is this process's child and was not waited for: the number is its own. The kernel lets a
    // program of it go.
    kill(launched.pid, SIGKILL);
  }
  return ParseAnswer(absl::StripSuffix(said, "\n"));
}

}  // namespace muster::scaling::actuator::process
