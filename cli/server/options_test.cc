// SPDX-License-Identifier: Apache-2.0
#include "cli/server/options.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/app.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::cli {
namespace {

TEST(DataDirOptionTest, SaysHowToNameTheDataDirectoryWhereThereIsNone) {
  const std::vector<std::vector<const char*>> commands = {
      {"report", "1"},          {"batch", "list"},  {"batch", "receipt", "1"},  {"queue", "list"},
      {"queue", "purge", "in"}, {"queue", "check"}, {"queue", "redrive", "in"}, {"cost"}};
  const os::TempDir dir;
  const std::string nowhere = dir / "none";
  const handler::HandlerRegistry handlers;
  base::FakeClock clock;
  for (std::vector<const char*> argv : commands) {
    std::ostringstream out, err;
    Environment environment;
    environment.handlers = &handlers;
    environment.clock = &clock;
    environment.out = &out;
    environment.err = &err;
    argv.insert(argv.begin(), "muster");
    argv.insert(argv.end(), {"--data-dir", nowhere.c_str()});
    EXPECT_EQ(RunCommandLine(static_cast<int>(argv.size()), argv.data(), environment), kError);
    EXPECT_EQ(out.str(), "");
    EXPECT_EQ(err.str(), absl::StrCat("muster: no data in directory ", nowhere,
                                      "; name the one to look at with --data-dir DIR or "
                                      "MUSTER_DATA_DIR\n"));
  }
  EXPECT_FALSE(std::filesystem::exists(nowhere)) << "looking creates nothing";
}

TEST(DataDirOptionTest, LeavesADataDirectoryThatIsThereToWhoOpensIt) {
  const os::TempDir dir;
  EXPECT_TRUE(RequireDataDir(dir.path()).ok());
  EXPECT_TRUE(absl::IsNotFound(RequireDataDir(dir / "none")));
}

TEST(DataDirOptionTest, RefusesAFileByName) {
  const os::TempDir dir;
  std::ofstream(dir / "input.csv") << "key\n";
  for (const absl::Status& refused :
       {RequireDataDir(dir / "input.csv"), RequireFolder(dir / "input.csv")}) {
    EXPECT_EQ(refused.message(),
              absl::StrCat("--data-dir ", dir / "input.csv", " is a file; it must be a folder"));
  }
  EXPECT_TRUE(RequireFolder(dir / "none").ok()) << "a run makes it";
}

TEST(DataDirOptionTest, NamesTheDataDirectoryInALineToPasteUnlessItIsTheDefaultOne) {
  EXPECT_EQ(DataDirOption(".muster"), "");
  setenv("MUSTER_SERVER", "localhost:7700", 1);
  EXPECT_EQ(DataDirOption(".muster"), " --data-dir '.muster'") << "it would go to the server";
  unsetenv("MUSTER_SERVER");
  EXPECT_EQ(DataDirOption("build/demo/muster"), " --data-dir 'build/demo/muster'");
  EXPECT_EQ(DataDirOption("ada's"), R"( --data-dir 'ada'\''s')");
}

}  // namespace
}  // namespace muster::cli
