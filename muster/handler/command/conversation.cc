#include "muster/handler/command/conversation.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/log.h"

namespace muster::handler::command {
namespace {

constexpr absl::string_view kTracebackHead = "Traceback (most recent call last):";

// Below a source line, newer Pythons mark the place in it, which says nothing by itself.
bool IsMarker(absl::string_view text) {
  return text.find_first_not_of(" \t~^") == absl::string_view::npos;
}

// The last `max` bytes of the text, and a sign that it is not whole.
std::string LastBytes(std::string text, size_t max) {
  if (text.size() <= max) return text;
  // Not within a character: its later bytes begin with 10.
  size_t cut = text.size() - max;
  while (cut < text.size() && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) ++cut;
  return absl::StrCat("…", text.substr(cut));
}

}  // namespace

void StderrLog::Append(absl::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const absl::string_view part = bytes.substr(0, end);
    line_.append(part.data(), std::min(part.size(), kMaxLineBytes - line_.size()));
    if (end == absl::string_view::npos) return;
    LogLine();
    bytes.remove_prefix(end + 1);
  }
}

void StderrLog::EndLine() {
  if (!line_.empty()) LogLine();
  if (in_traceback_) LogTraceback("a traceback without its end");
  TellLeftOut();
}

void StderrLog::LogLine() {
  const absl::string_view text = absl::StripTrailingAsciiWhitespace(line_);
  if (!text.empty()) {
    if (!TakeTraceback(text) && TakeFromWindow()) {
      base::Log(base::kInfo, "handler stderr", {{"item", item_}, {"line", text}});
    }
    if (!IsMarker(text)) last_lines_.emplace_back(text);
    if (last_lines_.size() > kLastLines) last_lines_.pop_front();
  }
  line_.clear();
}

// As Python writes it: a head, lines that are indented, and the cause.
bool StderrLog::TakeTraceback(absl::string_view text) {
  if (text == kTracebackHead) {
    if (in_traceback_) LogTraceback("a traceback without its end");
    in_traceback_ = true;
    return true;
  }
  if (!in_traceback_) return false;
  if (!absl::ascii_isspace(static_cast<unsigned char>(text.front()))) {
    LogTraceback(text);
    return true;
  }
  if (IsMarker(text)) return true;
  traceback_.emplace_back(absl::StripLeadingAsciiWhitespace(text));
  if (traceback_.size() > kTracebackLines) traceback_.pop_front();
  return true;
}

void StderrLog::LogTraceback(absl::string_view cause) {
  const std::string calls = LastBytes(absl::StrJoin(traceback_, " | "), kTracebackBytes);
  in_traceback_ = false;
  traceback_.clear();
  if (!TakeFromWindow()) return;
  base::Log(base::kInfo, "handler stderr",
            {{"item", item_}, {"line", cause}, {"traceback", calls}});
}

std::string StderrLog::LastLines() const {
  return LastBytes(absl::StrJoin(last_lines_, " | "), kLastBytes);
}

bool StderrLog::TakeFromWindow() {
  const absl::Duration now = clock_->Monotonic();
  if (now >= window_end_) {
    TellLeftOut();
    window_end_ = now + kWindow;
    logged_in_window_ = 0;
  }
  if (logged_in_window_ < kMaxLines) {
    ++logged_in_window_;
    return true;
  }
  ++left_out_;
  return false;
}

void StderrLog::TellLeftOut() {
  if (left_out_ == 0) return;
  base::Log(base::kWarning, "handler stderr was too much", {{"lines_left_out", left_out_}});
  left_out_ = 0;
}

absl::StatusOr<std::unique_ptr<Watchdog>> Watchdog::Create(base::Clock* clock) {
  try {
    std::unique_ptr<Watchdog> watchdog(new Watchdog(clock));
    if (watchdog->fd() < 0) return absl::ResourceExhaustedError("too many open files");
    return watchdog;
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat("no thread for a watchdog: ", error.what()));
  }
}

Watchdog::Watchdog(base::Clock* clock)
    : clock_(clock), event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), thread_([this] { Run(); }) {}

Watchdog::~Watchdog() {
  {
    base::MutexLock lock(&mu_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void Watchdog::Arm(absl::Duration deadline) {
  base::MutexLock lock(&mu_);
  deadline_ = deadline;
  if (state_ == State::kDeadline) SetStateLocked(State::kQuiet);
  changed_.NotifyAll();
}

void Watchdog::Disarm() {
  base::MutexLock lock(&mu_);
  deadline_ = absl::InfiniteDuration();
  changed_.NotifyAll();
  SetStateLocked(State::kQuiet);
}

void Watchdog::Interrupt() {
  base::MutexLock lock(&mu_);
  SetStateLocked(State::kInterrupted);
}

Watchdog::State Watchdog::state() const {
  base::MutexLock lock(&mu_);
  return state_;
}

Watchdog::State Watchdog::Await() {
  base::MutexLock lock(&mu_);
  while (state_ == State::kQuiet) settled_.Wait(&mu_);
  return state_;
}

void Watchdog::Run() {
  base::MutexLock lock(&mu_);
  while (!stopping_) {
    if (clock_->Monotonic() >= deadline_) {
      deadline_ = absl::InfiniteDuration();
      if (state_ == State::kQuiet) SetStateLocked(State::kDeadline);
    }
    clock_->WaitUntil(&changed_, &mu_, deadline_);
  }
}

void Watchdog::SetStateLocked(State state) {
  state_ = state;
  settled_.NotifyAll();
  uint64_t count = 1;
  // Neither can fail but for a full or an empty counter, which is as good.
  const ssize_t done = state == State::kQuiet ? read(event_.get(), &count, sizeof(count))
                                              : write(event_.get(), &count, sizeof(count));
  static_cast<void>(done);
}

namespace {

constexpr size_t kChunkBytes = size_t{64} * 1024;
constexpr int kMaxDrainedChunks = 16;
// How often a program that starts is looked at. Its first item may get so much more time.
constexpr int kStartTickMs = 10;
using Chunk = std::array<char, kChunkBytes>;

// Writing to a program that has closed its stdin raises SIGPIPE, which by default ends the process;
// a library may change that for its own thread only.
class SigPipeBlock {
 public:
  SigPipeBlock() {
    sigemptyset(&sigpipe_);
    sigaddset(&sigpipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &sigpipe_, &before_);
  }
  ~SigPipeBlock() {
    if (sigismember(&before_, SIGPIPE) != 0) return;
    const timespec at_once{};
    while (sigtimedwait(&sigpipe_, nullptr, &at_once) == SIGPIPE) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigPipeBlock(const SigPipeBlock&) = delete;
  SigPipeBlock& operator=(const SigPipeBlock&) = delete;

 private:
  sigset_t sigpipe_{};
  sigset_t before_{};
};

bool WouldBlock(ssize_t result) {
  return result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

bool IsReadable(int fd) {
  pollfd event{fd, POLLIN, 0};
  return poll(&event, 1, 0) > 0;
}

}  // namespace

Conversation::Conversation(os::ChildProcess* child, StderrLog* errors, Watchdog* watchdog,
                           base::Clock* clock, ConversationLimits limits)
    : child_(child), errors_(errors), watchdog_(watchdog), clock_(clock), limits_(limits) {}

ConversationEnd Conversation::Ask(absl::string_view request, absl::Duration allowed) {
  const SigPipeBlock block;
  request_ = unsent_ = request;
  allowed_ = allowed;
  answer_.clear();
  surplus_.clear();
  if (!is_starting_) watchdog_->Arm(clock_->Monotonic() + allowed_);
  ConversationEnd end;
  while (!Step(&end)) {
  }
  if (end == ConversationEnd::kEnded) end = AwaitExit();
  return end;
}

bool Conversation::has_taken() const {
  return request_.size() - unsent_.size() > child_->unread_bytes();
}

void Conversation::NoteStart() {
  if (!is_starting_ || !has_taken()) return;
  is_starting_ = false;
  watchdog_->Arm(clock_->Monotonic() + allowed_);
}

bool Conversation::IsReady() {
  answer_.clear();
  for (int i = 0; IsReadable(child_->output()); ++i) {
    Chunk chunk;
    const ssize_t got = read(child_->output(), chunk.data(), chunk.size());
    if (WouldBlock(got)) break;
    if (got <= 0 || i == kMaxDrainedChunks) return false;
    const absl::string_view bytes(chunk.data(), static_cast<size_t>(got));
    answer_ = std::string(absl::StripAsciiWhitespace(bytes));
    if (!answer_.empty()) return false;
  }
  return !child_->HasEnded();
}

void Conversation::DrainErrors() {
  for (int i = 0; i < kMaxDrainedChunks && IsReadable(child_->errors()); ++i) ReadErrors();
}

// Waits for the watchdog, the program's end or one of its pipes, and handles what has come. Returns
// true if that was the end.
bool Conversation::Step(ConversationEnd* end) {
  // The program's end stands before its output: what it wrote before it ended is seen then.
  std::array<pollfd, 5> events{{
      {watchdog_->fd(), POLLIN, 0},
      {child_->ended_fd(), POLLIN, 0},
      {unsent_.empty() ? -1 : child_->input(), POLLOUT, 0},
      {child_->output(), POLLIN, 0},
      {child_->errors(), POLLIN, 0},
  }};
  // A pipe tells its writer nothing when it is read, unless it was full.
  if (poll(events.data(), events.size(), is_starting_ ? kStartTickMs : -1) < 0) {
    return false;  // EINTR
  }
  NoteStart();
  if (const Watchdog::State state = watchdog_->state(); state != Watchdog::State::kQuiet) {
    *end = state == Watchdog::State::kDeadline ? ConversationEnd::kDeadline
                                               : ConversationEnd::kInterrupted;
    return true;
  }
  if (events[4].revents != 0) ReadErrors();
  if (events[3].revents != 0) return Receive(end);
  if (events[1].revents != 0) {
    *end = ConversationEnd::kEnded;
    return true;
  }
  return events[2].revents != 0 && Send(end);
}

bool Conversation::Send(ConversationEnd* end) {
  const ssize_t sent = write(child_->input(), unsent_.data(), unsent_.size());
  if (sent >= 0) {
    unsent_.remove_prefix(static_cast<size_t>(sent));
    return false;
  }
  if (WouldBlock(sent)) return false;
  *end = ConversationEnd::kEnded;
  return true;
}

bool Conversation::Receive(ConversationEnd* end) {
  Chunk chunk;
  const ssize_t got = read(child_->output(), chunk.data(), chunk.size());
  if (WouldBlock(got)) return false;
  if (got <= 0) {
    *end = ConversationEnd::kEnded;
    return true;
  }
  absl::string_view bytes(chunk.data(), static_cast<size_t>(got));
  // Blank lines are no answers: print(text + "\n") writes one after each.
  if (answer_.empty()) bytes = absl::StripLeadingAsciiWhitespace(bytes);
  if (bytes.empty()) return false;
  const size_t line_end = bytes.find('\n');
  const bool is_whole = line_end != absl::string_view::npos;
  const absl::string_view part = bytes.substr(0, line_end);
  if (answer_.size() + part.size() > limits_.max_answer_bytes) {
    *end = ConversationEnd::kTooLong;
    return true;
  }
  answer_.append(part.data(), part.size());
  if (!is_whole) return false;
  surplus_ = std::string(absl::StripAsciiWhitespace(bytes.substr(line_end)));
  const bool in_turn = unsent_.empty() && surplus_.empty();
  *end = in_turn ? ConversationEnd::kAnswered : ConversationEnd::kOutOfTurn;
  return true;
}

// The program is ending, or pretends to: waits for the exit, then for the grace or the watchdog.
ConversationEnd Conversation::AwaitExit() {
  watchdog_->Arm(clock_->Monotonic() + limits_.exit_grace);
  while (!child_->HasEnded() && watchdog_->state() == Watchdog::State::kQuiet) {
    std::array<pollfd, 3> events{{{watchdog_->fd(), POLLIN, 0},
                                  {child_->ended_fd(), POLLIN, 0},
                                  {child_->errors(), POLLIN, 0}}};
    poll(events.data(), events.size(), -1);
    if (events[2].revents != 0) ReadErrors();
  }
  return watchdog_->state() == Watchdog::State::kInterrupted ? ConversationEnd::kInterrupted
                                                             : ConversationEnd::kEnded;
}

void Conversation::ReadErrors() {
  Chunk chunk;
  const ssize_t got = read(child_->errors(), chunk.data(), chunk.size());
  if (got > 0) {
    errors_->Append({chunk.data(), static_cast<size_t>(got)});
  } else if (!WouldBlock(got)) {
    child_->CloseErrors();
  }
}

}  // namespace muster::handler::command
