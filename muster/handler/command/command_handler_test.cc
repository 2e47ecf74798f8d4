// SPDX-License-Identifier: Apache-2.0

// The requests that a program gets, and the outcomes of its answers.
#include "muster/handler/command/command_handler.h"

#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/find_program.h"
#include "tests/fakes/handler/command/command_fixture.h"

namespace muster::handler::command {
namespace {

using handler::Handler;
using handler::Outcome;
using handler::Results;
using handler::SampleItem;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

using Kind = Outcome::Kind;

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

TEST_F(CommandHandlerTest, SendsTheItem) {
  Program("read -r line; echo \"$line\" > sent; " + std::string(kAnswer));
  Process({{"x y"}});
  std::ifstream sent(folder_ / "sent");
  std::string line;
  std::getline(sent, line);
  EXPECT_THAT(line, AllOf(HasSubstr(R"("muster":1,"job":"job","item":"1/7","attempt":1)"),
                          HasSubstr(R"("transactions":[{"line":2,"fields":["x y"]}]})")));
}

TEST_F(CommandHandlerTest, KeepsAProgramWhoseAnswerHasAValueThatDoesNotFit) {
  Program(R"(n=0; while read -r line; do n=$((n+1)); [ $n = 1 ] && m=NaN || m=$n;
    echo "{\"item\":\"1/7\",\"outcome\":\"ok\",\"groups\":{\"g\":[{\"k\":\"$$\",\"m\":\"$m\"}]}}"; done)");
  const Outcome outcome = Process();
  EXPECT_EQ(outcome.kind, Outcome::Kind::kUnfit) << outcome.why;
  EXPECT_EQ(outcome.why, "groups.g[0]: m: 'NaN' is not a decimal number");
  Process();
  EXPECT_THAT(rows_, ElementsAre(::testing::Pair(::testing::_, "2"))) << "the same program";
}

TEST_F(CommandHandlerTest, RefusesGarbage) {
  Program("while read -r line; do echo '{hello'; done");
  EXPECT_EQ(Process().why,
            "the handler's program gave an answer that is refused: not JSON in UTF-8: byte 2, at "
            "`hello` behind `{`");
}

constexpr char kPrinted[] =
    "the handler's program printed \"hello\" to stdout, where only its answers may go; print to "
    "stderr instead";

TEST_F(CommandHandlerTest, SaysWhichLineWasPrintedInsteadOfAnAnswer) {
  Program("while read -r line; do echo hello; done");
  EXPECT_EQ(Process().why, kPrinted);
}

TEST_F(CommandHandlerTest, SaysWhichLineWasPrintedBesideAnAnswer) {
  Program("while read -r line; do printf 'hello\\n{}\\n'; done");
  EXPECT_EQ(Process().why, kPrinted);
}

TEST_F(CommandHandlerTest, RefusesMoreThanOneLine) {
  Program(R"(read -r line; printf '{"item":"1/7","outcome":"ok"}\n{}\n'; sleep 1000)");
  EXPECT_THAT(Process().why, HasSubstr("wrote more than one line: \"{}\" came behind its answer"));
}

TEST_F(CommandHandlerTest, PassesOverBlankLinesAroundAnswers) {
  Program("echo; while read -r line; do printf '\\n \\r\\n'; " + std::string(kAnswer) +
          "; echo; echo; done");
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(Process().kind, Kind::kOk);
    EXPECT_EQ(rows_[0].second, absl::StrCat(i)) << "the program is kept";
  }
}

TEST_F(CommandHandlerTest, PassesOverAByteOrderMark) {
  Program("read -r line; printf '\\357\\273\\277'; " + std::string(kAnswer));
  EXPECT_EQ(Process().kind, Kind::kOk);
}

TEST_F(CommandHandlerTest, SaysThatAnAnswerIsOneLine) {
  Program(R"(while read -r line; do printf '{\n "item": "1/7",\n "outcome": "ok"\n}\n'; done)");
  EXPECT_THAT(Process().why, HasSubstr("an answer is one line"));
  Program(R"(while read -r line; do printf '{\n'; done)");
  handler_.reset();
  EXPECT_THAT(Process().why, HasSubstr("an answer is one line"));
}

TEST_F(CommandHandlerTest, SaysWhatAProgramWroteBetweenTwoItems) {
  Fifo gate(folder_ / "gate");
  Fifo said(folder_ / "said");
  Program("read -r line; " + std::string(kAnswer) +
          "; read -r go < gate; echo done; exec 9>said; read -r line");
  EXPECT_EQ(Process().kind, Kind::kOk);
  gate.LetGo();
  said.AwaitOpened();
  options_.first_restart_delay = absl::ZeroDuration();
  // The next one waits at the gate: what it would write right behind its answer may be read with
  // it.
  EXPECT_EQ(Process().kind, Kind::kOk);
  gate.LetGo();
  EXPECT_THAT(log_.lines(), Contains(HasSubstr("wrote \\\"done\\\" between two items")));
}

TEST_F(CommandHandlerTest, RefusesAnAnswerBeforeTheItemWasRead) {
  Program(R"(echo '{"item":"1/7","outcome":"ok"}'; sleep 1000)");
  EXPECT_THAT(Process({{std::string(1 << 20, 'x')}}).why, HasSubstr("before it read its item"));
  Program(R"(dd bs=1 count=1 status=none >&2; echo '{"item":"1/7","outcome":"ok"}'; sleep 1000)");
  handler_.reset();
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
  Program("dd bs=1 count=1 status=none >&2; exec 0<&-; sleep 1000");
  EXPECT_THAT(Process({{std::string(1 << 20, 'x')}}).why,
              StartsWith("the handler's program closed its stdin or stdout"));
}

TEST_F(CommandHandlerTest, SaysThatAProgramHasClosedItsOutputBetweenTwoItems) {
  options_.exit_grace = absl::ZeroDuration();
  Fifo closed(folder_ / "closed");
  Program("read -r line; " + std::string(kAnswer) + "; exec >&-; exec 9>closed; read -r line");
  EXPECT_EQ(Process().kind, Kind::kOk);
  closed.AwaitOpened();
  EXPECT_EQ(Process().kind, Kind::kOk);
  EXPECT_THAT(log_.lines(), Contains(AllOf(HasSubstr("program closed its stdout"),
                                           HasSubstr("between two items"))));
}

// sys.stdout.write(json.dumps(answer)).
TEST_F(CommandHandlerTest, SaysThatTheLineFeedBehindAnAnswerIsMissing) {
  Program(R"(read -r line; printf '{"item":"1/7","outcome":"ok"}')");
  EXPECT_THAT(Process().why,
              AllOf(StartsWith("the handler's program exited with status 0"),
                    HasSubstr(R"(; it wrote "{"item":"1/7","outcome":"ok"}" without)"),
                    HasSubstr("a line feed behind it, with which an answer ends")));
}

TEST_F(CommandHandlerTest, JoinsAnAnswerThatComesInPieces) {
  Program(
      R"(read -r line; printf '{"item":"1/7",'; read -r go < gate; printf '"outcome":"ok"}\n')");
  Fifo gate(folder_ / "gate");
  std::future<Outcome> outcome = ProcessBeside();
  gate.LetGo();
  EXPECT_EQ(outcome.get().kind, Kind::kOk);
}

TEST_F(CommandHandlerTest, RetriesAnAnswerThatBreaksOff) {
  Program(R"(read -r line; printf '{"item":"1/7",')");
  EXPECT_THAT(Process().why, StartsWith("the handler's program exited with status 0"));
}

TEST_F(CommandHandlerTest, WaitsForAProgramThatIsSlowToStart) {
  Program("read -r go < gate; read -r line; " + std::string(kAnswer));
  Fifo gate(folder_ / "gate");
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
  std::ofstream(folder_ / "bill.py") << "print()\n";
  options_.argv = {"./bill.py"};
  const absl::Status status = CommandHandlerFactory(options_)(schema_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(status.message(), HasSubstr("bill.py is not executable"));
}

TEST_F(CommandHandlerTest, ReportsAMissingScriptBeforeAnythingStarts) {
  const auto made = [&](std::vector<std::string> argv) {
    options_.argv = std::move(argv);
    return CommandHandlerFactory(options_)(schema_).status();
  };
  for (const char* script : {"missing.sh", "./missing", "/nowhere/bill.py", "sub/bill.py"}) {
    const absl::Status refused = made({"sh", script, "more"});
    EXPECT_EQ(refused.code(), absl::StatusCode::kNotFound) << script;
    EXPECT_THAT(refused.message(), AllOf(HasSubstr("no script /"), HasSubstr("for sh")));
  }
  std::ofstream(folder_ / "there.sh") << "true\n";
  for (const char* fine : {"there.sh", "./there.sh", "-c", "subcommand"}) {
    EXPECT_EQ(made({"sh", fine, "missing.csv"}), absl::OkStatus()) << fine;
  }
  EXPECT_EQ(made({"sh"}), absl::OkStatus());
  EXPECT_EQ(made({"cat", "missing.csv"}), absl::OkStatus()) << "no interpreter";
}

TEST_F(CommandHandlerTest, KnowsInterpretersByTheirNamesWithoutVersions) {
  const std::string folder = folder_.path();
  for (const char* name : {"python3", "python3.11", "/usr/bin/ruby", "lua5.4", "node", "bash"}) {
    EXPECT_FALSE(os::CheckScript({name, "missing.py"}, folder).ok()) << name;
  }
  for (const char* name : {"", "3", "pythonic", "./bill", "sha256sum"}) {
    EXPECT_TRUE(os::CheckScript({name, "missing.py"}, folder).ok()) << name;
  }
}

}  // namespace
}  // namespace muster::handler::command
