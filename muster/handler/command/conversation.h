// Conversation: one request to a program and one answer from it, neither side waiting for the other
// to read.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/handler/command/stderr_log.h"
#include "muster/handler/command/watchdog.h"
#include "muster/os/child_process.h"

namespace muster::handler::command {

enum class ConversationEnd {
  kAnswered,
  kEnded,      // the program ended, or closed its stdin or its stdout
  kOutOfTurn,  // it wrote a line before it had read the request, or more than one
  kTooLong,    // it wrote more than the most that an answer may have
  kDeadline,
  kInterrupted,
};

struct ConversationLimits {
  size_t max_answer_bytes;
  // How long a program that closed its stdout may take to end by itself, so that its exit status
  // and last words are known.
  absl::Duration exit_grace;
};

// Not thread-safe; lives as long as its program. None of the objects is owned.
class Conversation {
 public:
  Conversation(os::ChildProcess* child, StderrLog* errors, Watchdog* watchdog, base::Clock* clock,
               ConversationLimits limits);

  // Sends `request` and waits for a line until the watchdog barks. After any other end than
  // kAnswered the program cannot be talked to again. SIGPIPE is held back from this thread.
  ConversationEnd Ask(absl::string_view request);

  // The line that came, without its line feed; valid until the next Ask.
  absl::string_view answer() const { return answer_; }

  // Whether the program can be asked: it runs, and has written nothing that nobody asked for.
  bool IsReady();

  // Logs what has come on stderr, up to a bound.
  void DrainErrors();

 private:
  bool Step(ConversationEnd* end);
  bool Send(ConversationEnd* end);
  bool Receive(ConversationEnd* end);
  ConversationEnd AwaitExit();
  void ReadErrors();

  os::ChildProcess* const child_;
  StderrLog* const errors_;
  Watchdog* const watchdog_;
  base::Clock* const clock_;
  const ConversationLimits limits_;
  absl::string_view unsent_;
  std::string answer_;
};

}  // namespace muster::handler::command
