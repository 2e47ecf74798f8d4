#include "muster/blob/file/check.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/blob/file/file_blob_store.h"
#include "muster/os/shelf.h"
#include "muster/os/temp_dir.h"
#include "tests/fakes/os/collected.h"

namespace muster::blob::file {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class BlobCheckTest : public ::testing::Test {
 protected:
  BlobCheckTest() {
    const auto blobs = FileBlobStore::Open(dir_).value();
    EXPECT_TRUE(blobs->Put("good", "body").ok());
    EXPECT_TRUE(blobs->Put("bad", "body").ok());
  }

  std::vector<std::string> Check(os::Quarantine* quarantine = nullptr) {
    os::CollectedFindings findings;
    const auto summary = CheckBlobs(dir_, {&findings, quarantine});
    EXPECT_TRUE(summary.ok()) << summary.status();
    EXPECT_EQ(summary.ok() ? summary->damaged : 0, findings.all.size());
    return findings.names();
  }

  const os::TempDir root_;
  const std::string dir_ = root_ / "blobs";
};

TEST_F(BlobCheckTest, FindsNothingInSoundBlobs) { EXPECT_THAT(Check(), IsEmpty()); }

TEST_F(BlobCheckTest, NamesADamagedBlobAndMovesItAway) {
  std::ofstream(dir_ + "/bad.blob", std::ios::app) << "x";
  EXPECT_THAT(Check(), ElementsAre("blobs/bad.blob"));
  os::Quarantine quarantine(root_.path());
  EXPECT_THAT(Check(&quarantine), ElementsAre("blobs/bad.blob"));
  EXPECT_TRUE(std::filesystem::exists(quarantine.path() + "/blobs/bad.blob"));
  EXPECT_THAT(Check(), IsEmpty());
  const auto blobs = FileBlobStore::Open(dir_).value();
  EXPECT_EQ(blobs->Get("good").value(), "body");
  EXPECT_TRUE(absl::IsNotFound(blobs->Get("bad").status()));
}

TEST_F(BlobCheckTest, RepairsNothingUnderAnOwner) {
  const auto owner = FileBlobStore::Open(dir_).value();
  os::CollectedFindings findings;
  os::Quarantine quarantine(root_.path());
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckBlobs(dir_, {&findings, &quarantine}).status()));
}

TEST_F(BlobCheckTest, MakesNoDirectoryWhereNoneIs) {
  os::CollectedFindings findings;
  os::Quarantine quarantine(root_.path());
  EXPECT_TRUE(absl::IsNotFound(CheckBlobs(root_ / "none", {&findings, &quarantine}).status()));
  EXPECT_FALSE(std::filesystem::exists(root_ / "none"));
}

}  // namespace
}  // namespace muster::blob::file
