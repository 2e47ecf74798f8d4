#include "muster/handler_command/command_handler.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/fake_clock.h"
#include "muster/base/log_capture.h"
#include "muster/handler/sample_item.h"
#include "muster/handler_command/file_descriptor.h"

namespace muster::handler_command {
namespace {

using handler::Handler;
using handler::ItemContext;
using handler::JobSchema;
using handler::MeasureSchema;
using handler::Outcome;
using handler::Results;
using handler::SampleItem;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

using Kind = Outcome::Kind;

// Shell: the answer that counts everything; its row tells which program it was, and its nth item.
constexpr char kAnswer[] =
    R"(n=$((n+1)); echo '{"item":"1/7","outcome":"ok","groups":{"g":[{"k":"'$$'","m":'$n'}]}}')";

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "command-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  std::string File(const std::string& name) const { return path_ / name; }
  std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// A named pipe that a program holds open while it lives.
class Fifo {
 public:
  explicit Fifo(std::string path) : path_(std::move(path)) { mkfifo(path_.c_str(), 0600); }
  // Blocks until a program has opened it for writing.
  void AwaitOpened() { fd_ = FileDescriptor(open(path_.c_str(), O_RDONLY | O_CLOEXEC)); }
  // Blocks until every process that had it open has closed it or is dead.
  void AwaitClosed() {
    std::array<char, 64> ignored;
    while (read(fd_.get(), ignored.data(), ignored.size()) > 0) {
    }
    fd_.Close();
  }
  // Blocks until a program reads it.
  void LetGo() { std::ofstream(path_) << "go\n"; }

 private:
  const std::string path_;
  FileDescriptor fd_;
};

// Blocks until the program has ended; leaves it to be waited for.
void AwaitEnd(pid_t program) {
  siginfo_t ignored;
  waitid(P_PID, static_cast<id_t>(program), &ignored, WEXITED | WNOWAIT);
}

class CommandHandlerTest : public testing::Test {
 protected:
  CommandHandlerTest() {
    options_.working_dir = folder_.path();
    options_.first_restart_delay = absl::ZeroDuration();
  }

  void Program(const std::string& script) { options_.argv = {"sh", "-c", script}; }
  void UseFakeClock() { options_.clock = &clock_; }

  Handler& handler() {
    if (handler_ == nullptr) handler_ = *CommandHandlerFactory(options_)(schema_);
    return *handler_;
  }

  ItemContext Context() const {
    ItemContext context;
    context.batch = 1;
    context.index = 7;
    context.stop_token = stop_.get_token();
    return context;
  }

  Outcome Process(std::vector<std::vector<std::string>> rows = {{"a"}, {"b"}}) {
    return Process(SampleItem(std::move(rows), Context()));
  }
  Outcome Process(const SampleItem& item) {
    Results results(&schema_, item.size());
    Outcome outcome = handler().Process(item.get(), results);
    counted_ = results.counted();
    rows_.clear();
    for (const auto& partial : results.TakePartials()) {
      for (const auto& row : partial.rows) {
        rows_.emplace_back(row.keys[0], row.measures[0].ToString());
      }
    }
    return outcome;
  }

  // Process beside the test; the handler is made before.
  std::future<Outcome> ProcessBeside() {
    handler();
    return std::async(std::launch::async, [this] { return Process(); });
  }

  // Until the handler sleeps towards exactly this time from now.
  void AwaitAlarmIn(absl::Duration delay) {
    while (clock_.NextDeadline() != clock_.Monotonic() + delay) std::this_thread::yield();
  }

  const TempFolder folder_;
  base::LogCapture log_;
  base::FakeClock clock_;
  std::stop_source stop_;
  const JobSchema schema_{
      "job", "r1", {"c"}, {{"g", {"k"}, {{"m", MeasureSchema::Type::kInt, 0}}}}};
  CommandOptions options_;
  std::unique_ptr<Handler> handler_;
  int64_t counted_ = 0;
  std::vector<std::pair<std::string, std::string>> rows_;
};

TEST_F(CommandHandlerTest, CountsWhatTheProgramAnswers) {
  Program(absl::StrCat("while read -r line; do ", kAnswer, "; done"));
  EXPECT_EQ(Process().kind, Kind::kOk);
  EXPECT_EQ(counted_, 2);
  ASSERT_THAT(rows_, SizeIs(1));
  EXPECT_EQ(rows_[0].second, "1");
}

TEST_F(CommandHandlerTest, KeepsTheProgramFromItemToItem) {
  Program(absl::StrCat("while read -r line; do ", kAnswer, "; done"));
  Process();
  const std::string program = rows_[0].first;
  Process();
  EXPECT_THAT(rows_, ElementsAre(std::pair(program, "2")));
}

// Workers come and go with the load; the kernel would kill a program with the thread it began in.
TEST_F(CommandHandlerTest, KeepsTheProgramWhenTheThreadThatStartedItEnds) {
  Program(absl::StrCat("while read -r line; do ", kAnswer, "; done"));
  std::thread([this] { Process(); }).join();
  const std::string program = rows_[0].first;
  std::thread([this] { Process(); }).join();
  EXPECT_THAT(rows_, ElementsAre(std::pair(program, "2")));
}

TEST_F(CommandHandlerTest, SendsTheItem) {
  Program("read -r line; echo \"$line\" > sent; " + std::string(kAnswer));
  Process({{"x y"}});
  std::ifstream sent(folder_.File("sent"));
  std::string line;
  std::getline(sent, line);
  EXPECT_THAT(line, AllOf(HasSubstr(R"("muster":1,"job":"job","item":"1/7","attempt":1)"),
                          HasSubstr(R"("transactions":[{"line":2,"fields":["x y"]}]})")));
}

TEST_F(CommandHandlerTest, RetriesTheItemOfAProgramThatExits) {
  Program("read -r line; echo boom >&2; exit 3");
  const Outcome outcome = Process();
  EXPECT_EQ(outcome.kind, Kind::kRetry);
  EXPECT_EQ(outcome.why, "the handler's program exited with status 3; stderr: boom");
  EXPECT_THAT(log_.lines(), Contains(AllOf(HasSubstr("item=1/7"), HasSubstr("line=boom"))));
}

TEST_F(CommandHandlerTest, RetriesTheItemOfAProgramThatASignalKills) {
  Program("read -r line; printf 'no line feed' >&2; kill -SEGV $$");
  EXPECT_THAT(Process().why,
              AllOf(HasSubstr("was killed by signal 11"), HasSubstr("; stderr: no line feed")));
}

TEST_F(CommandHandlerTest, RetriesTheItemOfAProgramThatReadsNothing) {
  Program("exit 1");
  EXPECT_EQ(Process({{std::string(1 << 20, 'x')}}).why,
            "the handler's program exited with status 1");
}

TEST_F(CommandHandlerTest, StartsTheProgramAnewForTheNextItem) {
  Program("if mkdir crashed 2>/dev/null; then exit 1; fi; while read -r line; do " +
          std::string(kAnswer) + "; done");
  EXPECT_EQ(Process().kind, Kind::kRetry);
  EXPECT_EQ(Process().kind, Kind::kOk);
}

TEST_F(CommandHandlerTest, StartsAProgramAnewThatEndedBetweenItems) {
  Program("read -r line; " + std::string(kAnswer));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Process().kind, Kind::kOk);
    AwaitEnd(std::stoi(rows_[0].first));
  }
}

TEST_F(CommandHandlerTest, KillsAHangingProgramAndAllThatItStarted) {
  UseFakeClock();
  Fifo life(folder_.File("life"));
  Program("sleep 1000 9>life");
  std::future<Outcome> outcome = ProcessBeside();
  life.AwaitOpened();
  AwaitAlarmIn(options_.deadline);
  clock_.Advance(options_.deadline);
  EXPECT_EQ(outcome.get().why, "the handler's program gave no answer within 30s");
  life.AwaitClosed();
}

TEST_F(CommandHandlerTest, KeepsTheItemsOwnDeadlineWhenItIsEarlier) {
  UseFakeClock();
  Program("exec sleep 1000");
  handler();
  ItemContext context = Context();
  context.deadline = clock_.Now() + absl::Seconds(5);
  const SampleItem item({{"a"}}, context);
  std::future<Outcome> outcome = std::async(std::launch::async, [&] { return Process(item); });
  AwaitAlarmIn(absl::Seconds(5));
  clock_.Advance(absl::Seconds(5));
  EXPECT_EQ(outcome.get().why, "the handler's program gave no answer within 5s");
}

TEST_F(CommandHandlerTest, StartsNothingForAnItemThatIsTooLate) {
  UseFakeClock();
  Program("touch started");
  ItemContext context = Context();
  context.deadline = clock_.Now();
  EXPECT_EQ(Process(SampleItem({{"a"}}, context)).kind, Kind::kRetry);
  EXPECT_FALSE(std::filesystem::exists(folder_.File("started")));
}

TEST_F(CommandHandlerTest, RefusesGarbage) {
  Program("while read -r line; do echo hello; done");
  EXPECT_EQ(Process().why,
            "the handler's program gave an answer that is refused: not JSON in UTF-8");
}

TEST_F(CommandHandlerTest, RefusesMoreThanOneLine) {
  Program(R"(read -r line; printf '{"item":"1/7","outcome":"ok"}\n{}\n'; sleep 1000)");
  EXPECT_THAT(Process().why, HasSubstr("wrote more than one line"));
}

TEST_F(CommandHandlerTest, RefusesAnAnswerBeforeTheItemWasRead) {
  Program(R"(echo '{"item":"1/7","outcome":"ok"}'; sleep 1000)");
  EXPECT_THAT(Process({{std::string(1 << 20, 'x')}}).why, HasSubstr("before it had read its item"));
}

TEST_F(CommandHandlerTest, RefusesAnAnswerThatIsTooLong) {
  options_.max_answer_bytes = 1000;
  Program("read -r line; head -c 100000 /dev/zero; sleep 1000");
  EXPECT_EQ(Process().why, "the handler's program wrote an answer of more than 1000 bytes");
}

TEST_F(CommandHandlerTest, RetriesWhenTheProgramClosesItsOutput) {
  options_.exit_grace = absl::ZeroDuration();
  Program("read -r line; exec 1>&-; sleep 1000");
  EXPECT_EQ(Process().why, "the handler's program closed its stdin or stdout");
}

TEST_F(CommandHandlerTest, RetriesWhenTheProgramClosesItsInput) {
  options_.exit_grace = absl::ZeroDuration();
  Program("exec 0<&-; sleep 1000");
  EXPECT_EQ(Process({{std::string(1 << 20, 'x')}}).why,
            "the handler's program closed its stdin or stdout");
}

TEST_F(CommandHandlerTest, NoticesTheEndOfAProgramWhoseChildrenHoldItsOutput) {
  Program("read -r line; sleep 1000 & exit 4");
  EXPECT_EQ(Process().why, "the handler's program exited with status 4");
}

TEST_F(CommandHandlerTest, JoinsAnAnswerThatComesInPieces) {
  Program(
      R"(read -r line; printf '{"item":"1/7",'; read -r go < gate; printf '"outcome":"ok"}\n')");
  Fifo gate(folder_.File("gate"));
  std::future<Outcome> outcome = ProcessBeside();
  gate.LetGo();
  EXPECT_EQ(outcome.get().kind, Kind::kOk);
}

TEST_F(CommandHandlerTest, RetriesAnAnswerThatBreaksOff) {
  Program(R"(read -r line; printf '{"item":"1/7",')");
  EXPECT_EQ(Process().why, "the handler's program exited with status 0");
}

TEST_F(CommandHandlerTest, WaitsForAProgramThatIsSlowToStart) {
  Program("read -r go < gate; read -r line; " + std::string(kAnswer));
  Fifo gate(folder_.File("gate"));
  std::future<Outcome> outcome = ProcessBeside();
  gate.LetGo();
  EXPECT_EQ(outcome.get().kind, Kind::kOk);
}

TEST_F(CommandHandlerTest, GoesOnWithAProgramThatWritesALotBeforeItReads) {
  Program("head -c 1000000 /dev/zero >&2; read -r line; " + std::string(kAnswer));
  EXPECT_EQ(Process({{std::string(1 << 20, 'x')}}).kind, Kind::kOk);
}

TEST_F(CommandHandlerTest, BoundsWhatAFloodOnStderrCosts) {
  Program("read -r line; yes flood | head -n 100000 >&2; " + std::string(kAnswer));
  EXPECT_EQ(Process().kind, Kind::kOk);
  EXPECT_THAT(log_.lines(), Contains(HasSubstr("line=flood")));
  EXPECT_LT(log_.lines().size(), 1000u);
}

TEST_F(CommandHandlerTest, HoldsRestartsBackLongerWithEachFailure) {
  UseFakeClock();
  options_.first_restart_delay = absl::Milliseconds(100);
  options_.max_restart_delay = absl::Milliseconds(500);
  Program("exit 1");
  EXPECT_EQ(Process().kind, Kind::kRetry);
  for (const int delay_ms : {100, 200, 400, 500, 500}) {
    std::future<Outcome> outcome = ProcessBeside();
    AwaitAlarmIn(absl::Milliseconds(delay_ms));
    clock_.Advance(absl::Milliseconds(delay_ms));
    EXPECT_EQ(outcome.get().kind, Kind::kRetry);
  }
}

TEST_F(CommandHandlerTest, HoldsRestartsBackFromTheStartAgainAfterAnAnswer) {
  UseFakeClock();
  options_.first_restart_delay = absl::Milliseconds(100);
  Program("read -r line; if mkdir crashed 2>/dev/null; then exit 1; fi; " + std::string(kAnswer) +
          "; read -r line; exit 1");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Process().kind, Kind::kRetry);
    std::future<Outcome> outcome = ProcessBeside();
    AwaitAlarmIn(absl::Milliseconds(100));
    clock_.Advance(absl::Milliseconds(100));
    EXPECT_EQ(outcome.get().kind, Kind::kOk);
  }
}

TEST_F(CommandHandlerTest, DefersTheItemWhenTheRestartIsBeyondItsDeadline) {
  UseFakeClock();
  options_.first_restart_delay = absl::Minutes(1);
  options_.max_restart_delay = absl::Minutes(1);
  Program("exit 1");
  Process();
  std::future<Outcome> second = ProcessBeside();
  AwaitAlarmIn(absl::Seconds(30));
  clock_.Advance(absl::Seconds(30));
  const Outcome outcome = second.get();
  EXPECT_EQ(outcome.kind, Kind::kDefer);
  EXPECT_EQ(outcome.delay, absl::Seconds(30));
  EXPECT_THAT(outcome.why, HasSubstr("exited with status 1"));
}

TEST_F(CommandHandlerTest, KillsTheProgramAndReleasesTheItemWhenStopped) {
  Fifo life(folder_.File("life"));
  Program("sleep 1000 9>life");
  std::future<Outcome> outcome = ProcessBeside();
  life.AwaitOpened();
  stop_.request_stop();
  EXPECT_EQ(outcome.get().kind, Kind::kRelease);
  life.AwaitClosed();
}

TEST_F(CommandHandlerTest, StopsWhileItWaitsToRestart) {
  UseFakeClock();
  options_.first_restart_delay = absl::Seconds(10);
  Program("exit 1");
  Process();
  std::future<Outcome> outcome = ProcessBeside();
  AwaitAlarmIn(absl::Seconds(10));
  stop_.request_stop();
  EXPECT_EQ(outcome.get().kind, Kind::kRelease);
}

TEST_F(CommandHandlerTest, StartsNothingWhenStoppedBefore) {
  Program("touch started");
  stop_.request_stop();
  EXPECT_EQ(Process().kind, Kind::kRelease);
  EXPECT_FALSE(std::filesystem::exists(folder_.File("started")));
}

TEST_F(CommandHandlerTest, LetsTheProgramEndByItselfWhenTheHandlerGoes) {
  options_.exit_grace = absl::Hours(1);
  Program("while read -r line; do " + std::string(kAnswer) + "; done; touch ended");
  Process();
  handler_.reset();
  EXPECT_TRUE(std::filesystem::exists(folder_.File("ended")));
}

TEST_F(CommandHandlerTest, LeavesNoSignalBehindWhenAPipeBreaks) {
  Program("exit 1");
  for (int i = 0; i < 5; ++i) Process({{std::string(1 << 20, 'x')}});
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
}

TEST_F(CommandHandlerTest, GivesTheProgramItsThreePipesAndNothingElse) {
  Program("read -r line; ls /proc/self/fd > fds; " + std::string(kAnswer));
  const int not_close_on_exec = fcntl(STDERR_FILENO, F_DUPFD, 100);
  EXPECT_EQ(Process().kind, Kind::kOk);
  close(not_close_on_exec);
  std::ifstream fds(folder_.File("fds"));
  const std::vector<std::string> numbers(std::istream_iterator<std::string>(fds), {});
  EXPECT_THAT(numbers, ElementsAre("0", "1", "2", "3"));  // 3 is the folder that ls reads
}

TEST_F(CommandHandlerTest, SetsVariablesOnTopOfItsOwnEnvironment) {
  options_.env = {{"RATE", "0.19 = 19%"}, {"LANG", "xx"}};
  Program("read -r line; echo \"$RATE|$LANG|${PATH:+set}\" > env; " + std::string(kAnswer));
  EXPECT_EQ(Process().kind, Kind::kOk);
  std::ifstream env(folder_.File("env"));
  std::string line;
  std::getline(env, line);
  EXPECT_EQ(line, "0.19 = 19%|xx|set");
}

TEST_F(CommandHandlerTest, RunsOneProgramPerHandler) {
  Program(absl::StrCat("while read -r line; do ", kAnswer, "; done"));
  const handler::HandlerFactory factory = CommandHandlerFactory(options_);
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&] {
      const std::unique_ptr<Handler> mine = *factory(schema_);
      const SampleItem item({{"a"}}, Context());
      for (int n = 1; n <= 20; ++n) {
        Results results(&schema_, item.size());
        EXPECT_EQ(mine->Process(item.get(), results).kind, Kind::kOk);
        EXPECT_EQ(results.TakePartials()[0].rows[0].measures[0], base::Decimal::FromInt(n));
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
}

TEST_F(CommandHandlerTest, ReportsAMissingProgramBeforeAnythingStarts) {
  options_.argv = {"no-such-program"};
  EXPECT_EQ(CommandHandlerFactory(options_)(schema_).status().message(),
            "no program 'no-such-program' in PATH");
  options_.argv = {"./missing"};
  EXPECT_EQ(CommandHandlerFactory(options_)(schema_).status().code(), absl::StatusCode::kNotFound);
  options_.argv = {};
  EXPECT_EQ(CommandHandlerFactory(options_)(schema_).status().message(), "the command is empty");
}

TEST_F(CommandHandlerTest, ReportsAProgramThatIsNotExecutable) {
  std::ofstream(folder_.File("bill.py")) << "print()\n";
  options_.argv = {"./bill.py"};
  const absl::Status status = CommandHandlerFactory(options_)(schema_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(status.message(), HasSubstr("bill.py is not executable"));
}

TEST_F(CommandHandlerTest, RetriesWhenTheProgramCannotBeStarted) {
  const std::string path = folder_.File("script");
  std::ofstream(path) << "#!/no/such/interpreter\n";
  chmod(path.c_str(), 0700);
  options_.argv = {"./script"};
  const Outcome outcome = Process();
  EXPECT_EQ(outcome.kind, Kind::kRetry);
  EXPECT_THAT(outcome.why, HasSubstr("cannot start"));
}

}  // namespace
}  // namespace muster::handler_command
