// SPDX-License-Identifier: Apache-2.0

// Which commands a processor runs.
#include "services/processor/handler_programs.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"

namespace muster::processor {
namespace {

namespace fs = std::filesystem;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class HandlerProgramsTest : public ::testing::Test {
 protected:
  HandlerProgramsTest() {
    fs::create_directories(folder_ / "ours/deep");
    fs::create_directories(folder_ / "theirs");
    for (const char* script : {"ours/bill.py", "ours/deep/bill.py", "theirs/bill.py"}) {
      std::ofstream(folder_ / script) << "#!/bin/sh\n";
    }
    for (const char* program : {"ours/bill", "theirs/bill", "theirs/python3"}) {
      std::ofstream(folder_ / program) << "#!/bin/sh\n";
      fs::permissions(folder_ / program, fs::perms::owner_all);
    }
  }

  static job::CommandHandlerSpec Command(std::vector<std::string> argv,
                                         const std::string& variable = "RATES") {
    job::CommandHandlerSpec command;
    command.argv = std::move(argv);
    command.env = {{variable, "/tmp/x"}};
    return command;
  }

  absl::Status Check(std::vector<std::string> argv) const {
    return allowed_.Check(Command(std::move(argv)), folder_ / "ours");
  }
  void Allow(const std::string& entry) {
    allowed_ = HandlerPrograms(std::vector<std::string>{entry});
  }
  bool Allows(std::vector<std::string> argv) const { return Check(std::move(argv)).ok(); }

  const os::TempDir folder_;
  HandlerPrograms allowed_{std::vector<std::string>{folder_ / "ours"}};
};

TEST_F(HandlerProgramsTest, AllowsProgramsAndScriptsOfAFolder) {
  EXPECT_TRUE(Allows({"./bill"}));
  EXPECT_TRUE(Allows({folder_ / "ours/bill"}));
  EXPECT_TRUE(Allows({"sh", "./bill.py", "-c"}));
  EXPECT_TRUE(Allows({"sh", folder_ / "ours/deep/bill.py"}));
}

TEST_F(HandlerProgramsTest, RefusesWhatLiesElsewhereAndSaysWhatIsAllowed) {
  EXPECT_FALSE(Allows({"../theirs/bill"}));
  EXPECT_FALSE(Allows({"sh", "../theirs/bill.py"}));
  const absl::Status refused = Check({"cat"});
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(refused.message(), HasSubstr("cat, which this processor does not allow; it allows "
                                           "those of " +
                                           folder_ / "ours"));
  EXPECT_THAT(refused.message(), HasSubstr("--handler-programs"));
}

// An interpreter with anything but a script runs what the job says.
TEST_F(HandlerProgramsTest, RefusesCodeOnTheCommandLine) {
  EXPECT_FALSE(Allows({"sh", "-c", "rm -rf ~"}));
  EXPECT_FALSE(Allows({"sh", "-c", folder_ / "ours/bill.py"}));
  EXPECT_FALSE(Allows({"sh"}));
  EXPECT_FALSE(Allows({"env", "sh", folder_ / "ours/bill.py"}));
}

TEST_F(HandlerProgramsTest, TakesNoProgramForAnInterpreterThatTheJobBringsAlong) {
  EXPECT_FALSE(Allows({"../theirs/python3", "./bill.py"}));
}

TEST_F(HandlerProgramsTest, FollowsLinks) {
  fs::create_symlink(folder_ / "theirs/bill", folder_ / "ours/link");
  EXPECT_FALSE(Allows({"./link"}));
  fs::create_symlink(folder_ / "ours", folder_ / "current");
  Allow(folder_ / "current");
  EXPECT_TRUE(Allows({"./bill"}));
}

TEST_F(HandlerProgramsTest, AllowsSinglePrograms) {
  Allow(folder_ / "ours/bill");
  EXPECT_TRUE(Allows({"./bill"}));
  EXPECT_FALSE(Allows({"sh", "./bill.py"}));
}

TEST_F(HandlerProgramsTest, AllowsWhatAPatternMatches) {
  Allow(fs::canonical(folder_.path()).string() + "/*/bill.py");
  EXPECT_TRUE(Allows({"sh", "./bill.py"}));
  EXPECT_TRUE(Allows({"sh", "../theirs/bill.py"}));
  EXPECT_FALSE(Allows({"sh", "./deep/bill.py"})) << "a star is part of one name";
  EXPECT_FALSE(Allows({"./bill"}));
}

TEST_F(HandlerProgramsTest, RefusesVariablesThatMakeAProgramLoadOtherCode) {
  const std::string folder = folder_ / "ours";
  for (const char* name :
       {"LD_PRELOAD", "BASH_ENV", "PYTHONPATH", "PERL5OPT", "NODE_OPTIONS", "RUBYOPT", "PATH",
        "HOME", "OPENSSL_CONF", "DOTNET_STARTUP_HOOKS", "CORECLR_PROFILER_PATH", "JAVA_HOME",
        "JAVA_OPTS", "ERL_FLAGS", "CDPATH", "TAR_OPTIONS"}) {
    const absl::Status refused = allowed_.Check(Command({"./bill"}, name), folder);
    EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied) << name;
    EXPECT_THAT(refused.message(), HasSubstr(name));
    EXPECT_TRUE(HandlerPrograms().Check(Command({"./bill"}, name), folder).ok());
  }
  for (const char* name : {"PYTHONUNBUFFERED", "DOTNET_ENVIRONMENT", "REGION"}) {
    EXPECT_TRUE(allowed_.Check(Command({"./bill"}, name), folder).ok()) << name;
  }
}

TEST_F(HandlerProgramsTest, SaysWhatIsMissingBeforeWhatIsForbidden) {
  EXPECT_EQ(Check({"no-such-program"}).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Check({"sh", "./missing.sh"}).code(), absl::StatusCode::kNotFound);
}

TEST_F(HandlerProgramsTest, AllowsTheFolderOfTheProcessOnLoopbackAndNothingElsewhere) {
  EXPECT_THAT(UsualPrograms(true).entries(), ElementsAre(fs::current_path().string()));
  EXPECT_THAT(UsualPrograms(false).entries(), IsEmpty());
  allowed_ = UsualPrograms(false);
  EXPECT_THAT(Check({"cat"}).message(), HasSubstr("it allows no program"));
  const fs::path here = fs::current_path();
  fs::current_path("/");
  EXPECT_THAT(UsualPrograms(true).entries(), IsEmpty()) << "it would be all programs";
  fs::current_path(here);
}

}  // namespace
}  // namespace muster::processor
