// SPDX-License-Identifier: Apache-2.0

// How a handler's program starts, dies, is held back, started anew and ended.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/handler/pool.h"
#include "tests/fakes/handler/command/command_fixture.h"

namespace muster::handler::command {
namespace {

using handler::ItemContext;
using handler::Outcome;
using handler::SampleItem;
using testing::AllOf;
using testing::Contains;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::StartsWith;

using Kind = Outcome::Kind;

class ProgramLifeTest : public CommandHandlerTest {
 protected:
  // Of a file that the program wrote.
  std::string ContentOf(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ / name).rdbuf();
    return text.str();
  }
};

// Every way in which a program ends, but for its handler's own end.
TEST_F(ProgramLifeTest, NotesWhyAnotherProgramHasToFollow) {
  std::vector<std::string> noted;
  options_.restarts = std::make_shared<handler::Restarts>();
  options_.restarts->Listen([&](handler::RestartReason reason) {
    noted.emplace_back(handler::RestartReasonName(reason));
  });
  const auto run = [&](const std::string& script) {
    noted.clear();
    handler_.reset();
    Program(script);
    Process();
    return noted;
  };
  EXPECT_THAT(run("read -r line; exit 3"), ElementsAre("ended"));
  EXPECT_THAT(run("read -r line; kill -SEGV $$"), ElementsAre("ended"));
  EXPECT_THAT(run("read -r line; exec >&-; sleep 1000"), ElementsAre("ended"));
  EXPECT_THAT(run("read -r line; echo hello"), ElementsAre("answer"));
  EXPECT_THAT(run("read -r line; echo '{'; echo '}'"), ElementsAre("answer"));
  EXPECT_THAT(run("exit 0"), ElementsAre("not_started"));
  EXPECT_THAT(run(absl::StrCat("while read -r line; do ", kAnswer, "; done")), IsEmpty());
  handler_.reset();
  EXPECT_THAT(noted, IsEmpty()) << "nothing follows it";
  // The second item finds that the program has ended, as it may.
  EXPECT_THAT(run(absl::StrCat("read -r line; ", kAnswer)), IsEmpty());
  Process();
  EXPECT_THAT(noted, ElementsAre("finished"));
}

TEST_F(ProgramLifeTest, NotesAProgramThatItsDeadlineOrAStopHasEnded) {
  UseFakeClock();
  std::vector<std::string> noted;
  options_.restarts = std::make_shared<handler::Restarts>();
  options_.restarts->Listen([&](handler::RestartReason reason) {
    noted.emplace_back(handler::RestartReasonName(reason));
  });
  Fifo life(folder_ / "life");
  Program("read -r line; sleep 1000 9>life");
  std::future<Outcome> outcome = ProcessBeside();
  life.AwaitOpened();
  AwaitAlarmIn(options_.deadline);
  clock_.Advance(options_.deadline);
  EXPECT_EQ(outcome.get().kind, Kind::kRetry);
  EXPECT_THAT(noted, ElementsAre("deadline"));
  life.AwaitClosed();
  outcome = ProcessBeside();
  life.AwaitOpened();
  stop_.request_stop();
  EXPECT_EQ(outcome.get().kind, Kind::kRelease);
  EXPECT_THAT(noted, ElementsAre("deadline", "stopped"));
}

// Worker threads come and go with the load, but the kernel would kill a program together with the
// thread that started it.
TEST_F(ProgramLifeTest, KeepsTheProgramWhenTheThreadThatStartedItEnds) {
  Program(absl::StrCat("while read -r line; do ", kAnswer, "; done"));
  std::thread([this] { Process(); }).join();
  const std::string program = rows_[0].first;
  std::thread([this] { Process(); }).join();
  EXPECT_THAT(rows_, ElementsAre(std::pair(program, "2")));
}

TEST_F(ProgramLifeTest, KeepsTheProgramWhenItsWorkerLeaves) {
  Program(absl::StrCat("while read -r line; do ", kAnswer, "; done"));
  const handler::HandlerFactory lend = handler::PooledHandlers(CommandHandlerFactory(options_));
  handler_ = *lend(schema_);
  Process();
  const std::string program = rows_[0].first;
  handler_ = nullptr;
  handler_ = *lend(schema_);
  Process();
  EXPECT_THAT(rows_, ElementsAre(std::pair(program, "2")));
}

TEST_F(ProgramLifeTest, RetriesTheItemOfAProgramThatExits) {
  Program("read -r line; echo boom >&2; exit 3");
  const Outcome outcome = Process();
  EXPECT_EQ(outcome.kind, Kind::kRetry);
  EXPECT_THAT(outcome.why, MatchesRegex("the handler's program exited with status 3, peak memory "
                                        "[0-9]+ MiB; stderr: boom"));
  EXPECT_THAT(log_.lines(), Contains(AllOf(HasSubstr("item=1/7"), HasSubstr("line=boom"))));
}

// The counts with which the log warns of a failure, and how many lines of stderr it has.
class ToldFailuresTest : public CommandHandlerTest {
 protected:
  ToldFailuresTest() {
    options_.health = std::make_shared<handler::HealthTroubles>();
    Program(absl::StrCat("read -r line; [ -e mended ] || { echo boom >&2; exit 3; }; ", kAnswer));
  }
  void Fail(int times) {
    for (int i = 0; i < times; ++i) ASSERT_EQ(Process().kind, Kind::kRetry);
  }
  std::vector<int> Told() const {
    std::vector<int> told;
    for (const std::string& line : log_.lines()) {
      const std::vector<std::string> parts = absl::StrSplit(line, "failures_in_a_row=");
      if (parts.size() == 2 && absl::StrContains(line, "level=warning")) {
        told.push_back(std::stoi(parts[1]));
      }
    }
    return told;
  }
  int LinesOfStderr() const {
    int found = 0;
    for (const std::string& line : log_.lines()) {
      if (absl::StrContains(line, "line=boom")) ++found;
    }
    return found;
  }
};

TEST_F(ToldFailuresTest, AreTheFirstAndThenThoseThatHaveDoubled) {
  Fail(13);
  EXPECT_THAT(Told(), ElementsAre(1, 2, 3, 6, 12));
  EXPECT_EQ(LinesOfStderr(), 5);
}

TEST_F(ToldFailuresTest, AreCountedAnewAfterAnAnswer) {
  Fail(5);
  std::ofstream(folder_ / "mended") << "";
  EXPECT_EQ(Process().kind, Kind::kOk);
  std::filesystem::remove(folder_ / "mended");
  Fail(1);
  EXPECT_THAT(Told(), ElementsAre(1, 2, 3, 1));
}

TEST_F(ToldFailuresTest, AreThoseOfAllProgramsOfAJob) {
  const handler::HandlerFactory factory = CommandHandlerFactory(options_);
  for (int i = 0; i < 6; ++i) {
    handler_ = *factory(schema_);
    Fail(1);
  }
  EXPECT_THAT(Told(), ElementsAre(1, 2, 3, 6));
}

// What has noted that trouble tells of it.
TEST_F(ToldFailuresTest, AreOnlyTheFirstWhileTheJobHasThemAsAnIssue) {
  options_.health->NoteFailing("its last 10 attempts gave no result");
  Fail(13);
  EXPECT_THAT(Told(), ElementsAre(1, 2, 3));
  EXPECT_EQ(LinesOfStderr(), 3);
  options_.health->EndFailing();
  Fail(1);
  EXPECT_THAT(Told(), ElementsAre(1, 2, 3, 14));
}

TEST_F(ProgramLifeTest, RetriesTheItemOfAProgramThatASignalKills) {
  Program("read -r line; printf 'no line feed' >&2; kill -SEGV $$");
  EXPECT_THAT(Process().why,
              AllOf(HasSubstr("was killed by signal 11"), HasSubstr("; stderr: no line feed")));
}

TEST_F(ProgramLifeTest, GivesUpTheItemOfASecondDeathWithWhatIsKnownOfIt) {
  options_.death_is_proof = true;
  Program("read -r line; echo one >&2; echo two >&2; kill -ABRT $$");
  const Outcome outcome = Process();
  EXPECT_EQ(outcome.kind, Kind::kDead);
  EXPECT_THAT(outcome.why, AllOf(HasSubstr("killed by signal 6 (Aborted), peak memory "),
                                 HasSubstr("stderr: one | two")));
}

TEST_F(ProgramLifeTest, RetriesWhatAProgramDidNotDieOfWhereDeathIsProof) {
  options_.death_is_proof = true;
  Program("while read -r line; do echo garbage; done");
  EXPECT_EQ(Process().kind, Kind::kRetry);
  handler_.reset();
  Program("read -r line; echo no memory >&2; exit 2");
  EXPECT_EQ(Process().kind, Kind::kRetry) << "it may fail for every item";
}

TEST_F(ProgramLifeTest, BoundsTheMemoryOfItsProgram) {
  options_.limits.memory_bytes = uint64_t{3} << 30;
  Program("read -r line; ulimit -d >&2; exit 1");
  EXPECT_THAT(Process().why, HasSubstr("stderr: 3145728"));
}

TEST_F(ProgramLifeTest, BoundsTheProcessesFilesAndCoresOfItsProgram) {
  options_.limits.file_bytes = 1 << 20;
  options_.limits.processes = 100;
  options_.limits.dumps_core = false;
  Program("read -r line; cat /proc/self/limits > limits; " + std::string(kAnswer));
  EXPECT_EQ(Process().kind, Kind::kOk);
  const std::string limits = ContentOf("limits");
  EXPECT_THAT(limits, ContainsRegex("Max file size +1048576 +1048576 "));
  EXPECT_THAT(limits, ContainsRegex("Max core file size +0 +0 "));
  EXPECT_THAT(limits, ContainsRegex("Max processes +[0-9]+ +[0-9]+ "));
}

TEST_F(ProgramLifeTest, EndsAProgramWhoseFileGrowsTooLarge) {
  options_.limits.file_bytes = 1 << 20;
  Program("read -r line; exec head -c 2000000 /dev/zero > large");
  EXPECT_THAT(Process().why, HasSubstr("File size limit exceeded"));
  EXPECT_EQ(std::filesystem::file_size(folder_ / "large"), 1u << 20);
}

TEST_F(ProgramLifeTest, StartsTheProgramAnewForTheNextItem) {
  Program("while read -r line; do if mkdir crashed 2>/dev/null; then exit 1; fi; " +
          std::string(kAnswer) + "; done");
  EXPECT_EQ(Process().kind, Kind::kRetry);
  EXPECT_EQ(Process().kind, Kind::kOk);
}

TEST_F(ProgramLifeTest, KillsAHangingProgramAndAllThatItStarted) {
  UseFakeClock();
  Fifo life(folder_ / "life");
  Program("read -r line; sleep 1000 9>life");
  std::future<Outcome> outcome = ProcessBeside();
  life.AwaitOpened();
  AwaitAlarmIn(options_.deadline);
  clock_.Advance(options_.deadline);
  EXPECT_THAT(outcome.get().why,
              AllOf(StartsWith("the handler's program gave no answer within 30s; "),
                    HasSubstr("flush=True")));
  life.AwaitClosed();
}

TEST_F(ProgramLifeTest, SaysThatAnAnswerHasBegunAndLacksItsLineFeed) {
  UseFakeClock();
  Fifo life(folder_ / "life");
  // More than the pipe holds: so some of it was read before the clock moves.
  Program("read -r line; printf '{'; head -c 200000 /dev/zero | tr '\\0' x; sleep 1000 9>life");
  std::future<Outcome> outcome = ProcessBeside();
  life.AwaitOpened();
  AwaitAlarmIn(options_.deadline);
  clock_.Advance(options_.deadline);
  EXPECT_THAT(outcome.get().why,
              AllOf(StartsWith("the handler's program gave no answer within 30s, but \"{xxx"),
                    HasSubstr("without a line feed behind it")));
}

TEST_F(ProgramLifeTest, KeepsTheItemsOwnDeadlineWhenItIsEarlier) {
  UseFakeClock();
  Program("read -r line; exec sleep 1000");
  handler();
  ItemContext context = Context();
  context.deadline = clock_.Now() + absl::Seconds(5);
  const SampleItem item({{"a"}}, context);
  std::future<Outcome> outcome = std::async(std::launch::async, [&] { return Process(item); });
  AwaitAlarmIn(absl::Seconds(5));
  clock_.Advance(absl::Seconds(5));
  EXPECT_THAT(outcome.get().why, StartsWith("the handler's program gave no answer within 5s;"));
}

TEST_F(ProgramLifeTest, StartsNothingForAnItemThatIsTooLate) {
  UseFakeClock();
  Program("touch started");
  ItemContext context = Context();
  context.deadline = clock_.Now();
  EXPECT_EQ(Process(SampleItem({{"a"}}, context)).kind, Kind::kRetry);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "started"));
}

TEST_F(ProgramLifeTest, NoticesTheEndOfAProgramWhoseChildrenHoldItsOutput) {
  Program("read -r line; sleep 1000 & exit 4");
  EXPECT_THAT(Process().why, StartsWith("the handler's program exited with status 4"));
}

TEST_F(ProgramLifeTest, HoldsRestartsBackLongerWithEachFailure) {
  UseFakeClock();
  options_.first_restart_delay = absl::Milliseconds(100);
  options_.max_restart_delay = absl::Milliseconds(500);
  Program("read -r line; exit 1");
  EXPECT_EQ(Process().kind, Kind::kRetry);
  for (const int delay_ms : {100, 200, 400, 500, 500}) {
    std::future<Outcome> outcome = ProcessBeside();
    AwaitAlarmIn(absl::Milliseconds(delay_ms));
    clock_.Advance(absl::Milliseconds(delay_ms));
    EXPECT_EQ(outcome.get().kind, Kind::kRetry);
  }
}

// An item of a broken program takes some nine starts to its verdict: they must not take minutes.
TEST_F(ProgramLifeTest, HoldsARestartBackForASecondAtMost) {
  UseFakeClock();
  options_.first_restart_delay = CommandOptions().first_restart_delay;
  ASSERT_LE(options_.max_restart_delay, absl::Seconds(1));
  Program("read -r line; exit 1");
  EXPECT_EQ(Process().kind, Kind::kRetry);
  for (const int delay_ms : {100, 200, 400, 800, 1000, 1000, 1000}) {
    std::future<Outcome> outcome = ProcessBeside();
    AwaitAlarmIn(absl::Milliseconds(delay_ms));
    clock_.Advance(absl::Milliseconds(delay_ms));
    EXPECT_EQ(outcome.get().kind, Kind::kRetry);
  }
}

TEST_F(ProgramLifeTest, HoldsRestartsBackFromTheStartAgainAfterAnAnswer) {
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

TEST_F(ProgramLifeTest, DefersTheItemWhenTheRestartIsBeyondItsDeadline) {
  UseFakeClock();
  options_.first_restart_delay = absl::Minutes(1);
  options_.max_restart_delay = absl::Minutes(1);
  Program("read -r line; exit 1");
  Process();
  clock_.Advance(absl::Seconds(1));  // tells the first item's alarm from the second's
  std::future<Outcome> second = ProcessBeside();
  AwaitAlarmIn(absl::Seconds(30));
  clock_.Advance(absl::Seconds(30));
  const Outcome outcome = second.get();
  EXPECT_EQ(outcome.kind, Kind::kDefer);
  EXPECT_EQ(outcome.delay, absl::Seconds(29));
  EXPECT_THAT(outcome.why, HasSubstr("exited with status 1"));
}

TEST_F(ProgramLifeTest, GivesAnItemItsWholeDeadlineAfterTheStartWasHeldBack) {
  UseFakeClock();
  options_.deadline = absl::Seconds(30);
  options_.first_restart_delay = options_.deadline;
  options_.max_restart_delay = options_.deadline;
  Fifo gate(folder_ / "gate");
  Program("read -r line; if mkdir crashed 2>/dev/null; then exit 1; fi; read -r go < gate; " +
          std::string(kAnswer));
  EXPECT_EQ(Process().kind, Kind::kRetry);
  std::future<Outcome> outcome = ProcessBeside();
  AwaitAlarmIn(options_.deadline);
  clock_.Advance(options_.deadline);
  AwaitAlarmIn(options_.deadline);  // for the answer now
  gate.LetGo();
  EXPECT_EQ(outcome.get().kind, Kind::kOk);
}

TEST_F(ProgramLifeTest, DefersAnItemWhoseOwnDeadlineTheHoldBackReaches) {
  UseFakeClock();
  options_.first_restart_delay = absl::Seconds(5);
  options_.max_restart_delay = absl::Seconds(5);
  Program("read -r line; exit 1");
  Process();
  ItemContext context = Context();
  context.deadline = clock_.Now() + absl::Seconds(5);
  const SampleItem item({{"a"}}, context);
  std::future<Outcome> outcome = std::async(std::launch::async, [&] { return Process(item); });
  AwaitAlarmIn(absl::Seconds(5));
  clock_.Advance(absl::Seconds(5));
  EXPECT_EQ(outcome.get().kind, Kind::kDefer);
}

TEST_F(ProgramLifeTest, KillsTheProgramAndReleasesTheItemWhenStopped) {
  Fifo life(folder_ / "life");
  Program("sleep 1000 9>life");
  std::future<Outcome> outcome = ProcessBeside();
  life.AwaitOpened();
  stop_.request_stop();
  EXPECT_EQ(outcome.get().kind, Kind::kRelease);
  life.AwaitClosed();
}

TEST_F(ProgramLifeTest, StopsWhileItWaitsToRestart) {
  UseFakeClock();
  options_.first_restart_delay = absl::Seconds(10);
  options_.max_restart_delay = absl::Seconds(10);
  Program("read -r line; exit 1");
  Process();
  std::future<Outcome> outcome = ProcessBeside();
  AwaitAlarmIn(absl::Seconds(10));
  stop_.request_stop();
  EXPECT_EQ(outcome.get().kind, Kind::kRelease);
}

TEST_F(ProgramLifeTest, StartsNothingWhenStoppedBefore) {
  Program("touch started");
  stop_.request_stop();
  EXPECT_EQ(Process().kind, Kind::kRelease);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "started"));
}

TEST_F(ProgramLifeTest, LetsTheProgramEndByItselfWhenTheHandlerGoes) {
  options_.exit_grace = absl::Hours(1);
  Program("while read -r line; do " + std::string(kAnswer) + "; done; touch ended");
  Process();
  handler_.reset();
  EXPECT_TRUE(std::filesystem::exists(folder_ / "ended"));
}

TEST_F(ProgramLifeTest, ReadsTheLastWordsOfAProgramThatEndsByItself) {
  options_.exit_grace = absl::Hours(1);
  Program("while read -r line; do " + std::string(kAnswer) +
          "; done; head -c 1000000 /dev/zero >&2; echo >&2; echo bye >&2; touch ended");
  Process();
  handler_.reset();
  EXPECT_TRUE(std::filesystem::exists(folder_ / "ended"));
  EXPECT_THAT(log_.lines(), Contains(HasSubstr("line=bye")));
}

TEST_F(ProgramLifeTest, LeavesNoSignalBehindWhenAPipeBreaks) {
  Program("exit 1");
  for (int i = 0; i < 5; ++i) Process({{std::string(1 << 20, 'x')}});
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
}

TEST_F(ProgramLifeTest, GivesTheProgramItsThreePipesAndNothingElse) {
  Program("read -r line; ls /proc/self/fd > fds; " + std::string(kAnswer));
  const int not_close_on_exec = fcntl(STDERR_FILENO, F_DUPFD, 100);
  EXPECT_EQ(Process().kind, Kind::kOk);
  close(not_close_on_exec);
  std::ifstream fds(folder_ / "fds");
  const std::vector<std::string> numbers(std::istream_iterator<std::string>(fds), {});
  EXPECT_THAT(numbers, ElementsAre("0", "1", "2", "3"));  // 3 is the folder that ls reads
}

// What this process was told, tokens and passwords included, is not for the programs of jobs.
TEST_F(ProgramLifeTest, GivesTheProgramItsOwnVariablesAndTheUsualOnesAlone) {
  setenv("MUSTER_TEST_TOKEN", "secret", 1);
  setenv("MUSTER_TEST_PASSED", "passed", 1);
  options_.env = {{"RATE", "0.19 = 19%"}, {"LANG", "xx"}};
  options_.passed_variables = {"MUSTER_TEST_PASSED", "MUSTER_TEST_UNSET"};
  Program("read -r line; env > env; " + std::string(kAnswer));
  EXPECT_EQ(Process().kind, Kind::kOk);
  unsetenv("MUSTER_TEST_TOKEN");
  unsetenv("MUSTER_TEST_PASSED");
  std::set<std::string> names;
  for (const absl::string_view line : absl::StrSplit(ContentOf("env"), '\n')) {
    names.emplace(line.substr(0, line.find('=')));
  }
  names.erase("");
  for (const char* of_shell : {"PWD", "OLDPWD", "SHLVL", "_"}) names.erase(of_shell);
  for (const char* optional : {"HOME", "LC_ALL", "LC_CTYPE", "TZ"}) names.erase(optional);
  EXPECT_THAT(names, ElementsAre("LANG", "MUSTER_TEST_PASSED", "PATH", "RATE", "TMPDIR"));
  EXPECT_THAT(ContentOf("env"), AllOf(HasSubstr("RATE=0.19 = 19%"), HasSubstr("LANG=xx"),
                                      HasSubstr("MUSTER_TEST_PASSED=passed")));
}

TEST_F(ProgramLifeTest, HandsItsWholeEnvironmentToAProgramOfItsOwn) {
  setenv("MUSTER_TEST_TOKEN", "secret", 1);
  options_.inherits_environment = true;
  Program("read -r line; echo \"$MUSTER_TEST_TOKEN\" > env; " + std::string(kAnswer));
  EXPECT_EQ(Process().kind, Kind::kOk);
  unsetenv("MUSTER_TEST_TOKEN");
  EXPECT_EQ(ContentOf("env"), "secret\n");
}

TEST_F(ProgramLifeTest, GivesEachProgramAFolderForTemporaryFilesAndRemovesItWithTheProgram) {
  Program("while read -r line; do touch \"$TMPDIR/left\"; echo \"$TMPDIR\" > where; " +
          std::string(kAnswer) + "; done");
  EXPECT_EQ(Process().kind, Kind::kOk);
  std::string folder = ContentOf("where");
  folder.pop_back();
  EXPECT_TRUE(std::filesystem::exists(folder + "/left"));
  EXPECT_NE(folder, folder_.path());
  handler_.reset();
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_F(ProgramLifeTest, TellsOfTroubleWhenItFailsAgainAndAgain) {
  options_.health = std::make_shared<handler::HealthTroubles>();
  Program("read -r line; echo 'no module bill' >&2; exit 3");
  EXPECT_EQ(Process().kind, Kind::kRetry);
  EXPECT_EQ(options_.health->why(), "") << "it may be the item's fault";
  EXPECT_EQ(Process().kind, Kind::kRetry);
  EXPECT_THAT(options_.health->why(),
              AllOf(HasSubstr("the handler's program"), HasSubstr("no module bill")));
  EXPECT_TRUE(handler::TakesItems(options_.health->why())) << "it reads them, and may do the next";
}

TEST_F(ProgramLifeTest, HasNoTroubleWhenAProgramOfAnyHandlerWorks) {
  options_.health = std::make_shared<handler::HealthTroubles>();
  options_.health->Note("another one's program fails");
  Program(absl::StrCat("read -r line; ", kAnswer));
  EXPECT_EQ(Process().kind, Kind::kOk);
  EXPECT_EQ(options_.health->why(), "");
}

}  // namespace
}  // namespace muster::handler::command
