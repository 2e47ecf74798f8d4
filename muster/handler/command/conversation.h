// SPDX-License-Identifier: Apache-2.0

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
  kOutOfTurn,  // it wrote a line before it had read the request, or more than one that is not blank
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

// Not thread-safe; lives as long as its program. None of the objects is owned. `watchdog` may be
// null where nothing is asked.
class Conversation {
 public:
  Conversation(os::ChildProcess* child, StderrLog* errors, Watchdog* watchdog, base::Clock* clock,
               ConversationLimits limits);

  // Sends `request` and waits for a line until the watchdog's deadline or interruption. The first
  // request has time to wait for the program's start, until the watchdog's deadline as the caller
  // has armed it; from when the program has taken it, and for later ones from the beginning, it has
  // `allowed`. After any end but kAnswered the program cannot be used again. SIGPIPE is blocked for
  // this thread meanwhile.
  ConversationEnd Ask(absl::string_view request, absl::Duration allowed);

  // Whether the program has read any of the latest request. What it does before that, its end
  // included, has nothing to do with the request.
  bool has_taken() const;

  // The line that came, without its line feed and blank lines around it, or the beginning of one
  // whose line feed has not come; valid until the next Ask or IsReady.
  absl::string_view answer() const { return answer_; }

  // Whether a line came before the program had read the request. What came behind the answer, up to
  // a bound. Both after kOutOfTurn, and as long as the answer.
  bool is_early() const { return !unsent_.empty(); }
  absl::string_view surplus() const { return surplus_; }

  // Whether the program can be asked: it runs, and has written nothing without a request but blank
  // lines, which are passed over. answer() is what else it has written, up to a bound.
  bool IsReady();

  // Logs what has come on stderr, up to a bound.
  void DrainErrors();

 private:
  bool Step(ConversationEnd* end);
  bool Send(ConversationEnd* end);
  bool Receive(ConversationEnd* end);
  ConversationEnd AwaitExit();
  // While the program is starting: looks whether it has taken the request.
  void NoteStart();
  void ReadErrors();

  os::ChildProcess* const child_;
  StderrLog* const errors_;
  Watchdog* const watchdog_;
  base::Clock* const clock_;
  const ConversationLimits limits_;
  absl::string_view request_;
  absl::string_view unsent_;  // the end of it
  std::string answer_;
  std::string surplus_;
  bool is_starting_ = true;  // until the program has taken its first request
  absl::Duration allowed_;
};

}  // namespace muster::handler::command
