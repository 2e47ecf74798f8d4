#include "muster/handler/command/command_handler.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <stop_token>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/handler/command/conversation.h"
#include "muster/handler/command/protocol.h"
#include "muster/os/child_process.h"
#include "muster/os/find_program.h"
#include "muster/os/temp_dir.h"

namespace muster::handler::command {
namespace {

using handler::Outcome;

constexpr size_t kMaxWhyBytes = 768;
constexpr size_t kShownLineBytes = 80;  // of a line that is no answer
// 2^20 × any delay is above any maximum; further doubling would overflow.
constexpr int kMaxDoublings = 20;
// In a row, of one program: a single one may be its item's fault.
constexpr int kFailuresUntilIssue = 2;

class CommandHandler final : public handler::Handler {
 public:
  CommandHandler(const handler::JobSchema& schema, CommandOptions options, os::ProcessSpec program,
                 std::shared_ptr<os::Spawner> spawner, std::unique_ptr<Watchdog> watchdog)
      : schema_(schema),
        options_(std::move(options)),
        program_(std::move(program)),
        spawner_(std::move(spawner)),
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
    if (std::optional<Outcome> not_now = AwaitRestart(item)) return *std::move(not_now);
    // Only now: the hold-back is no item's fault and must not eat its time.
    allowed_ = Allowed(item);
    const absl::Duration deadline = options_.clock->Monotonic() + allowed_;
    if (absl::Status started = StartUnlessRunning(); !started.ok()) {
      return Failed(std::string(started.message()));
    }
    errors_.SetItem(item.id());
    errors_.Forget();
    watchdog_->Arm(deadline);
    const absl::Duration left = deadline - options_.clock->Monotonic();
    return Settle(conversation_->Ask(EncodeRequest(schema_, item, left, results)), item, results);
  }

 private:
  // How long the item may take from now on.
  absl::Duration Allowed(const handler::WorkItem& item) const {
    return std::min(options_.deadline, item.deadline() - options_.clock->Now());
  }

  absl::Status StartUnlessRunning() {
    if (child_ != nullptr) return absl::OkStatus();
    os::ProcessSpec program = program_;
    if (!program.inherits_environment) {
      MUSTER_ASSIGN_OR_RETURN(scratch_, os::ScratchFolder::Make());
      program.env.insert(program.env.begin(), {"TMPDIR", scratch_->path()});
    }
    MUSTER_ASSIGN_OR_RETURN(child_, spawner_->Start(program));
    conversation_.emplace(child_.get(), &errors_, watchdog_.get(), options_.clock,
                          ConversationLimits{options_.max_answer_bytes, options_.exit_grace});
    base::Log(base::kInfo, "handler program started",
              {{"job", schema_.job}, {"program", program_.path}, {"pid", child_->pid()}});
    return absl::OkStatus();
  }

  // Between items a program may have ended, which is no item's fault.
  void DiscardUnlessReady() {
    if (child_ == nullptr) return;
    conversation_->DrainErrors();
    if (conversation_->IsReady()) return;
    Discard();
    Fail("ended, or wrote something, between two items");
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
    switch (end) {
      case ConversationEnd::kAnswered:
        return Read(item, results);
      case ConversationEnd::kInterrupted:
        Discard();
        return Outcome::Release();
      case ConversationEnd::kEnded:
        return Ended();
      case ConversationEnd::kOutOfTurn:
        if (IsPrinted(conversation_->answer())) return Printed(conversation_->answer());
        return Failed("wrote more than one line, or before it had read its item");
      case ConversationEnd::kTooLong:
        return Failed(
            absl::StrCat("wrote an answer of more than ", options_.max_answer_bytes, " bytes"));
      case ConversationEnd::kDeadline:
        return Failed(absl::StrCat("gave no answer within ", absl::FormatDuration(allowed_)));
    }
    return Failed("ended in an unknown way");
  }

  Outcome Ended() {
    if (!child_->HasEnded()) return Failed("closed its stdin or stdout");
    const std::string how = child_->Kill();
    // A program that exits by itself may have lacked resources of the machine: that is no proof
    // against the item.
    const bool is_proof = options_.death_is_proof && child_->was_signalled();
    Discard();
    return is_proof ? Died(how) : Failed(how);
  }

  // Whether a line was meant for people: print("hello") is the first thing that programs do.
  static bool IsPrinted(absl::string_view line) {
    const absl::string_view text = absl::StripLeadingAsciiWhitespace(line);
    return !text.empty() && text.front() != '{';
  }

  // It does so with each item, so people hear of it at once.
  Outcome Printed(absl::string_view line) {
    const std::string shown = base::Printable(absl::StripAsciiWhitespace(line), kShownLineBytes);
    Discard();
    Fail(absl::StrCat("printed \"", shown,
                      "\" to stdout, where only its answers may go; print to stderr instead"));
    if (options_.health != nullptr) options_.health->Note(why_);
    return Outcome::Retry({}, why_);
  }

  Outcome Read(const handler::WorkItem& item, handler::Results& results) {
    if (IsPrinted(conversation_->answer())) return Printed(conversation_->answer());
    absl::StatusOr<Outcome> outcome = DecodeAnswer(conversation_->answer(), schema_, item, results);
    if (!outcome.ok()) {
      return Failed(absl::StrCat("gave an answer that is refused: ", outcome.status().message()));
    }
    failures_ = 0;
    if (options_.health != nullptr) options_.health->Works();
    return *std::move(outcome);
  }

  // `what` completes "the program …".
  Outcome Failed(std::string what) {
    Discard();
    Fail(std::move(what));
    return Outcome::Retry({}, why_);
  }

  Outcome Died(std::string how) {
    Fail(std::move(how));
    return Outcome::Dead(absl::StrCat("another worker has died of it before: ", why_));
  }

  // Holds the next start back.
  void Fail(std::string what) {
    if (const std::string last = errors_.LastLines(); !last.empty()) {
      absl::StrAppend(&what, "; stderr: ", last);
    }
    why_ = base::Printable(absl::StrCat("the handler's program ", what), kMaxWhyBytes);
    const absl::Duration delay =
        std::min(options_.first_restart_delay * (1 << std::min(failures_, kMaxDoublings)),
                 options_.max_restart_delay);
    ++failures_;
    if (options_.health != nullptr && failures_ >= kFailuresUntilIssue) {
      options_.health->Note(why_);
    }
    restart_at_ = options_.clock->Monotonic() + delay;
    base::Log(base::kWarning, "handler program failed",
              {{"job", schema_.job},
               {"why", why_},
               {"failures_in_a_row", failures_},
               {"restart_after", absl::FormatDuration(delay)}});
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
  const std::unique_ptr<Watchdog> watchdog_;
  StderrLog errors_;
  std::unique_ptr<os::ScratchFolder> scratch_;  // with child_, which it outlives
  std::unique_ptr<os::ChildProcess> child_;     // null until needed, and after a failure
  std::optional<Conversation> conversation_;    // with child_
  absl::Duration allowed_;                      // for the current item
  int failures_ = 0;                            // in a row
  absl::Duration restart_at_ = -absl::InfiniteDuration();
  std::string why_;  // of the last failure
};

std::vector<std::pair<std::string, std::string>> EnvironmentFor(const CommandOptions& options) {
  if (options.inherits_environment) return options.env;
  std::vector<std::pair<std::string, std::string>> variables = {{"PATH", os::kUsualPath}};
  const auto pass = [&variables](const std::string& name) {
    const char* const value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): no
                                                          // thread changes the environment
    if (value != nullptr) variables.emplace_back(name, value);
  };
  for (const char* name : kUsualVariables) pass(name);
  for (const std::string& name : options.passed_variables) pass(name);
  variables.insert(variables.end(), options.env.begin(), options.env.end());
  return variables;
}

}  // namespace

handler::HandlerFactory CommandHandlerFactory(CommandOptions options) {
  auto spawner = std::make_shared<os::Spawner>();
  return [options = std::move(options), spawner](const handler::JobSchema& schema)
             -> absl::StatusOr<std::unique_ptr<handler::Handler>> {
    if (options.argv.empty()) return absl::InvalidArgumentError("the command is empty");
    os::ProcessSpec program;
    program.argv = options.argv;
    program.env = EnvironmentFor(options);
    program.inherits_environment = options.inherits_environment;
    program.working_dir = options.working_dir;
    program.limits = options.limits;
    MUSTER_ASSIGN_OR_RETURN(program.path, os::FindProgram(options.argv[0], options.working_dir));
    MUSTER_RETURN_IF_ERROR(os::CheckScript(options.argv, options.working_dir));
    MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Watchdog> watchdog, Watchdog::Create(options.clock));
    return std::make_unique<CommandHandler>(schema, options, std::move(program), spawner,
                                            std::move(watchdog));
  };
}

}  // namespace muster::handler::command
