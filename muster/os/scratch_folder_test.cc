// SPDX-License-Identifier: Apache-2.0
#include "muster/os/scratch_folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "muster/os/file_descriptor.h"
#include "muster/os/temp_dir.h"

namespace muster::os {
namespace {

class ScratchFolderTest : public testing::Test {
 protected:
  std::string MakeFolder(const std::string& name) {
    std::string path = dir_ / name;
    std::filesystem::create_directories(path + "/below");
    std::ofstream(path + "/below/file") << "of a handler";
    return path;
  }

  const TempDir dir_;
  const absl::Time later_ = absl::Now() + absl::Minutes(2);
};

// A program that is told of it may run in another folder than this process.
TEST_F(ScratchFolderTest, HasAPathThatHoldsInEveryFolder) {
  const char* const named = std::getenv("TMPDIR");
  const std::string before = named == nullptr ? "" : named;
  setenv("TMPDIR", std::filesystem::relative(dir_.path()).c_str(), 1);
  const auto made = ScratchFolder::Make();
  before.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", before.c_str(), 1);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(std::filesystem::path((*made)->path()).is_absolute()) << (*made)->path();
}

// Each processor that was killed left the temporary files of its handlers for good.
TEST_F(ScratchFolderTest, IsRemovedWithAllItHoldsOnceItsOwnerHasDied) {
  const std::string left = MakeFolder("muster-scratch-AbCdEf");
  RemoveAbandonedScratchFolders(dir_.path(), later_);
  EXPECT_FALSE(std::filesystem::exists(left));
}

TEST_F(ScratchFolderTest, StaysWhileItsOwnerLives) {
  const std::string used = MakeFolder("muster-scratch-AbCdEf");
  const FileDescriptor owner(open(used.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(flock(owner.get(), LOCK_EX | LOCK_NB), 0);
  RemoveAbandonedScratchFolders(dir_.path(), later_);
  EXPECT_TRUE(std::filesystem::exists(used + "/below/file"));
}

TEST_F(ScratchFolderTest, IsLockedByItsOwner) {
  const auto made = ScratchFolder::Make();
  ASSERT_TRUE(made.ok()) << made.status();
  const FileDescriptor other(open((*made)->path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  EXPECT_EQ(flock(other.get(), LOCK_EX | LOCK_NB), -1);
  EXPECT_EQ(errno, EWOULDBLOCK);
}

TEST_F(ScratchFolderTest, StaysInTheMomentBeforeItIsLocked) {
  const std::string made_now = MakeFolder("muster-scratch-AbCdEf");
  RemoveAbandonedScratchFolders(dir_.path(), absl::Now());
  EXPECT_TRUE(std::filesystem::exists(made_now));
}

TEST_F(ScratchFolderTest, LeavesWhatIsNotOne) {
  const std::string other = MakeFolder("elsewhere");
  std::filesystem::create_directory_symlink(other, dir_ / "muster-scratch-AbCdEf");
  std::ofstream(dir_ / "muster-scratch-ghijkl") << "a file";
  RemoveAbandonedScratchFolders(dir_.path(), later_);
  RemoveAbandonedScratchFolders(dir_ / "nowhere", later_);
  EXPECT_TRUE(std::filesystem::exists(other + "/below/file"));
  EXPECT_TRUE(std::filesystem::exists(dir_ / "muster-scratch-ghijkl"));
}

}  // namespace
}  // namespace muster::os
