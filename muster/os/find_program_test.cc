// SPDX-License-Identifier: Apache-2.0
#include "muster/os/find_program.h"

#include <sys/stat.h>

#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"

namespace muster::os {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class FindProgramTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) const {
    std::string path = folder_ / name;
    std::ofstream(path) << text;
    chmod(path.c_str(), 0700);
    return path;
  }

  const TempDir folder_;
};

TEST_F(FindProgramTest, SaysHowACommandLineIsWrittenAsAList) {
  for (const char* name : {"python3 bill.py", "./bill.py --fast"}) {
    EXPECT_THAT(FindProgram(name, folder_.path()).status().message(),
                AllOf(HasSubstr("no program"), HasSubstr("an item of its own: [")));
  }
}

TEST_F(FindProgramTest, SaysHowAFileBesideTheJobIsNamed) {
  Write("bill.py", "#!/usr/bin/env python3\n");
  EXPECT_THAT(FindProgram("bill.py", folder_.path()).status().message(),
              HasSubstr("there is a file of this name: ./bill.py"));
}

TEST_F(FindProgramTest, SaysThatNoShellReadsTheCommand) {
  for (const char* path : {"~/bill.py", "$HOME/bill.py", "./${WHERE}/bill.py"}) {
    EXPECT_THAT(FindProgram(path, folder_.path()).status().message(), HasSubstr("no shell"))
        << path;
    EXPECT_THAT(CheckScript({"python3", path}, folder_.path()).message(),
                AllOf(HasSubstr("no script /"), HasSubstr("for python3; no shell reads")))
        << path;
  }
}

// A job file's relative paths lead from its folder in `muster run`, and from the processor's on a
// mesh.
TEST_F(FindProgramTest, SaysWhereARelativePathLeadsFrom) {
  const auto leads = HasSubstr("a relative path leads from the folder in which this process runs");
  EXPECT_THAT(FindProgram("./no-bill", "").status().message(), leads);
  EXPECT_THAT(CheckScript({"python3", "-u", "no-bill.py"}, "").message(), leads);
  EXPECT_THAT(FindProgram("/no/bill", "").status().message(), Not(leads));
  EXPECT_THAT(CheckScript({"python3", "/no/bill.py"}, "").message(), Not(leads));
  EXPECT_THAT(FindProgram("./no-bill", folder_.path()).status().message(), Not(leads));
  EXPECT_THAT(CheckScript({"python3", "no-bill.py"}, folder_.path()).message(), Not(leads));
}

TEST_F(FindProgramTest, SaysWhatAFileLacksThatIsNoProgram) {
  EXPECT_THAT(FindProgram("./", folder_.path()).status().message(), HasSubstr("which is a folder"));
  std::ofstream(folder_ / "bill.py") << "print()\n";
  EXPECT_THAT(FindProgram("./bill.py", folder_.path()).status().message(),
              AllOf(HasSubstr("chmod +x"), HasSubstr("[python3, ./bill.py]")));
}

TEST_F(FindProgramTest, FindsTheScriptOfPythonBehindOptionsThatLeaveItWhatRuns) {
  EXPECT_EQ(ScriptOf({"python3", "-u", "-B", "bill.py", "-c"}, "/srv"), "/srv/bill.py");
  EXPECT_EQ(ScriptOf({"python3", "-c", "bill.py"}, "/srv"), std::nullopt);
  EXPECT_EQ(ScriptOf({"python3", "-u"}, "/srv"), std::nullopt);
  EXPECT_EQ(ScriptOf({"bash", "-s", "bill.sh"}, "/srv"), std::nullopt) << "it runs its stdin";
  EXPECT_EQ(ScriptOf({"bash", "./bill.sh"}, "/srv"), "/srv/./bill.sh");
}

TEST_F(FindProgramTest, FindsNothingWrongWithProgramsThatStart) {
  EXPECT_TRUE(CheckProgram("/bin/sh").ok());
  EXPECT_TRUE(CheckProgram(Write("a", "#!/bin/sh\n")).ok());
  EXPECT_TRUE(CheckProgram(Write("b", "#! /usr/bin/env sh\necho\r\n")).ok());
  EXPECT_TRUE(CheckProgram(Write("c", "#!/usr/bin/env -S sh -e\n")).ok());
  EXPECT_TRUE(CheckProgram(Write("d", "#!/bin/sh")).ok()) << "a line without its end";
}

TEST_F(FindProgramTest, SaysWhatIsWrongWithAScriptThatCannotStart) {
  EXPECT_THAT(CheckProgram(Write("a", "")).message(), HasSubstr("a is empty"));
  EXPECT_THAT(CheckProgram(Write("b", "#!/no/such/python\n")).message(),
              HasSubstr("b: its first line, #!/no/such/python, leads nowhere: no program"));
  EXPECT_THAT(CheckProgram(Write("c", "#!/usr/bin/env no-such-python\n")).message(),
              HasSubstr("no program 'no-such-python' in PATH"));
  EXPECT_THAT(CheckProgram(Write("d", "#!/usr/bin/env python3\r\n")).message(), HasSubstr("CR LF"));
  EXPECT_THAT(CheckProgram(Write("e", "#!\n")).message(), HasSubstr("names no program"));
  EXPECT_THAT(
      CheckProgram(Write("f", "import sys\n")).message(),
      HasSubstr("f is a text without #! at its beginning, which no system runs by itself: its "
                "first line has to name its interpreter, as #!/usr/bin/env python3"));
}

TEST_F(FindProgramTest, ExplainsWhyAStartHasFailed) {
  const absl::Status no_file = absl::NotFoundError("cannot start p: No such file or directory");
  const std::string script = Write("p", "#!/bin/sh\n");
  EXPECT_EQ(ExplainStart(no_file, script, folder_.path()), no_file);
  EXPECT_THAT(ExplainStart(no_file, script, folder_ / "gone").message(), HasSubstr("no folder"));
  EXPECT_EQ(ExplainStart(no_file, folder_ / "gone", ""), no_file);
  EXPECT_THAT(ExplainStart(absl::InternalError("cannot start: Exec format error"),
                           Write("q", "import sys\n"), "")
                  .message(),
              HasSubstr("#!/usr/bin/env python3"));
}

}  // namespace
}  // namespace muster::os
