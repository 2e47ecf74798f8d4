// SPDX-License-Identifier: Apache-2.0
#include "cli/app.h"

#include <initializer_list>
#include <sstream>
#include <string>
#include <vector>

#include "cli/main.h"
#include "cli/output/environment.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/log.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::cli {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

class MisuseTest : public ::testing::Test {
 protected:
  int Run(const std::vector<const char*>& arguments) {
    std::vector<const char*> argv = {"muster"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    out_.str("");
    err_.str("");
    const handler::HandlerRegistry handlers;
    Environment environment;
    environment.handlers = &handlers;
    environment.clock = &clock_;
    environment.out = &out_;
    environment.err = &err_;
    return RunCommandLine(static_cast<int>(argv.size()), argv.data(), environment);
  }
  // Returns the error message for a wrong command line.
  std::string Complaint(std::initializer_list<const char*> arguments) {
    EXPECT_EQ(Run(arguments), kUsage);
    EXPECT_EQ(out_.str(), "");
    return err_.str();
  }

  base::FakeClock clock_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(MisuseTest, NamesAMistypedCommandAndTheOneThatWasMeant) {
  EXPECT_EQ(Complaint({"rnu"}),
            "muster: there is no command 'rnu'; did you mean 'run'?\nmuster --help tells more\n");
  EXPECT_EQ(Complaint({"batch", "lsit", "-o", "json"}),
            "muster: batch has no command 'lsit'; did you mean 'list'?\n"
            "muster batch --help tells more\n");
}

// MUSTER_SERVR had no effect, and nobody was told.
TEST_F(MisuseTest, NamesAMisspeltVariableAndTheOneThatWasMeant) {
  setenv("MUSTER_SERVR", "localhost:1", 1);
  setenv("MUSTER_WEATHER_STATION", "of somebody else", 1);
  Run({"version"});
  unsetenv("MUSTER_SERVR");
  unsetenv("MUSTER_WEATHER_STATION");
  EXPECT_EQ(err_.str(),
            "muster: MUSTER_SERVR of the environment is ignored; did you mean MUSTER_SERVER?\n");
}

TEST_F(MisuseTest, RefusesAVariableThatIsOutOfRange) {
  setenv("MUSTER_THREADS", "0", 1);  // NOLINT(concurrency-mt-unsafe): one thread
  EXPECT_THAT(Complaint({"run", "job.yaml", "--input", "in.csv"}),
              HasSubstr("muster: run: MUSTER_THREADS: Value 0 not in range "));
  unsetenv("MUSTER_THREADS");  // NOLINT(concurrency-mt-unsafe): one thread
}

// The message blamed an option that nobody had given.
TEST_F(MisuseTest, BlamesAVariableOnlyForAnOptionThatIsNotGiven) {
  setenv("MUSTER_THREADS", "abc", 1);  // NOLINT(concurrency-mt-unsafe): one thread
  EXPECT_THAT(Complaint({"run", "job.yaml", "--input", "in.csv"}),
              StartsWith("muster: run: MUSTER_THREADS: Value abc not in range"));
  err_.str("");
  EXPECT_THAT(Complaint({"run", "job.yaml", "--input", "in.csv", "--threads=0"}),
              StartsWith("muster: run: --threads: Value 0 not in range"));
  err_.str("");
  EXPECT_THAT(Complaint({"run", "job.yaml", "--input", "in.csv", "--threads", "0"}),
              StartsWith("muster: run: --threads: Value 0 not in range"));
  unsetenv("MUSTER_THREADS");  // NOLINT(concurrency-mt-unsafe): one thread
}

// CLI11 reads 010 as eight, and a number that is too large as the largest.
TEST_F(MisuseTest, TakesNoNumberForAnother) {
  EXPECT_THAT(Complaint({"batch", "delete", "010"}), HasSubstr("BATCH: 010 begins with a zero"));
  EXPECT_THAT(Complaint({"batch", "cancel", "99999999999999999999"}), HasSubstr("out of range"));
  EXPECT_THAT(Complaint({"batch", "get", "08"}), HasSubstr("BATCH: 08 begins with a zero"));
}

TEST_F(MisuseTest, BlamesTheVariableOfTheLogLevelInEachCommand) {
  setenv("MUSTER_LOG_LEVEL", "loud", 1);  // NOLINT(concurrency-mt-unsafe): one thread
  EXPECT_EQ(Complaint({"batch", "list"}),
            "muster: batch list: MUSTER_LOG_LEVEL: 'loud' is none of debug, info, warning, error\n"
            "muster batch list --help tells more\n");
  unsetenv("MUSTER_LOG_LEVEL");  // NOLINT(concurrency-mt-unsafe): one thread
}

TEST_F(MisuseTest, EachCommandTakesTheLevelOfItsLogFromItsOptionAndElseFromTheVariable) {
  const base::LogLevel before = base::MinLogLevel();
  setenv("MUSTER_LOG_LEVEL", "debug", 1);  // NOLINT(concurrency-mt-unsafe): one thread
  Run({"batch", "list", "--data-dir", "/no/such/folder", "--log-level", "error"});
  EXPECT_EQ(base::MinLogLevel(), base::kError);
  Run({"queue", "list", "--data-dir", "/no/such/folder"});
  EXPECT_EQ(base::MinLogLevel(), base::kDebug);
  unsetenv("MUSTER_LOG_LEVEL");  // NOLINT(concurrency-mt-unsafe): one thread
  base::SetMinLogLevel(before);
}

TEST_F(MisuseTest, ListsTheCommandsWhereNoneIsNear) {
  EXPECT_THAT(
      Complaint({"frobnicate"}),
      AllOf(StartsWith("muster: there is no command 'frobnicate'; the commands are 'run', "),
            Not(HasSubstr("serve-handler"))));
}

TEST_F(MisuseTest, NamesTheFamilyOfACommandThatIsGivenWithoutIt) {
  EXPECT_THAT(Complaint({"submit", "shop"}),
              StartsWith("muster: there is no command 'submit'; did you mean 'batch submit'?\n"));
  EXPECT_THAT(Complaint({"pause"}),
              StartsWith("muster: there is no command 'pause'; there are 'schedule pause', "
                         "'worker pause'\n"));
}

TEST_F(MisuseTest, NamesAMistypedOptionBeforeWhatIsMissingForIt) {
  EXPECT_EQ(Complaint({"run", "job.yaml", "--inptu", "x"}),
            "muster: run has no option '--inptu'; did you mean '--input'?\n"
            "muster run --help tells more\n");
  EXPECT_EQ(Complaint({"run", "job.yaml", "--input=x", "--inptu=x"}),
            "muster: run has no option '--inptu'; did you mean '--input'?\n"
            "muster run --help tells more\n");
  EXPECT_THAT(Complaint({"batch", "get", "-x", "1"}),
              StartsWith("muster: batch get has no option '-x'\n"));
}

TEST_F(MisuseTest, SaysThatOptionsComeAfterTheCommand) {
  EXPECT_THAT(Complaint({"--data-dir", "d", "report", "1"}),
              StartsWith("muster: there is no option '--data-dir'; the options of a command come "
                         "after its name\n"));
}

TEST_F(MisuseTest, NamesTheArgumentThatIsOneTooMany) {
  EXPECT_THAT(Complaint({"version", "2"}),
              StartsWith("muster: version: '2' is one argument too many\n"));
  EXPECT_THAT(Complaint({"worker", "drain", "p-1", "--all"}),
              StartsWith("muster: worker drain: 'p-1' is one argument too many\n"));
}

TEST_F(MisuseTest, EscapesAndCutsWhatItNames) {
  const std::string word = "\x1b[31m" + std::string(1000, 'x');
  EXPECT_THAT(Complaint({word.c_str()}), HasSubstr("'\\x1b[31mxxx"));
  EXPECT_LT(err_.str().size(), 500u);
  EXPECT_THAT(Complaint({""}), StartsWith("muster: there is no command ''"));
}

TEST_F(MisuseTest, SaysWhatIsMissingWhereEveryWordIsKnown) {
  EXPECT_THAT(Complaint({}), StartsWith("muster: a command is required; the commands are 'run', "));
  EXPECT_THAT(Complaint({"batch"}),
              AllOf(StartsWith("muster: batch: a command is required; the commands are 'quote', "),
                    EndsWith("\nmuster batch --help tells more\n")));
  EXPECT_EQ(Complaint({"run", "job.yaml"}),
            "muster: run: --input is required\nmuster run --help tells more\n");
  EXPECT_EQ(Complaint({"queue", "stats"}),
            "muster: queue stats: QUEUE is required\nmuster queue stats --help tells more\n");
}

TEST_F(MisuseTest, SaysWhatIsMalformedAndInWhichCommand) {
  EXPECT_EQ(Complaint({"batch", "get", "abc"}),
            "muster: batch get: BATCH: 'abc' is not a whole number\n"
            "muster batch get --help tells more\n");
  EXPECT_THAT(Complaint({"queue", "peek", "in", "--max", "99"}),
              StartsWith("muster: queue peek: --max: "));
  EXPECT_THAT(Complaint({"batch", "list", "--server", "a:1", "--timeout", "\x1b[31m"}),
              StartsWith("muster: batch list: --timeout: '?[31m' is no time like 30s\n"));
  EXPECT_THAT(Complaint({"batch", "quote", "shop"}), StartsWith("muster: batch quote: "));
}

TEST_F(MisuseTest, HelpsAsTheOptionForItDoes) {
  for (const std::vector<const char*>& words :
       std::vector<std::vector<const char*>>{{}, {"batch"}, {"batch", "submit"}, {"help"}}) {
    std::vector<const char*> asked = words;
    asked.push_back("--help");
    EXPECT_EQ(Run(asked), kOk);
    const std::string expected = out_.str();
    asked = words;
    asked.insert(asked.begin(), "help");
    EXPECT_EQ(Run(asked), kOk);
    EXPECT_EQ(out_.str(), expected);
    EXPECT_THAT(expected, HasSubstr("Usage: "));
    EXPECT_EQ(err_.str(), "");
  }
}

TEST_F(MisuseTest, HelpsWithNoCommandThatIsNotThere) {
  EXPECT_EQ(Complaint({"help", "batch", "sumbit"}),
            "muster: batch has no command 'sumbit'; did you mean 'submit'?\n"
            "muster batch --help tells more\n");
  EXPECT_THAT(Complaint({"help", "version", "2"}),
              StartsWith("muster: version: '2' is one argument too many\n"));
}

TEST_F(MisuseTest, TellsItsVersionInBothWays) {
  EXPECT_EQ(Run({"--version"}), kOk);
  const std::string version = out_.str();
  EXPECT_THAT(version, MatchesRegex("muster [0-9]+\\.[0-9]+.*\n"));
  EXPECT_EQ(Run({"version"}), kOk);
  EXPECT_EQ(out_.str(), version);
}

// What the program says of itself under this name.
std::string HelpOf(std::string program) {
  std::string help = "--help";
  std::vector<char*> argv = {program.data(), help.data(), nullptr};
  const handler::HandlerRegistry handlers;
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(Main(2, argv.data(), handlers), 0);
  return ::testing::internal::GetCapturedStdout();
}

TEST(MainTest, IsTheServiceByWhoseNameItIsCalled) {
  EXPECT_THAT(HelpOf("/usr/bin/muster-initiator"), StartsWith("muster-initiator: "));
  EXPECT_THAT(HelpOf("muster-processor"), StartsWith("muster-processor: "));
  EXPECT_THAT(HelpOf("./muster-controller"), StartsWith("muster-controller: "));
  EXPECT_THAT(HelpOf("muster"), StartsWith("muster: "));
  EXPECT_THAT(HelpOf("/opt/muster-processor/my_muster"), StartsWith("muster: "));
}

}  // namespace
}  // namespace muster::cli
