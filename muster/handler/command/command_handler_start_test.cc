// SPDX-License-Identifier: Apache-2.0

// What no item can be blamed for: a program that cannot be started, takes no item, or has served
// enough of them.
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/handler/command/command_fixture.h"

namespace muster::handler::command {
namespace {

using handler::Outcome;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;

using Kind = Outcome::Kind;

// Blocks until the program has ended, and leaves it as a zombie for the handler's wait.
void AwaitEnd(pid_t program) {
  siginfo_t ignored;
  waitid(P_PID, static_cast<id_t>(program), &ignored, WEXITED | WNOWAIT);
}

class ProgramStartTest : public CommandHandlerTest {
 protected:
  ProgramStartTest() { options_.health = std::make_shared<handler::HealthTroubles>(); }

  // The item is given back, and people hear why at once.
  void ExpectNotCharged(const testing::Matcher<std::string>& why) {
    const Outcome outcome = Process();
    EXPECT_EQ(outcome.kind, Kind::kDefer) << outcome.why;
    EXPECT_THAT(outcome.why, why);
    EXPECT_THAT(options_.health->why(), why);
    EXPECT_FALSE(handler::TakesItems(options_.health->why()));
  }

  void Write(const std::string& name, const std::string& text) const {
    const std::string path = folder_ / name;
    std::ofstream(path) << text;
    chmod(path.c_str(), 0700);
  }
};

TEST_F(ProgramStartTest, ChargesNoItemForAScriptThatCannotBeExecutedAnyMore) {
  Write("script", absl::StrCat("#!/bin/sh\nread -r line; ", kAnswer));
  options_.argv = {"./script"};
  handler();
  Write("script", "#!/no/such/interpreter\n");
  ExpectNotCharged(HasSubstr("/no/such/interpreter, leads nowhere"));
  Write("script", "#!/bin/sh\r\nread -r line\r\n");
  ExpectNotCharged(HasSubstr("CR LF"));
  Write("script", "import sys\n");
  ExpectNotCharged(HasSubstr("#!/usr/bin/env python3"));
  Write("script", "");
  ExpectNotCharged(HasSubstr("is empty"));
  Write("script", absl::StrCat("#!/bin/sh\nread -r line; ", kAnswer));
  EXPECT_EQ(Process().kind, Kind::kOk);
}

TEST_F(ProgramStartTest, ChargesNoItemForAProgramThatEndsBeforeItReads) {
  Program("echo no module bill >&2; exit 3");
  ExpectNotCharged(
      MatchesRegex("the handler's program exited with status 3, peak memory [0-9]+ "
                   "MiB, before it read its item; stderr: no module bill"));
  Program("exit 0");
  handler_.reset();
  ExpectNotCharged(HasSubstr("exited with status 0"));
}

TEST_F(ProgramStartTest, ChargesNoItemThatDoesNotFitIntoThePipeOfAProgramThatDoesNotReadIt) {
  Program("exit 1");
  EXPECT_EQ(Process({{std::string(1 << 20, 'x')}}).kind, Kind::kDefer);
}

TEST_F(ProgramStartTest, ChargesAnItemOfWhichAProgramHasReadAByte) {
  Program("dd bs=1 count=1 status=none >&2; exit 3");
  const Outcome outcome = Process();
  EXPECT_EQ(outcome.kind, Kind::kRetry);
  EXPECT_THAT(outcome.why, HasSubstr("exited with status 3"));
}

TEST_F(ProgramStartTest, ChargesNoItemWhileTheFolderOfTheProgramIsAway) {
  options_.argv = {"sh", "bill.sh"};
  options_.working_dir = folder_ / "deployed";
  std::filesystem::create_directory(options_.working_dir);
  Write("deployed/bill.sh", absl::StrCat("read -r line; ", kAnswer));
  handler();
  std::filesystem::rename(options_.working_dir, folder_ / "away");
  ExpectNotCharged(HasSubstr("there is no folder "));
  std::filesystem::rename(folder_ / "away", options_.working_dir);
  EXPECT_EQ(Process().kind, Kind::kOk);
  EXPECT_EQ(options_.health->why(), "");
}

TEST_F(ProgramStartTest, ChargesNoItemWithoutAFolderForTemporaryFiles) {
  const char* const before = std::getenv("TMPDIR");
  const std::string old = before == nullptr ? "" : before;
  Program(absl::StrCat("read -r line; ", kAnswer));
  handler();
  setenv("TMPDIR", (folder_ / "gone").c_str(), 1);
  ExpectNotCharged(HasSubstr(folder_ / "gone"));
  std::filesystem::create_directory(folder_ / "gone");
  EXPECT_EQ(Process().kind, Kind::kOk);
  handler_.reset();
  before == nullptr ? unsetenv("TMPDIR") : setenv("TMPDIR", old.c_str(), 1);
}

TEST_F(ProgramStartTest, ChargesNoItemForAProgramThatHangsBeforeItReads) {
  UseFakeClock();
  options_.deadline = absl::Seconds(5);
  Program("exec sleep 1000");
  std::future<Outcome> outcome = ProcessBeside();
  AwaitAlarmIn(options_.start_patience);
  clock_.Advance(options_.start_patience);
  EXPECT_EQ(outcome.get().kind, Kind::kDefer);
  EXPECT_THAT(options_.health->why(), HasSubstr("did not read its item within 1m"));
}

TEST_F(ProgramStartTest, CountsASlowStartAsNoTimeOfTheItem) {
  UseFakeClock();
  options_.deadline = absl::Seconds(5);
  Fifo loaded(folder_ / "loaded");
  Fifo done(folder_ / "done");
  Program("read -r go < loaded; read -r line; read -r go < done; " + std::string(kAnswer));
  std::future<Outcome> outcome = ProcessBeside();
  AwaitAlarmIn(options_.start_patience);
  clock_.Advance(absl::Seconds(40));
  loaded.LetGo();
  AwaitAlarmIn(options_.deadline);
  clock_.Advance(absl::Seconds(4));
  done.LetGo();
  EXPECT_EQ(outcome.get().kind, Kind::kOk);
}

TEST_F(ProgramStartTest, WaitsLongerWithEachStartInVain) {
  UseFakeClock();
  options_.first_restart_delay = absl::Seconds(1);
  Program("exit 1");
  EXPECT_EQ(Process().delay, absl::ZeroDuration()) << "others may have it meanwhile";
  for (const int seconds : {1, 2, 4, 8, 10, 10}) {
    std::future<Outcome> outcome = ProcessBeside();
    AwaitAlarmIn(absl::Seconds(seconds));
    clock_.Advance(absl::Seconds(seconds));
    EXPECT_EQ(outcome.get().kind, Kind::kDefer);
  }
}

TEST_F(ProgramStartTest, SaysSoWhenNoProgramHasEverStarted) {
  UseFakeClock();
  std::vector<absl::Status> said;
  options_.on_never_started = [&](const absl::Status& why) { said.push_back(why); };
  Program("if test -e mended; then read -r line; " + std::string(kAnswer) +
          "; fi; echo not yet >&2; exit 1");
  Process();
  clock_.Advance(options_.program_patience - absl::Milliseconds(1));
  Process();
  EXPECT_THAT(said, IsEmpty()) << "it may be there in a moment";
  clock_.Advance(absl::Milliseconds(1));
  Process();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(std::string(said[0].message()), HasSubstr("not yet"));

  Write("mended", "");
  EXPECT_EQ(Process().kind, Kind::kOk);
  std::filesystem::remove(folder_ / "mended");
  clock_.Advance(options_.program_patience * 2);
  Process();
  clock_.Advance(options_.program_patience * 2);
  Process();
  EXPECT_EQ(said.size(), 1u) << "what has worked may come back";
}

// Many programs end after an answer, or after so many of them, against leaks of their own.
TEST_F(ProgramStartTest, ChargesNothingForAProgramThatEndsAfterEachAnswer) {
  Program("read -r line; " + std::string(kAnswer));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Process().kind, Kind::kOk);
    AwaitEnd(std::stoi(rows_[0].first));
  }
  EXPECT_EQ(options_.health->why(), "");
}

TEST_F(ProgramStartTest, ChargesNothingForAProgramThatEndsWhileItsNextItemIsOnTheWay) {
  Fifo asked(folder_ / "asked");
  // The parent waits until the item is in the pipe, whose other end it still holds.
  Program("read -r line; " + std::string(kAnswer) + "; read -r go < asked; exit 0");
  EXPECT_EQ(Process().kind, Kind::kOk);
  const std::string first = rows_[0].first;
  std::future<Outcome> second = ProcessBeside();
  asked.LetGo();
  EXPECT_EQ(second.get().kind, Kind::kOk);
  EXPECT_NE(rows_[0].first, first);
  asked.LetGo();
  EXPECT_EQ(options_.health->why(), "");
}

TEST_F(ProgramStartTest, ChargesNothingForAProgramThatReadsOneItemTooManyAndEndsWell) {
  Program("read -r line; " + std::string(kAnswer) + "; read -r line; exit 0");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Process().kind, Kind::kOk);
  EXPECT_EQ(options_.health->why(), "");
}

TEST_F(ProgramStartTest, ChargesAnItemThatANewProgramReadsAndDoesNotAnswer) {
  Program("read -r line; exit 0");
  EXPECT_EQ(Process().kind, Kind::kRetry) << "else it would come for ever";
}

TEST_F(ProgramStartTest, StartsAnewForItsItemAProgramThatDiedBeforeItReadIt) {
  Fifo asked(folder_ / "asked");
  Program("read -r line; " + std::string(kAnswer) + "; read -r go < asked; kill -KILL $$");
  EXPECT_EQ(Process().kind, Kind::kOk);
  std::future<Outcome> second = ProcessBeside();
  asked.LetGo();
  EXPECT_EQ(second.get().kind, Kind::kOk);
  asked.LetGo();
}

}  // namespace
}  // namespace muster::handler::command
