// Reading a report that one may read but not write.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/report/sqlite/sqlite_report_store.h"

namespace muster::report::sqlite {
namespace {

constexpr uid_t kNobody = 65534;

// Answers 0 when `path` can be opened and read by a user who is not root.
int ReadAsNobody(const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    // Root may write everywhere, whatever the folder's mode says.
    if (geteuid() == 0 && setuid(kNobody) != 0) _exit(2);
    const auto store = OpenSqliteReport(path, {.read_only = true});
    if (!store.ok()) {
      fprintf(stderr, "%s\n", store.status().ToString().c_str());
      _exit(3);
    }
    const auto reader = (*store)->Read();
    _exit(reader.ok() && (*reader)->Batches().ok() ? 0 : 4);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The signs stand for what a URI would misread.
TEST(ReadOnlyFolderTest, IsEnoughToReadAReport) {
  const os::TempDir dir;
  const std::string folder = dir / "50% #1?";
  const std::string path = folder + "/report.db";
  ASSERT_EQ(mkdir(folder.c_str(), 0755), 0);
  ASSERT_TRUE(OpenSqliteReport(path).ok());
  ASSERT_EQ(chmod(dir.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(path.c_str(), 0444), 0);
  ASSERT_EQ(chmod(folder.c_str(), 0555), 0);
  EXPECT_EQ(ReadAsNobody(path), 0);
  ASSERT_EQ(chmod(folder.c_str(), 0755), 0);
}

}  // namespace
}  // namespace muster::report::sqlite
