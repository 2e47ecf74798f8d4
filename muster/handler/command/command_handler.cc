// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/command/command_handler.h"

#include <algorithm>
#include <optional>
#include <stop_token>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "muster/base/log.h"
#include "muster/base/retry.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/handler/command/conversation.h"
#include "muster/handler/command/failure_log.h"
#include "muster/handler/command/program.h"
#include "muster/handler/command/protocol.h"
#include "muster/os/child_process.h"
#include "muster/os/temp_dir.h"

namespace muster::handler::command {
namespace {

using handler::Outcome;
using handler::RestartReason;

constexpr size_t kMaxWhyBytes = 768;
constexpr size_t kShownLineBytes = 80;  // of a line that is no answer
constexpr char kUtf8Mark[] = "\xef\xbb\xbf";
// What the program did, and what its author may want to know of it.
constexpr char kSpread[] =
    "spread its answer over several lines; an answer is one line (no indent in json.dumps)";
constexpr char kFlush[] =
    "; if it has printed one, that has to be flushed (print(…, flush=True), or python3 -u)";
constexpr char kLineFeed[] =
    " without a line feed behind it, with which an answer ends (print(…, flush=True))";
constexpr char kSurplus[] =
    " came behind its answer; an item has one, in one line, and all else goes to stderr";
// In a row, of one program: a single one may be its item's fault.
constexpr int kFailuresUntilIssue = 2;

class CommandHandler final : public handler::Handler {
 public:
  CommandHandler(const handler::JobSchema& schema, CommandOptions options, os::ProcessSpec program,
                 std::shared_ptr<os::Spawner> spawner, std::shared_ptr<FailureLog> failure_log,
                 std::unique_ptr<Watchdog> watchdog)
      : schema_(schema),
        options_(std::move(options)),
        program_(std::move(program)),
        spawner_(std::move(spawner)),
        failure_log_(std::move(failure_log)),
        watchdog_(std::move(watchdog)),
        errors_(options_.clock) {}

  ~CommandHandler() override {
    if (child_ == nullptr) return;
    child_->AskToEnd(options_.exit_grace, [this] { conversation_->DrainErrors(); });
    Discard();
  }

  Outcome Process(const handler::WorkItem& item, handler::Results& results) override {
    if (item.stop_token().stop_requested()) return Outcome::Release();
    if (Allowed(item) <= absl::ZeroDuration()) return Outcome::Retry({}, "its deadline has passed");
    watchdog_->Disarm();
    const std::stop_callback on_stop(item.stop_token(), [this] { watchdog_->Interrupt(); });

    DiscardUnlessReady();
    while (true) {
      if (std::optional<Outcome> not_now = AwaitRestart(item)) return *std::move(not_now);
      // Only now: the hold-back is no item's fault and must not eat its time.
      allowed_ = Allowed(item);
      if (absl::Status started = StartUnlessRunning(); !started.ok()) {
        return NotTaken(absl::StrCat("does not run: ", started.message()));
      }
      errors_.SetItem(item.id());
      // What a program writes before it fails, it writes with each item.
      errors_.SetQuiet(!failure_log_->TellsNext());
      errors_.Forget();
      const ConversationEnd end =
          conversation_->Ask(EncodeRequest(schema_, item, allowed_, results), allowed_);
      // At most once: a new program has answered nothing yet.
      if (!DiscardIfLeft(end)) return Settle(end, item, results);
    }
  }

 private:
  // How long the item may take from now on.
  absl::Duration Allowed(const handler::WorkItem& item) const {
    return std::min(options_.deadline, item.deadline() - options_.clock->Now());
  }

  absl::Duration StartPatience() const { return std::max(allowed_, options_.start_patience); }

  absl::Status StartUnlessRunning() {
    if (child_ != nullptr) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(StartedProgram started, StartProgram(program_, spawner_.get()));
    scratch_ = std::move(started.scratch);
    child_ = std::move(started.child);
    conversation_.emplace(child_.get(), &errors_, watchdog_.get(), options_.clock,
                          ConversationLimits{options_.max_answer_bytes, options_.exit_grace});
    answers_ = 0;
    watchdog_->Arm(options_.clock->Monotonic() + StartPatience());
    // Programs may end after each answer: one line is enough then.
    base::Log(std::exchange(has_started_, true) ? base::kDebug : base::kInfo,
              "handler program started",
              {{"job", schema_.job}, {"program", program_.path}, {"pid", child_->pid()}});
    return absl::OkStatus();
  }

  // Between items a program may have ended, which is no item's fault.
  void DiscardUnlessReady() {
    if (child_ == nullptr) return;
    conversation_->DrainErrors();
    if (conversation_->IsReady()) return;
    if (child_->HasEnded() && conversation_->answer().empty()) return DiscardEnded();
    const bool has_written = !conversation_->answer().empty();
    std::string what =
        absl::StrCat(has_written ? absl::StrCat("wrote ", Shown(conversation_->answer()))
                                 : "closed its stdout, or wrote blank lines without end,",
                     " between two items");
    Discard();
    Fail(has_written ? RestartReason::kAnswer : RestartReason::kEnded, std::move(what),
         options_.max_restart_delay);
  }

  // Discards a program that has answered before, if it ended instead of taking the item, or ended
  // well without a word about it: it serves so many items and no more, or something has ended it.
  bool DiscardIfLeft(ConversationEnd end) {
    if (end != ConversationEnd::kEnded || answers_ == 0) return false;
    if (!child_->HasEnded() || !conversation_->answer().empty()) return false;
    child_->Kill();
    if (conversation_->has_taken() && !child_->has_succeeded()) return false;
    DiscardEnded();
    return true;
  }

  // The program has ended by itself. With status 0 and an answer before, it was meant to.
  void DiscardEnded() {
    const bool has_answered = answers_ > 0;
    const std::string how = child_->Kill();
    const bool is_meant = child_->has_succeeded() && has_answered;
    Discard();
    if (is_meant) return Note(RestartReason::kFinished);
    Fail(RestartReason::kEnded, absl::StrCat(how, ", between two items"),
         options_.max_restart_delay);
  }

  // The item waits here: back in the queue, the same worker would find it again. It waits no longer
  // than its allowed time, and is deferred then.
  std::optional<Outcome> AwaitRestart(const handler::WorkItem& item) {
    const absl::Duration now = options_.clock->Monotonic();
    if (child_ != nullptr || restart_at_ <= now) return std::nullopt;
    watchdog_->Arm(std::min(restart_at_, now + Allowed(item)));
    if (watchdog_->Await() == Watchdog::State::kInterrupted) return Outcome::Release();
    const absl::Duration left = restart_at_ - options_.clock->Monotonic();
    if (left <= absl::ZeroDuration() && Allowed(item) > absl::ZeroDuration()) return std::nullopt;
    return Outcome::Defer(std::max(left, absl::ZeroDuration()),
                          absl::StrCat("the handler's program waits to be restarted: ", why_));
  }

  Outcome Settle(ConversationEnd end, const handler::WorkItem& item, handler::Results& results) {
    if (end == ConversationEnd::kInterrupted) {
      Discard();
      Note(RestartReason::kStopped);
      return Outcome::Release();
    }
    if (!conversation_->has_taken()) return NotTaken(WhatItDidInstead(end));
    switch (end) {
      case ConversationEnd::kAnswered:
        return Read(item, results);
      case ConversationEnd::kInterrupted:
        break;
      case ConversationEnd::kEnded:
        return Ended();
      case ConversationEnd::kOutOfTurn:
        if (IsPrinted(conversation_->answer())) return Printed();
        if (IsSpread(conversation_->answer())) return Failed(RestartReason::kAnswer, kSpread);
        return Failed(RestartReason::kAnswer, WhatItWroteOutOfTurn());
      case ConversationEnd::kTooLong:
        return Failed(RestartReason::kAnswer, TooLong());
      case ConversationEnd::kDeadline:
        return Failed(RestartReason::kDeadline,
                      absl::StrCat("gave no answer within ", absl::FormatDuration(allowed_),
                                   WhatItsAnswerLacks()));
    }
    return Failed(RestartReason::kEnded, "ended in an unknown way");
  }

  // Of a program that has read nothing of its item.
  std::string WhatItDidInstead(ConversationEnd end) {
    switch (end) {
      case ConversationEnd::kEnded:
        return child_->HasEnded() ? absl::StrCat(child_->Kill(), ", before it read its item")
                                  : "closed its stdin or stdout before it read its item";
      case ConversationEnd::kAnswered:
      case ConversationEnd::kOutOfTurn:
        return IsPrinted(conversation_->answer()) ? WhatItPrinted()
                                                  : "wrote a line before it read its item";
      case ConversationEnd::kTooLong:
        return TooLong();
      case ConversationEnd::kDeadline:
      case ConversationEnd::kInterrupted:
        break;
    }
    return absl::StrCat("did not read its item within ", absl::FormatDuration(StartPatience()));
  }

  std::string TooLong() const {
    return absl::StrCat("wrote an answer of more than ", options_.max_answer_bytes, " bytes");
  }

  // Of a program that has not answered.
  std::string WhatItsAnswerLacks() const {
    if (const absl::string_view begun = conversation_->answer(); !begun.empty()) {
      return absl::StrCat(", but ", Shown(begun), kLineFeed);
    }
    return has_answered_ ? "" : kFlush;
  }

  std::string WhatItWroteOutOfTurn() const {
    if (conversation_->is_early()) return "wrote a line before it had read its item";
    const absl::string_view more = conversation_->surplus();
    return absl::StrCat("wrote more than one line: ", Shown(more.substr(0, more.find('\n'))),
                        kSurplus);
  }

  Outcome Ended() {
    if (!child_->HasEnded()) return Failed(RestartReason::kEnded, "closed its stdin or stdout");
    std::string how = child_->Kill();
    if (const absl::string_view begun = conversation_->answer(); !begun.empty()) {
      absl::StrAppend(&how, "; it wrote ", Shown(begun), kLineFeed);
    }
    // A program that exits by itself may have lacked resources of the machine: that is no proof
    // against the item.
    const bool is_proof = options_.death_is_proof && child_->was_signalled();
    Discard();
    return is_proof ? Died(how) : Failed(RestartReason::kEnded, how);
  }

  static std::string Shown(absl::string_view text) {
    return absl::StrCat("\"", base::Printable(absl::StripAsciiWhitespace(text), kShownLineBytes),
                        "\"");
  }

  // Whether a line was meant for people: print("hello") is the first thing that programs do.
  static bool IsPrinted(absl::string_view line) {
    absl::ConsumePrefix(&line, kUtf8Mark);
    const absl::string_view text = absl::StripLeadingAsciiWhitespace(line);
    return !text.empty() && text.front() != '{';
  }

  // Whether the answer goes on in the lines after this one.
  static bool IsSpread(absl::string_view line) { return absl::StripAsciiWhitespace(line) == "{"; }

  std::string WhatItPrinted() const {
    return absl::StrCat("printed ", Shown(conversation_->answer()),
                        " to stdout, where only its answers may go; print to stderr instead");
  }

  // It does so with each item, so people hear of it at once.
  Outcome Printed() {
    std::string what = WhatItPrinted();
    Discard();
    Fail(RestartReason::kAnswer, std::move(what), options_.max_restart_delay);
    if (options_.health != nullptr) options_.health->Note(why_);
    return Outcome::Retry({}, why_);
  }

  Outcome Read(const handler::WorkItem& item, handler::Results& results) {
    if (IsPrinted(conversation_->answer())) return Printed();
    if (IsSpread(conversation_->answer())) return Failed(RestartReason::kAnswer, kSpread);
    absl::StatusOr<Outcome> outcome = DecodeAnswer(conversation_->answer(), schema_, item, results);
    const bool is_unfit = absl::IsOutOfRange(outcome.status());
    if (!outcome.ok() && !is_unfit) {
      return Failed(RestartReason::kAnswer,
                    absl::StrCat("gave an answer that is refused: ", outcome.status().message()));
    }
    ++answers_;
    has_answered_ = true;
    failures_ = 0;
    failure_log_->NoteAnswer();
    in_vain_since_.reset();
    if (options_.health != nullptr) options_.health->Works();
    if (is_unfit) return Outcome::Unfit(std::string(outcome.status().message()));
    return *std::move(outcome);
  }

  // No program has seen the item, so there is nothing to charge it with: what is missing may come
  // back, say when a deployment has ended. `what` completes "the program …", or says what is
  // missing.
  Outcome NotTaken(std::string what) {
    Discard();
    const absl::Duration now = options_.clock->Monotonic();
    if (!in_vain_since_.has_value()) in_vain_since_ = now;
    Fail(RestartReason::kNotStarted, std::move(what), options_.max_start_delay);
    Tell(RestartReason::kNotStarted);
    const bool has_worked = options_.health != nullptr && options_.health->has_worked();
    if (options_.on_never_started && !has_worked &&
        now - *in_vain_since_ >= options_.program_patience) {
      options_.on_never_started(absl::UnavailableError(why_));
    }
    // At once: this worker waits with its next item, and another one may have a program that works.
    return Outcome::Defer(absl::ZeroDuration(), why_);
  }

  // `what` completes "the program …".
  Outcome Failed(RestartReason reason, std::string what) {
    Discard();
    in_vain_since_.reset();
    Fail(reason, std::move(what), options_.max_restart_delay);
    return Outcome::Retry({}, why_);
  }

  Outcome Died(std::string how) {
    in_vain_since_.reset();
    Fail(RestartReason::kEnded, std::move(how), options_.max_restart_delay);
    return Outcome::Dead(absl::StrCat("another worker has died of it before: ", why_));
  }

  void Note(RestartReason reason) const {
    if (options_.restarts != nullptr) options_.restarts->Note(reason);
  }

  // Holds the next start back.
  void Fail(RestartReason reason, std::string what, absl::Duration max_delay) {
    Note(reason);
    if (const std::string last = errors_.LastLines(); !last.empty()) {
      absl::StrAppend(&what, "; stderr: ", last);
    }
    why_ = base::Printable(absl::StrCat("the handler's program ", what), kMaxWhyBytes);
    const absl::Duration delay =
        base::ExponentialBackoff(++failures_, options_.first_restart_delay, max_delay);
    if (failures_ >= kFailuresUntilIssue) Tell(reason);
    restart_at_ = options_.clock->Monotonic() + delay;
    const FailureLog::Failure failure = failure_log_->Note();
    base::Log(failure.is_told ? base::kWarning : base::kDebug, "handler program failed",
              {{"job", schema_.job},
               {"why", why_},
               {"failures_in_a_row", failure.in_a_row},
               {"restart_after", absl::FormatDuration(delay)}});
  }

  // Of a program that reads its items, the next item may be one that it works through.
  void Tell(RestartReason reason) const {
    if (options_.health == nullptr) return;
    if (reason == RestartReason::kNotStarted) return options_.health->Note(why_);
    options_.health->NoteItems(why_);
  }

  // Ends the program, if there is one, and its last words; returns how it ended.
  std::string Discard() {
    if (child_ == nullptr) return "";
    const std::string end = child_->Kill();
    conversation_->DrainErrors();
    errors_.EndLine();
    conversation_.reset();
    child_.reset();
    scratch_.reset();
    return end;
  }

  const handler::JobSchema schema_;
  const CommandOptions options_;
  const os::ProcessSpec program_;
  // Shared: it has to outlive the programs of all handlers, and the factory may be gone by then.
  const std::shared_ptr<os::Spawner> spawner_;
  const std::shared_ptr<FailureLog> failure_log_;  // of all handlers of the factory, as spawner_
  const std::unique_ptr<Watchdog> watchdog_;
  StderrLog errors_;
  std::unique_ptr<os::ScratchFolder> scratch_;  // with child_, which it outlives
  std::unique_ptr<os::ChildProcess> child_;     // null until needed, and after a failure
  std::optional<Conversation> conversation_;    // with child_
  int64_t answers_ = 0;                         // accepted ones, of child_
  bool has_started_ = false;                    // a program, ever
  bool has_answered_ = false;                   // likewise
  absl::Duration allowed_;                      // for the current item
  int failures_ = 0;                            // in a row, of its own program
  // Since when no program has taken an item; nullopt: the latest one did.
  std::optional<absl::Duration> in_vain_since_;
  absl::Duration restart_at_ = -absl::InfiniteDuration();
  std::string why_;  // of the last failure
};

}  // namespace

handler::HandlerFactory CommandHandlerFactory(CommandOptions options) {
  auto spawner = std::make_shared<os::Spawner>();
  auto failure_log = std::make_shared<FailureLog>(options.health);
  return [options = std::move(options), spawner, failure_log](const handler::JobSchema& schema)
             -> absl::StatusOr<std::unique_ptr<handler::Handler>> {
    MUSTER_ASSIGN_OR_RETURN(os::ProcessSpec program, ProgramOf(options));
    MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Watchdog> watchdog, Watchdog::Create(options.clock));
    return std::make_unique<CommandHandler>(schema, options, std::move(program), spawner,
                                            failure_log, std::move(watchdog));
  };
}

}  // namespace muster::handler::command
