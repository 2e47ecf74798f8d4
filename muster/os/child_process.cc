// SPDX-License-Identifier: Apache-2.0
#include "muster/os/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/os/process_identity.h"

namespace muster::os {

namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

std::vector<std::string> Merge(std::map<std::string, std::string> merged,
                               const Variables& changes) {
  for (const auto& [name, value] : changes) merged.insert_or_assign(name, value);
  std::vector<std::string> variables;
  variables.reserve(merged.size());
  for (const auto& [name, value] : merged) variables.push_back(absl::StrCat(name, "=", value));
  return variables;
}

}  // namespace

std::vector<std::string> MergeEnvironment(const Variables& changes) {
  std::map<std::string, std::string> own;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::pair<std::string, std::string> split =
        absl::StrSplit(*variable, absl::MaxSplits('=', 1));
    own.insert(split);
  }
  return Merge(std::move(own), changes);
}

std::vector<char*> NullTerminated(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

namespace {

using Resource = decltype(RLIMIT_DATA);

struct Pipe {
  FileDescriptor read_end, write_end;
};

// Above stdin, stdout and stderr, so that putting a pipe in their place overwrites no other pipe,
// even if this process was started with those closed.
absl::StatusOr<FileDescriptor> AboveStandard(FileDescriptor fd) {
  if (fd.get() > STDERR_FILENO) return fd;
  const int above = fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (above < 0) return absl::ErrnoToStatus(errno, "fcntl(F_DUPFD_CLOEXEC)");
  return FileDescriptor(above);
}

absl::StatusOr<Pipe> MakePipe() {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe2");
  FileDescriptor read_end(ends[0]), write_end(ends[1]);
  Pipe pipe;
  MUSTER_ASSIGN_OR_RETURN(pipe.read_end, AboveStandard(std::move(read_end)));
  MUSTER_ASSIGN_OR_RETURN(pipe.write_end, AboveStandard(std::move(write_end)));
  return pipe;
}

struct Pipes {
  Pipe input, output, errors;
  Pipe failure;  // carries errno when the program cannot be executed; exec closes it otherwise
};

absl::StatusOr<Pipes> MakePipes() {
  Pipes pipes;
  for (Pipe* pipe : {&pipes.input, &pipes.output, &pipes.errors, &pipes.failure}) {
    MUSTER_ASSIGN_OR_RETURN(*pipe, MakePipe());
  }
  for (const FileDescriptor* ours :
       {&pipes.input.write_end, &pipes.output.read_end, &pipes.errors.read_end}) {
    if (fcntl(ours->get(), F_SETFL, O_NONBLOCK) != 0) return absl::ErrnoToStatus(errno, "fcntl");
  }
  return pipes;
}

// Everything that the child needs, made before fork: after it, it may not allocate.
struct Prepared {
  const char* path;
  const char* working_dir;
  std::vector<char*> argv;
  std::vector<std::string> variables;
  std::vector<char*> envp;  // into `variables`
  int input, output, errors, failure;
  std::vector<std::pair<Resource, rlimit>> limits;
  int death_signal;
  pid_t parent;
};

// Threads of the whole machine, as in "0.20 0.18 0.12 1/80 11206"; 0: /proc does not tell.
uint64_t CountThreads() {
  std::ifstream file("/proc/loadavg");
  std::string load, running_of_all;
  for (int i = 0; i < 3; ++i) file >> load;
  file >> running_of_all;
  uint64_t threads = 0;
  const std::vector<std::string> parts = absl::StrSplit(running_of_all, '/');
  return parts.size() == 2 && absl::SimpleAtoi(parts[1], &threads) ? threads : 0;
}

std::vector<std::pair<Resource, rlimit>> ResourceLimits(const ProcessLimits& limits) {
  std::vector<std::pair<Resource, rlimit>> resources;
  const auto add = [&resources](Resource resource, uint64_t wanted) {
    rlimit current{};
    // Only root may exceed the hard limit.
    if (getrlimit(resource, &current) != 0) current.rlim_max = wanted;
    const rlim_t bound = std::min<rlim_t>(wanted, current.rlim_max);
    resources.push_back({resource, {bound, bound}});
  };
  if (limits.memory_bytes != 0) add(RLIMIT_DATA, limits.memory_bytes);
  if (limits.file_bytes != 0) add(RLIMIT_FSIZE, limits.file_bytes);
  if (limits.processes != 0) add(RLIMIT_NPROC, CountThreads() + limits.processes);
  if (!limits.dumps_core) add(RLIMIT_CORE, 0);
  return resources;
}

// `program` and `pipes` must outlive the result.
Prepared Prepare(const ProcessSpec& program, const Pipes& pipes) {
  Prepared prepared;
  prepared.path = program.path.c_str();
  prepared.working_dir = program.working_dir.empty() ? nullptr : program.working_dir.c_str();
  prepared.argv = NullTerminated(program.argv);
  prepared.variables =
      program.inherits_environment ? MergeEnvironment(program.env) : Merge({}, program.env);
  prepared.envp = NullTerminated(prepared.variables);
  prepared.input = pipes.input.read_end.get();
  prepared.output = pipes.output.write_end.get();
  prepared.errors = pipes.errors.write_end.get();
  prepared.failure = pipes.failure.write_end.get();
  prepared.limits = ResourceLimits(program.limits);
  prepared.death_signal = program.death_signal;
  prepared.parent = getpid();
  return prepared;
}

// The program begins with the usual signals: an ignored SIGPIPE would be inherited.
void ResetSignals() {
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) sigaction(number, &usual, nullptr);
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

// Keeps other libraries' files out of the program, also those that were opened without O_CLOEXEC.
void CloseOthersOnExec() {
#ifdef SYS_close_range
  constexpr unsigned kCloseOnExec = 1u << 2;  // CLOSE_RANGE_CLOEXEC
  syscall(SYS_close_range, STDERR_FILENO + 1u, ~0u, kCloseOnExec);
#endif
}

[[noreturn]] void Fail(int failure, int error) {
  // Should even this fail, the exit status remains.
  if (write(failure, &error, sizeof(error)) < 0) _exit(126);
  _exit(127);
}

// Runs in the child, between fork and exec: only async-signal-safe calls.
[[noreturn]] void Become(const Prepared& prepared) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, prepared.death_signal);
  if (getppid() != prepared.parent) _exit(126);  // it died before the line above
  ResetSignals();
  const bool moved = dup2(prepared.input, STDIN_FILENO) >= 0 &&
                     dup2(prepared.output, STDOUT_FILENO) >= 0 &&
                     dup2(prepared.errors, STDERR_FILENO) >= 0;
  if (!moved) Fail(prepared.failure, errno);
  if (prepared.working_dir != nullptr && chdir(prepared.working_dir) != 0) {
    Fail(prepared.failure, errno);
  }
  for (const auto& [resource, limit] : prepared.limits) {
    if (setrlimit(resource, &limit) != 0) Fail(prepared.failure, errno);
  }
  CloseOthersOnExec();
  execve(prepared.path, prepared.argv.data(), prepared.envp.data());
  Fail(prepared.failure, errno);
}

// 0 when the program runs, else the errno of what kept it from running.
int AwaitExec(const FileDescriptor& failure) {
  int error = 0;
  ssize_t got;
  do {
    got = read(failure.get(), &error, sizeof(error));
  } while (got < 0 && errno == EINTR);
  return got == sizeof(error) ? error : 0;
}

std::string DescribeStatus(int status) {
  if (WIFEXITED(status)) return absl::StrCat("exited with status ", WEXITSTATUS(status));
  const int signal_number = WTERMSIG(status);
  const char* const about = sigdescr_np(signal_number);
  return absl::StrCat("was killed by signal ", signal_number, " (",
                      about != nullptr ? about : "unknown", ")");
}

std::string DescribeEnd(int status, const rusage& usage) {
  constexpr int64_t kKibPerMib = 1024;
  return absl::StrCat(DescribeStatus(status), ", peak memory ",
                      (usage.ru_maxrss + kKibPerMib - 1) / kKibPerMib, " MiB");
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(const ProcessSpec& program) {
  MUSTER_ASSIGN_OR_RETURN(Pipes pipes, MakePipes());
  const Prepared prepared = Prepare(program, pipes);
  const pid_t pid = fork();
  if (pid == 0) Become(prepared);
  if (pid < 0) return absl::ErrnoToStatus(errno, "fork");
  std::unique_ptr<ChildProcess> child(new ChildProcess(pid, std::move(pipes.input.write_end),
                                                       std::move(pipes.output.read_end),
                                                       std::move(pipes.errors.read_end)));
  pipes.failure.write_end.Close();
  if (const int error = AwaitExec(pipes.failure.read_end); error != 0) {
    return absl::ErrnoToStatus(error, absl::StrCat("cannot start ", program.path));
  }
  return child;
}

ChildProcess::ChildProcess(pid_t pid, FileDescriptor input, FileDescriptor output,
                           FileDescriptor errors)
    : pid_(pid),
      input_(std::move(input)),
      output_(std::move(output)),
      errors_(std::move(errors)),
      pidfd_(OpenPidfd(pid)) {}

ChildProcess::~ChildProcess() { Kill(); }

size_t ChildProcess::unread_bytes() const {
  int bytes = 0;
  // A pipe tells so at either end, and keeps what it holds until both are closed.
  return ioctl(input_.get(), FIONREAD, &bytes) == 0 ? static_cast<size_t>(bytes) : 0;
}

bool ChildProcess::HasEnded() const {
  if (end_) return true;
  siginfo_t info{};
  // WNOWAIT leaves it a zombie: until Kill, its number must not name another process group.
  const int result = waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
  return result != 0 || info.si_pid == pid_;
}

void ChildProcess::AskToEnd(absl::Duration grace, absl::FunctionRef<void()> read_errors) {
  input_.Close();
  if (pidfd_.get() < 0) return;
  const absl::Duration deadline = base::RealClock()->Monotonic() + grace;
  for (absl::Duration left = grace; left > absl::ZeroDuration();
       left = deadline - base::RealClock()->Monotonic()) {
    std::array<pollfd, 2> events{{{pidfd_.get(), POLLIN, 0}, {errors_.get(), POLLIN, 0}}};
    // An interrupted poll shortens the grace, no more.
    if (poll(events.data(), events.size(), static_cast<int>(absl::ToInt64Milliseconds(left))) <=
            0 ||
        events[0].revents != 0) {
      return;
    }
    read_errors();
  }
}

const std::string& ChildProcess::Kill() {
  if (end_) return *end_;
  kill(-pid_, SIGKILL);
  int status = 0;
  rusage usage{};
  pid_t waited;
  do {
    waited = wait4(pid_, &status, 0, &usage);
  } while (waited < 0 && errno == EINTR);
  // Where the host ignores SIGCHLD, the kernel has thrown the status away.
  was_signalled_ = waited == pid_ && WIFSIGNALED(status);
  has_succeeded_ = waited == pid_ && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  end_ = waited == pid_ ? DescribeEnd(status, usage) : "ended in an unknown way";
  return *end_;
}

Spawner::Spawner() : thread_([this] { Run(); }) {}

Spawner::~Spawner() {
  {
    base::MutexLock lock(&mu_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

absl::StatusOr<std::unique_ptr<ChildProcess>> Spawner::Start(const ProcessSpec& program) {
  Order order{&program, std::nullopt};
  base::MutexLock lock(&mu_);
  while (order_ != nullptr) changed_.Wait(&mu_);
  order_ = &order;
  changed_.NotifyAll();
  while (!order.result) changed_.Wait(&mu_);
  return *std::move(order.result);
}

void Spawner::Run() {
  base::MutexLock lock(&mu_);
  while (true) {
    while (order_ == nullptr && !stopping_) changed_.Wait(&mu_);
    if (order_ == nullptr) return;
    // The lock is kept: starts are rare, and one at a time is what this class is for.
    order_->result.emplace(ChildProcess::Start(*order_->program));
    order_ = nullptr;
    changed_.NotifyAll();
  }
}

}  // namespace muster::os
