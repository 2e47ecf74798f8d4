// SPDX-License-Identifier: Apache-2.0
#include "muster/actuator/process/replica_keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "muster/actuator/process/limits.h"
#include "muster/actuator/process/state_folder.h"
#include "muster/base/clock.h"
#include "muster/base/quantity.h"
#include "muster/base/status.h"
#include "muster/os/child_process.h"
#include "muster/os/find_program.h"
#include "muster/os/notify_socket.h"

namespace muster::actuator::process {

void ReplicaLog::Append(absl::string_view bytes) {
  Write(bytes);
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const absl::string_view part = bytes.substr(0, end);
    line_.append(part.data(), std::min(part.size(), kMaxLogLineBytes - line_.size()));
    if (end == absl::string_view::npos) return;
    EndLine();
    bytes.remove_prefix(end + 1);
  }
}

std::string ReplicaLog::LastLines() const {
  std::deque<std::string> lines = last_lines_;
  if (!absl::StripAsciiWhitespace(line_).empty()) {
    lines.push_back(line_.substr(0, kLastLineBytes));
    if (lines.size() > kLastLines) lines.pop_front();
  }
  return absl::StrJoin(lines, " | ");
}

void ReplicaLog::Write(absl::string_view bytes) {
  if (file_.get() < 0 || file_bytes_ >= kMaxLogBytes) {
    file_.Close();
    // Not synced: that would hold up the program, and output may be lost in a power cut.
    rename(path_.c_str(), absl::StrCat(path_, ".1").c_str());
    constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
    file_ = os::FileDescriptor(open(path_.c_str(), kFlags, 0640));
    file_bytes_ = 0;
  }
  const ssize_t written = write(file_.get(), bytes.data(), bytes.size());
  if (written > 0) file_bytes_ += static_cast<size_t>(written);
}

void ReplicaLog::EndLine() {
  const absl::string_view line = absl::StripAsciiWhitespace(line_);
  if (!line.empty()) {
    last_lines_.emplace_back(line.substr(0, kLastLineBytes));
    if (last_lines_.size() > kLastLines) last_lines_.pop_front();
  }
  line_.clear();
}

namespace {

using os::ChildProcess;
using os::FileDescriptor;

constexpr absl::string_view kStarted = "started";
constexpr size_t kFixedArguments = 6;

// Blocks the signals that end this process, so that they arrive through a descriptor.
absl::StatusOr<FileDescriptor> TakeSignals() {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t told;
  sigemptyset(&told);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&told, number);
  pthread_sigmask(SIG_BLOCK, &told, nullptr);
  FileDescriptor signals(signalfd(-1, &told, SFD_CLOEXEC | SFD_NONBLOCK));
  if (signals.get() < 0) return absl::ErrnoToStatus(errno, "signalfd");
  return signals;
}

// Uses one thread only: the kernel binds the program's life to the thread that starts it.
class Keeper {
 public:
  explicit Keeper(const KeeperOrder& order)
      : order_(order), folder_(order.folder), log_(folder_.log()) {}

  absl::Status Start();
  void KeepUntilItEnds();

 private:
  absl::Duration Now() const { return base::RealClock()->Monotonic(); }
  void Step();
  void ReadOutput(int fd, bool* open);
  void MarkReady();
  void LookForAgents();
  void LetGo();
  void TellEnd();

  const KeeperOrder& order_;
  const ReplicaFolder folder_;
  ReplicaLog log_;
  FileDescriptor signals_;
  FileDescriptor agents_;
  std::optional<os::NotifySocket> readiness_;  // set once it has started
  std::unique_ptr<ChildProcess> child_;
  bool output_open_ = true, errors_open_ = true;
  bool is_ready_ = false;  // as the program has told
  bool marked_ready_ = false;
  std::string kept_metrics_;  // where it serves them, as its folder says
  absl::Duration started_;
  std::optional<absl::Duration> alone_since_;
  std::optional<absl::Duration> kill_at_;  // set once the program was told to end
  bool killed_ = false;
};

absl::Status Keeper::Start() {
  MUSTER_ASSIGN_OR_RETURN(signals_, TakeSignals());
  agents_ = FileDescriptor(open(order_.agents_file.c_str(), O_RDONLY | O_CLOEXEC));
  if (agents_.get() < 0) return absl::ErrnoToStatus(errno, order_.agents_file);
  const std::optional<os::ProcessIdentity> self = os::IdentityOf(getpid());
  if (!self.has_value()) return absl::InternalError("/proc does not show this process");
  // Write the record before starting the program, so that every running program has a record.
  MUSTER_RETURN_IF_ERROR(folder_.WriteRecord(
      {folder_.instance(), order_.target, *self, base::RealClock()->Now(), order_.program}));
  MUSTER_ASSIGN_OR_RETURN(readiness_, os::NotifySocket::Open());
  os::ProcessSpec program;
  MUSTER_ASSIGN_OR_RETURN(program.path, os::FindProgram(order_.program.front(), ""));
  program.argv = order_.program;
  program.env = {{os::kNotifySocketVariable, readiness_->name()}};
  program.death_signal = SIGTERM;
  MUSTER_ASSIGN_OR_RETURN(child_, ChildProcess::Start(program));
  started_ = Now();
  return absl::OkStatus();
}

void Keeper::KeepUntilItEnds() {
  while (!child_->HasEnded()) {
    Step();
    LookForAgents();
    if (kill_at_.has_value() && Now() >= *kill_at_) {
      killed_ = true;
      break;
    }
  }
  TellEnd();
}

void Keeper::Step() {
  std::array<pollfd, 5> events{{{signals_.get(), POLLIN, 0},
                                {child_->ended_fd(), POLLIN, 0},
                                {readiness_->fd(), POLLIN, 0},
                                {output_open_ ? child_->output() : -1, POLLIN, 0},
                                {errors_open_ ? child_->errors() : -1, POLLIN, 0}}};
  poll(events.data(), events.size(), static_cast<int>(absl::ToInt64Milliseconds(kKeeperTick)));
  signalfd_siginfo told;
  if (read(signals_.get(), &told, sizeof(told)) > 0) LetGo();
  ReadOutput(child_->output(), &output_open_);
  ReadOutput(child_->errors(), &errors_open_);
  MarkReady();
}

// Reads a bounded amount at a time, so that a program that writes without end cannot block the
// keeper.
void Keeper::ReadOutput(int fd, bool* open) {
  constexpr int kMaxChunks = 16;
  std::array<char, 8192> chunk;
  for (int i = 0; i < kMaxChunks && *open; ++i) {
    const ssize_t got = read(fd, chunk.data(), chunk.size());
    if (got > 0) log_.Append({chunk.data(), static_cast<size_t>(got)});
    if (got == 0) *open = false;
    if (got < 0) return;
  }
}

void Keeper::MarkReady() {
  is_ready_ = readiness_->TakeReadiness().value_or(is_ready_);
  if (readiness_->metrics() != kept_metrics_ && folder_.WriteMetrics(readiness_->metrics()).ok()) {
    kept_metrics_ = readiness_->metrics();
  }
  const bool ready = is_ready_ && !kill_at_.has_value();
  if (std::exchange(marked_ready_, ready) == ready) return;
  if (!ready) return folder_.Clear(Mark::kReady);
  // Without the mark the replica seems to be starting still; forget it, so that the next step tries
  // again.
  if (!folder_.Set(Mark::kReady).ok()) marked_ready_ = false;
}

void Keeper::LookForAgents() {
  if (HasAgent(agents_.get())) {
    alone_since_.reset();
    return;
  }
  if (!alone_since_.has_value()) alone_since_ = Now();
  if (kill_at_.has_value() || Now() - *alone_since_ < order_.unattended_limit) return;
  // The mark tells a later agent why the replica ended. If the disk is full the mark is missing,
  // and that agent replaces the replica.
  folder_.Set(Mark::kUnattended).IgnoreError();
  LetGo();
}

// Sends SIGTERM only once: a service that gets a second one hurries.
void Keeper::LetGo() {
  if (kill_at_.has_value()) return;
  kill_at_ = Now() + order_.kill_after;
  folder_.Set(Mark::kLeaving).IgnoreError();
  kill(child_->pid(), SIGTERM);
}

void Keeper::TellEnd() {
  // Read the last output if the program has ended. Do not wait for the end of the pipes: children
  // of the program may hold them open.
  ReadOutput(child_->output(), &output_open_);
  ReadOutput(child_->errors(), &errors_open_);
  std::string how = child_->Kill();
  if (killed_) absl::StrAppend(&how, ", because it did not end within its grace");
  folder_.Clear(Mark::kReady);
  folder_.WriteEnd({how, log_.LastLines(), Now() - started_}).IgnoreError();
}

// Ignores write errors, because the agent may be gone. Closes the answer pipe afterwards.
void Answer(const absl::Status& status) {
  const std::string line =
      status.ok() ? absl::StrCat(kStarted, "\n")
                  : absl::StrCat(static_cast<int>(status.code()), " ", status.message(), "\n");
  const ssize_t written = write(STDOUT_FILENO, line.data(), line.size());
  static_cast<void>(written);
  const FileDescriptor nowhere(open("/dev/null", O_WRONLY | O_CLOEXEC));
  dup2(nowhere.get(), STDOUT_FILENO);
}

}  // namespace

std::vector<std::string> ToArguments(const KeeperOrder& order) {
  std::vector<std::string> arguments = {
      order.folder,
      ReplicaFolder(order.folder).instance(),
      order.target,
      order.agents_file,
      base::DurationToString(order.kill_after),
      base::DurationToString(order.unattended_limit),
  };
  arguments.insert(arguments.end(), order.program.begin(), order.program.end());
  return arguments;
}

absl::StatusOr<KeeperOrder> FromArguments(const std::vector<std::string>& arguments) {
  if (arguments.size() <= kFixedArguments) {
    return absl::InvalidArgumentError(
        "usage: FOLDER INSTANCE TARGET AGENTS_FILE KILL_AFTER UNATTENDED_LIMIT PROGRAM "
        "[ARGUMENT…]; scaling agents start this program");
  }
  KeeperOrder order{arguments[0], arguments[2], arguments[3], {}, {}, {}};
  MUSTER_ASSIGN_OR_RETURN(order.kill_after, base::ParseDuration(arguments[4]));
  MUSTER_ASSIGN_OR_RETURN(order.unattended_limit, base::ParseDuration(arguments[5]));
  order.program.assign(arguments.begin() + kFixedArguments, arguments.end());
  return order;
}

int Keep(const KeeperOrder& order) {
  Keeper keeper(order);
  const absl::Status started = keeper.Start();
  Answer(started);
  if (!started.ok()) return 1;
  keeper.KeepUntilItEnds();
  return 0;
}

absl::Status ParseAnswer(absl::string_view line) {
  if (line == kStarted) return absl::OkStatus();
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(line, absl::MaxSplits(' ', 1));
  int code = 0;
  if (!absl::SimpleAtoi(parts.first, &code) || code == 0) {
    return absl::UnavailableError("its keeper ended without a word");
  }
  return absl::Status(static_cast<absl::StatusCode>(code), parts.second);
}

}  // namespace muster::actuator::process
