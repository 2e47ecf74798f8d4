// SPDX-License-Identifier: Apache-2.0
#include "muster/input/byte_source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "muster/os/temp_dir.h"

namespace muster::input {
namespace {

class FileSourceTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = dir_ / name;
    std::ofstream(path) << text;
    return path;
  }
  std::string ErrorOf(const std::string& path) {
    return std::string(FileSource::Open(path).status().message());
  }

  os::TempDir dir_;
};

TEST_F(FileSourceTest, ReadsAtAnyOffsetAndStopsAtTheEnd) {
  const auto file = *FileSource::Open(Write("a.csv", "0123456789"));
  EXPECT_EQ(file->size(), 10u);
  char out[8];
  EXPECT_EQ(*file->Read(4, out, 3), 3u);
  EXPECT_EQ(std::string(out, 3), "456");
  EXPECT_EQ(*file->Read(7, out, 8), 3u);
  EXPECT_EQ(std::string(out, 3), "789");
  EXPECT_EQ(*file->Read(10, out, 8), 0u);
  EXPECT_EQ(*file->Read(1000, out, 8), 0u);
}

TEST_F(FileSourceTest, NamesAMissingFile) {
  const std::string path = dir_ / "nowhere.csv";
  EXPECT_EQ(FileSource::Open(path).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ErrorOf(path), "input '" + path + "' does not exist");
}

TEST_F(FileSourceTest, RefusesAFolder) {
  EXPECT_EQ(ErrorOf(dir_.path()), "input '" + dir_.path() + "' is a folder");
}

TEST_F(FileSourceTest, RefusesAPipeWithoutWaitingForAWriter) {
  const std::string path = dir_ / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_TRUE(absl::StrContains(ErrorOf(path), "not a regular file")) << ErrorOf(path);
}

TEST_F(FileSourceTest, RefusesStandardInput) {
  EXPECT_TRUE(absl::StrContains(ErrorOf("-"), "store it in a file first")) << ErrorOf("-");
}

TEST_F(FileSourceTest, RefusesAFileThatMayNotBeRead) {
  const std::string path = Write("secret.csv", "a");
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  if (access(path.c_str(), R_OK) == 0) GTEST_SKIP() << "root reads everything";
  EXPECT_EQ(FileSource::Open(path).status().code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(FileSourceTest, SaysSoWhenTheFileIsCutWhileItIsRead) {
  const std::string path = Write("a.csv", "0123456789");
  const auto file = *FileSource::Open(path);
  ASSERT_EQ(truncate(path.c_str(), 4), 0);
  char out[10];
  const auto read = file->Read(0, out, 10);
  EXPECT_EQ(read.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(read.status().message(), "now ends at 4")) << read.status();
}

TEST_F(FileSourceTest, LeavesOutWhatIsAppendedLater) {
  const std::string path = Write("a.csv", "0123");
  const auto file = *FileSource::Open(path);
  std::ofstream(path, std::ios::app) << "4567";
  char out[10];
  EXPECT_EQ(*file->Read(0, out, 10), 4u);
}

}  // namespace
}  // namespace muster::input
