// SPDX-License-Identifier: Apache-2.0

// ChildProcess and Spawner: programs that this process starts, and their environment.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/mutex.h"
#include "muster/os/file_descriptor.h"

namespace muster::os {

// "NAME=value" of each variable: this process's own, with `changes` on top.
std::vector<std::string> MergeEnvironment(
    const std::vector<std::pair<std::string, std::string>>& changes);

// The pointers lead into `texts`, which must outlive the result.
std::vector<char*> NullTerminated(const std::vector<std::string>& texts);

// ChildProcess: a program that this process started, and the three pipes to it.

// What a program, and each process that it starts, may take; 0: no limit beside this process's own,
// which no limit exceeds.
struct ProcessLimits {
  // Of data: what is allocated, stacks of threads included; not what is only reserved, nor files
  // and shared memory that are mapped.
  uint64_t memory_bytes = 0;
  uint64_t file_bytes = 0;  // of a file that it writes; not of a pipe
  // Processes and threads on top of those that the machine runs when the program starts. The kernel
  // counts all of the user, and lets root start more.
  uint64_t processes = 0;
  bool dumps_core = true;  // false: a crash leaves no core file
};

struct ProcessSpec {
  std::string path;               // absolute, or relative to this process's working directory
  std::vector<std::string> argv;  // argv[0] included
  // Variables on top of this process's own, or alone. Of two with one name the later counts.
  std::vector<std::pair<std::string, std::string>> env;
  bool inherits_environment = true;
  std::string working_dir;  // empty: that of this process
  ProcessLimits limits;
  int death_signal = SIGKILL;  // sent to it when the thread that started it ends
};

// Not thread-safe. The program leads a process group of its own, so that every process it starts
// dies with it, and a Ctrl-C at the terminal does not reach it.
class ChildProcess {
 public:
  // Starts the program; the calling thread must outlive it, because the kernel sends `death_signal`
  // when that thread ends (so that no program survives a worker that was killed): see Spawner.
  // NotFound, PermissionDenied, … when it cannot be executed; Unavailable when the machine cannot
  // start one more.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const ProcessSpec& program);

  // Kills it if it has not ended.
  ~ChildProcess();

  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Our ends of its stdin, stdout and stderr; they never block. -1 once closed.
  int input() const { return input_.get(); }
  int output() const { return output_.get(); }
  int errors() const { return errors_.get(); }
  void CloseErrors() { errors_.Close(); }

  // How many bytes that were written to its stdin it has not read yet, also after its end.
  size_t unread_bytes() const;

  // Readable in poll() when the program has ended; -1 where the kernel does not support it.
  int ended_fd() const { return pidfd_.get(); }
  bool HasEnded() const;

  // Closes its stdin, which asks it to end, and waits up to `grace` (real time) until it has. Calls
  // `read_errors` whenever its stderr has data: a program whose last words stay unread could not
  // end.
  void AskToEnd(absl::Duration grace, absl::FunctionRef<void()> read_errors);

  // Kills what is left of the process group, and waits for the program. Returns how it ended:
  // "exited with status 3, peak memory 14 MiB", "was killed by signal 11 (Segmentation fault), peak
  // memory 14 MiB". The same answer when called again.
  const std::string& Kill();
  // Whether a program that ended before Kill was ended by a signal instead of its own exit.
  bool was_signalled() const { return was_signalled_; }
  // Whether a program that ended before Kill exited by itself with status 0.
  bool has_succeeded() const { return has_succeeded_; }

  pid_t pid() const { return pid_; }

 private:
  ChildProcess(pid_t pid, FileDescriptor input, FileDescriptor output, FileDescriptor errors);

  const pid_t pid_;
  FileDescriptor input_, output_, errors_, pidfd_;
  std::optional<std::string> end_;
  bool was_signalled_ = false;
  bool has_succeeded_ = false;
};

// Spawner: starts programs from one thread that outlives them all.

// Thread-safe. The kernel ties a program's life to the *thread* that started it; workers' threads
// come and go with the load, and must not take their programs along.
class Spawner {
 public:
  Spawner();
  // Every program that it started must be gone.
  ~Spawner();

  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;

  // As ChildProcess::Start.
  absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const ProcessSpec& program)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Order {
    const ProcessSpec* program;
    std::optional<absl::StatusOr<std::unique_ptr<ChildProcess>>> result;
  };

  void Run() ABSL_LOCKS_EXCLUDED(mu_);

  base::Mutex mu_;
  base::CondVar changed_;
  Order* order_ ABSL_GUARDED_BY(mu_) = nullptr;  // on the stack of the thread in Start
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace muster::os
