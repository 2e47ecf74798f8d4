// SPDX-License-Identifier: Apache-2.0
#include "muster/os/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/durable_directory.h"
#include "muster/os/file_descriptor.h"
#include "muster/os/temp_dir.h"
#include "tests/fakes/os/file_size_limit.h"
#include "tests/fakes/os/watched_disk.h"

namespace muster::os {
namespace {

namespace fs = std::filesystem;

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr size_t kMaxBytes = 1000;

class DurableFileTest : public ::testing::Test {
 protected:
  DurableFileTest() { fs::create_directory(folder_); }

  std::string Content(const std::string& path) const {
    const absl::StatusOr<std::string> content = ReadFile(path, kMaxBytes);
    EXPECT_TRUE(content.ok()) << content.status();
    return content.value_or("");
  }

  const TempDir root_;
  const std::string folder_ = root_ / "folder";
  const std::string path_ = folder_ + "/file";
};

TEST_F(DurableFileTest, ReplacesWhatWasThere) {
  for (const std::string& text :
       {std::string("long text"), std::string(), std::string("x\0y", 3)}) {
    ASSERT_TRUE(ReplaceFile(path_, text).ok());
    EXPECT_EQ(Content(path_), text);
  }
  EXPECT_FALSE(fs::exists(path_ + ".new"));
}

// Renamed before its content is on disk, a file could be empty after a power cut.
TEST_F(DurableFileTest, SyncsTheContentBeforeItsNameAndTheNameBeforeItReturns) {
  WatchedDisk disk;
  ASSERT_TRUE(ReplaceFile(path_, "x").ok());
  EXPECT_THAT(disk.TakeCalls(),
              ElementsAre("sync file.new", "rename file.new to file", "sync folder"));

  const auto directory = DurableDirectory::Own(folder_).value();
  disk.TakeCalls();
  ASSERT_TRUE(directory->Replace("file", "y").ok());
  EXPECT_THAT(disk.TakeCalls(), ElementsAre("sync .tmp-0", "rename .tmp-0 to file", "sync folder"));
}

TEST_F(DurableFileTest, TakesTheLeavingsOfAWriterThatDiedForNothing) {
  std::ofstream(path_ + ".new") << "half of a longer text";
  EXPECT_TRUE(absl::IsNotFound(ReadFile(path_, kMaxBytes).status()));
  ASSERT_TRUE(ReplaceFile(path_, "x").ok());
  EXPECT_EQ(Content(path_), "x");
}

TEST_F(DurableFileTest, LeavesTheFileAsItWasWhenItCannotBeWritten) {
  ASSERT_TRUE(ReplaceFile(path_, "x").ok());
  fs::create_directory(path_ + ".new");
  EXPECT_FALSE(ReplaceFile(path_, "y").ok());
  EXPECT_EQ(Content(path_), "x");
}

TEST_F(DurableFileTest, LeavesTheFileAsItWasAndNothingElseWhenTheDiskIsFull) {
  ASSERT_TRUE(ReplaceFile(path_, "x").ok());
  {
    const FileSizeLimit limit(100);
    EXPECT_FALSE(ReplaceFile(path_, std::string(kMaxBytes, 'y')).ok());
  }
  EXPECT_EQ(Content(path_), "x");
  EXPECT_FALSE(fs::exists(path_ + ".new"));
}

TEST_F(DurableFileTest, LeavesTheFileAsItWasWhenTheMediumFails) {
  ASSERT_TRUE(ReplaceFile(path_, "x").ok());
  WatchedDisk disk;
  disk.FailSync("file.new", EIO);
  const absl::Status failed = ReplaceFile(path_, "y");
  EXPECT_TRUE(absl::IsUnavailable(failed)) << failed;
  EXPECT_THAT(std::string(failed.message()), HasSubstr("syncing " + path_ + ".new"));
  EXPECT_THAT(disk.TakeCalls(), IsEmpty()) << "nothing is renamed";
  EXPECT_EQ(Content(path_), "x");
  EXPECT_FALSE(fs::exists(path_ + ".new"));
}

TEST_F(DurableFileTest, SaysThatTheNameIsNotDurableWhenItsFolderCannotBeSynced) {
  ASSERT_TRUE(ReplaceFile(path_, "x").ok());
  WatchedDisk disk;
  disk.FailSync("folder", ENOSPC);
  EXPECT_TRUE(absl::IsResourceExhausted(ReplaceFile(path_, "y")));
  EXPECT_THAT(Content(path_), AnyOf("x", "y"));
}

TEST_F(DurableFileTest, CallsAFullDiskResourceExhausted) {
  const FileDescriptor full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_GE(full.get(), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(WriteFully(full.get(), "x", "/dev/full")));
  EXPECT_TRUE(absl::IsResourceExhausted(FileError(EDQUOT, "writing", "/a")));
}

TEST_F(DurableFileTest, CallsWhatMayPassUnavailableAndNamesThePath) {
  for (const int error : {EIO, EMFILE, ENFILE, ENOMEM}) {
    EXPECT_TRUE(absl::IsUnavailable(FileError(error, "syncing", "/a"))) << error;
  }
  EXPECT_TRUE(absl::IsPermissionDenied(FileError(EACCES, "syncing", "/a")));
  EXPECT_THAT(std::string(FileError(EIO, "syncing", "/a").message()), HasSubstr("syncing /a: "));
}

TEST_F(DurableFileTest, ReadsNoFileThatIsTooLongOrIsNone) {
  std::ofstream(path_) << std::string(kMaxBytes + 1, 'x');
  EXPECT_TRUE(absl::IsDataLoss(ReadFile(path_, kMaxBytes).status()));
  EXPECT_TRUE(absl::IsDataLoss(ReadFile(folder_, kMaxBytes).status()));
  ASSERT_EQ(mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsDataLoss(ReadFile(folder_ + "/pipe", kMaxBytes).status()));
}

TEST_F(DurableFileTest, SyncsTheParentOfEachFolderThatItCreates) {
  WatchedDisk disk;
  for (const char* const slash : {"", "/"}) {
    const std::string below = folder_ + "/deep";
    ASSERT_TRUE(CreateFolder(below + "/deeper" + slash).ok());
    EXPECT_TRUE(fs::is_directory(below + "/deeper"));
    EXPECT_THAT(disk.TakeCalls(), ElementsAre("sync folder", "sync deep"));
    ASSERT_TRUE(CreateFolder(below + "/deeper" + slash).ok());
    EXPECT_THAT(disk.TakeCalls(), IsEmpty()) << "it exists";
    fs::remove_all(below);
  }
}

TEST_F(DurableFileTest, CreatesNoFolderWhereAFileIsInTheWay) {
  std::ofstream(path_) << "x";
  EXPECT_TRUE(absl::IsFailedPrecondition(CreateFolder(path_)));
  EXPECT_TRUE(absl::IsFailedPrecondition(CreateFolder(path_ + "/below")));
  EXPECT_EQ(Content(path_), "x");
}

TEST_F(DurableFileTest, DoesNotCallAFolderCreatedWhoseNameIsNotDurable) {
  WatchedDisk disk;
  disk.FailSync("folder", EIO);
  EXPECT_TRUE(absl::IsUnavailable(CreateFolder(folder_ + "/deep")));
}

// The other way round, a power cut could leave the file without a name.
TEST_F(DurableFileTest, SyncsTheNewNameOfARenamedFileBeforeTheLossOfTheOld) {
  ASSERT_TRUE(ReplaceFile(path_, "x").ok());
  fs::create_directory(root_ / "kept");
  WatchedDisk disk;
  ASSERT_TRUE(Rename(path_, root_ / "kept/one").ok());
  EXPECT_THAT(disk.TakeCalls(), ElementsAre("rename file to one", "sync kept", "sync folder"));
  ASSERT_TRUE(Rename(root_ / "kept/one", root_ / "kept/two").ok());
  EXPECT_THAT(disk.TakeCalls(), ElementsAre("rename one to two", "sync kept"));
  EXPECT_EQ(Content(root_ / "kept/two"), "x");
}

TEST_F(DurableFileTest, NamesBothPathsOfARenameThatFails) {
  const absl::Status failed = Rename(path_, folder_ + "/other");
  EXPECT_TRUE(absl::IsNotFound(failed)) << failed;
  EXPECT_THAT(std::string(failed.message()),
              HasSubstr("renaming " + path_ + " to " + folder_ + "/other"));
}

TEST_F(DurableFileTest, ExchangesTwoFoldersInOneStep) {
  fs::create_directory(root_ / "fresh");
  ASSERT_TRUE(ReplaceFile(path_, "old").ok());
  ASSERT_TRUE(ReplaceFile(root_ / "fresh/file", "new").ok());
  WatchedDisk disk;
  ASSERT_TRUE(Exchange(root_ / "fresh", folder_).ok());
  EXPECT_THAT(disk.TakeCalls(), ElementsAre("rename fresh to folder",
                                            "sync " + fs::path(root_.path()).filename().string()));
  EXPECT_EQ(Content(path_), "new");
  EXPECT_EQ(Content(root_ / "fresh/file"), "old");
}

TEST_F(DurableFileTest, SyncsAllFilesBelowAFolderButNoLinksAndPipes) {
  fs::create_directory(folder_ + "/below");
  std::ofstream(folder_ + "/below/one") << "1";
  std::ofstream(folder_ + "/two") << "2";
  fs::create_symlink("nowhere", folder_ + "/link");
  ASSERT_EQ(mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  WatchedDisk disk;
  ASSERT_TRUE(SyncTree(folder_).ok());
  EXPECT_THAT(disk.TakeCalls(),
              UnorderedElementsAre("sync one", "sync two", "sync below", "sync folder"));
}

}  // namespace
}  // namespace muster::os
