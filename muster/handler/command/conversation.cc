// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/command/conversation.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "absl/strings/ascii.h"
#include "muster/base/sigpipe_block.h"

namespace muster::handler::command {
namespace {

constexpr size_t kChunkBytes = size_t{64} * 1024;
constexpr int kMaxDrainedChunks = 16;
// How often a program that starts is looked at. Its first item may get so much more time.
constexpr int kStartTickMs = 10;
using Chunk = std::array<char, kChunkBytes>;

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
  const base::SigPipeBlock block;
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
    const bool is_late = state == Watchdog::State::kDeadline;
    // Where this process was held up, as by Ctrl-Z, the answer may have come in time.
    if (is_late && events[3].revents != 0 && Receive(end) && *end == ConversationEnd::kAnswered) {
      return true;
    }
    *end = is_late ? ConversationEnd::kDeadline : ConversationEnd::kInterrupted;
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
