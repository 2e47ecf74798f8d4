// SPDX-License-Identifier: Apache-2.0
#include "muster/blob/file/file_blob_store.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/status.h"
#include "muster/os/quarantine.h"
#include "muster/os/temp_dir.h"
#include "tests/conformance/blob/blob_store_conformance.h"
#include "tests/fakes/os/collected_findings.h"
#include "tests/fakes/os/file_size_limit.h"

namespace muster::blob::conformance {

namespace {

class FileHome final : public BlobHome {
 public:
  std::unique_ptr<BlobStore> Open() override {
    auto store = blob::file::FileBlobStore::Open(dir_ / "deep/blobs/");
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }

 private:
  const os::TempDir dir_;
};

}  // namespace

INSTANTIATE_TEST_SUITE_P(File, BlobStoreConformance,
                         ::testing::Values(Engine([] { return std::make_unique<FileHome>(); })));

}  // namespace muster::blob::conformance

namespace muster::blob::file {

namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class FileBlobStoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<FileBlobStore> Open() {
    auto store = FileBlobStore::Open(dir_.path());
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }

  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

  void WriteFile(const std::string& name, const std::string& bytes) const {
    std::ofstream(dir_ / name, std::ios::binary) << bytes;
  }

  const os::TempDir dir_;
};

std::string Noise(size_t size) {
  std::mt19937 random(1);
  std::string noise(size, '\0');
  for (char& c : noise) c = static_cast<char>(random());
  return noise;
}

TEST_F(FileBlobStoreTest, NamesTheBlobWhoseFileIsDamaged) {
  auto store = Open();
  ASSERT_TRUE(store->Put("good", "body").ok());
  WriteFile("bad.blob", "garbage");
  const absl::Status status = store->Get("bad").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'bad'"));
  EXPECT_EQ(*store->Get("good"), "body");
}

TEST_F(FileBlobStoreTest, TakesAnEmptyFileForDamageNotForAnEmptyBlob) {
  auto store = Open();
  WriteFile("cut.blob", "");
  EXPECT_EQ(store->Get("cut").status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(FileBlobStoreTest, IsNotLedAstrayByLinksFoldersAndPipes) {
  auto store = Open();
  ASSERT_TRUE(store->Put("real", "body").ok());
  std::filesystem::create_symlink(dir_ / "real.blob", dir_ / "link.blob");
  std::filesystem::create_directory(dir_ / "folder.blob");
  ASSERT_EQ(mkfifo((dir_ / "pipe.blob").c_str(), 0600), 0);
  for (const char* name : {"link", "folder", "pipe"}) {
    EXPECT_FALSE(store->Get(name).ok()) << name;
  }
}

TEST_F(FileBlobStoreTest, RemovesWhatAKilledPutLeftBehind) {
  WriteFile(".tmp-17", "half a blob");
  ASSERT_TRUE(Open()->Put("whole", "body").ok());
  EXPECT_THAT(Files(), UnorderedElementsAre("whole.blob", ".lock"));
}

TEST_F(FileBlobStoreTest, AFailedPutLeavesTheOldBlobAndNothingElse) {
  auto store = Open();
  ASSERT_TRUE(store->Put("b", "old").ok());
  {
    const os::FileSizeLimit limit(100'000);
    EXPECT_FALSE(store->Put("b", Noise(1'000'000)).ok());
  }
  EXPECT_EQ(*store->Get("b"), "old");
  EXPECT_THAT(Files(), UnorderedElementsAre("b.blob", ".lock"));
  EXPECT_TRUE(store->Put("b", Noise(1'000'000)).ok());
}

TEST_F(FileBlobStoreTest, LetsOneOwnerInAndReadersBesideIt) {
  auto owner = Open();
  ASSERT_TRUE(owner->Put("b", "body").ok());
  const absl::Status second = FileBlobStore::Open(dir_.path()).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(base::IsBusy(second));
  EXPECT_THAT(std::string(second.message()), HasSubstr(dir_.path()));

  auto reader = FileBlobStore::Open(dir_.path(), {.read_only = true});
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(*(*reader)->Get("b"), "body");
  EXPECT_EQ((*reader)->Put("b", "x").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ((*reader)->Delete("b").code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(FileBlobStoreTest, SaysWhatIsWrongWithADirectoryThatIsNone) {
  WriteFile("file", "x");
  EXPECT_FALSE(FileBlobStore::Open(dir_ / "file").ok());
  EXPECT_FALSE(FileBlobStore::Open(dir_ / "file/below").ok());
  EXPECT_EQ(FileBlobStore::Open(dir_ / "none", {.read_only = true}).status().code(),
            absl::StatusCode::kNotFound);
}

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
