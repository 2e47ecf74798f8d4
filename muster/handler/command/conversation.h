// Talks to a handler program: StderrLog, Watchdog and Conversation.
//
// StderrLog: logs what a program writes to its stderr, line by line.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/os/child_process.h"
#include "muster/os/file_descriptor.h"

namespace muster::handler::command {

// Not thread-safe. Bounded in every direction: a line has at most kMaxLineBytes, and at most
// kMaxLines are logged per kWindow. It logs how many lines were left out when the window or the
// program ends.
//
// A traceback of Python becomes one line of the log: the cause, which Python writes last, and the
// innermost calls. Item after item it would fill the log otherwise.
class StderrLog {
 public:
  static constexpr size_t kMaxLineBytes = 1024;
  static constexpr int kMaxLines = 100;
  static constexpr size_t kTracebackLines = 6;  // three calls, each with its source
  static constexpr size_t kTracebackBytes = 600;
  static constexpr size_t kLastLines = 3;
  static constexpr size_t kLastBytes = 300;
  static constexpr absl::Duration kWindow = absl::Seconds(10);

  // `clock` is not owned.
  explicit StderrLog(base::Clock* clock) : clock_(clock) {}

  // Lines that end from now on belong to the work item `item`.
  void SetItem(std::string item) { item_ = std::move(item); }

  void Append(absl::string_view bytes);

  // The program has ended: what it wrote last is a line even without a line feed.
  void EndLine();

  // The last kLastLines non-blank lines since Forget(), joined, cut at the beginning to kLastBytes:
  // they mostly say why the program died.
  std::string LastLines() const;
  void Forget() { last_lines_.clear(); }

 private:
  void LogLine();
  // Whether the line is one of a traceback, which waits for its cause; and the traceback's end.
  bool TakeTraceback(absl::string_view text);
  void LogTraceback(absl::string_view cause);
  bool TakeFromWindow();
  void TellLeftOut();

  base::Clock* const clock_;
  std::string item_;
  std::string line_;  // as far as it has come
  std::deque<std::string> last_lines_;
  bool in_traceback_ = false;
  std::deque<std::string> traceback_;  // its last lines so far
  absl::Duration window_end_ = -absl::InfiniteDuration();
  int logged_in_window_ = 0;
  int64_t left_out_ = 0;
};

// Watchdog: a deadline under a Clock, as a file descriptor that poll() can wait for.

// Thread-safe.
class Watchdog {
 public:
  enum class State { kQuiet, kDeadline, kInterrupted };

  // `clock` is not owned. ResourceExhausted when this process has no thread or no file descriptor
  // to spare.
  static absl::StatusOr<std::unique_ptr<Watchdog>> Create(base::Clock* clock);
  ~Watchdog();

  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Quiet from now until clock->Monotonic() reaches `deadline`. Replaces an earlier deadline; an
  // interruption stays.
  void Arm(absl::Duration deadline);

  // Switches the deadline off and forgets an interruption.
  void Disarm();

  // Interrupts at once, and until Disarm.
  void Interrupt();

  State state() const;

  // Readable as long as the state is not kQuiet.
  int fd() const { return event_.get(); }

  // Blocks while the state is kQuiet; never returns kQuiet.
  State Await();

 private:
  explicit Watchdog(base::Clock* clock);

  void Run();
  void SetStateLocked(State state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  base::Clock* const clock_;
  const os::FileDescriptor event_;
  mutable base::Mutex mu_;
  base::CondVar changed_;  // for the thread
  base::CondVar settled_;  // for threads in Await
  State state_ ABSL_GUARDED_BY(mu_) = State::kQuiet;
  absl::Duration deadline_ ABSL_GUARDED_BY(mu_) = absl::InfiniteDuration();
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // last: it uses the others
};

// Conversation: one request to a program and one answer from it, neither side waiting for the other
// to read.

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
