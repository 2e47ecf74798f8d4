// SPDX-License-Identifier: Apache-2.0
#include "muster/content/ledger_content.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/damage.h"
#include "muster/blob/file/file_blob_store.h"
#include "muster/input/byte_source.h"
#include "muster/item/work_item_codec.h"
#include "muster/os/temp_dir.h"
#include "tests/fakes/content/memory_records.h"

namespace muster::content {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A batch of three items, "one", "two" and "six", in a file.
class LedgerContentTest : public ::testing::Test {
 protected:
  LedgerContentTest() {
    Write("onetwosix");
    items_ = records_.Split(7, "onetwosix", 3);
  }

  void Write(const std::string& text) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << text;
  }
  std::string Read(const ItemReference& item) {
    std::string slice;
    const absl::Status read = content_.Read(item, &slice);
    return read.ok() ? slice : read.ToString();
  }

  os::TempDir dir_;
  const std::string path_ = dir_.path() + "/input";
  MemoryRecords records_;
  std::unique_ptr<blob::BlobStore> blobs_ =
      blob::file::FileBlobStore::Open(dir_.path() + "/blobs").value();
  std::vector<uint64_t> damaged_;  // batches, as on_damage was told
  LedgerContent content_{
      {.ledger = &records_,
       .blobs = blobs_.get(),
       .open = [this](uint64_t) -> absl::StatusOr<LedgerContent::Source> {
         return input::FileSource::Open(path_);
       },
       .on_damage = [this](const ItemReference& item,
                           const absl::Status&) { damaged_.push_back(item.batch); },
       .keeps_copies = true}};
  std::vector<ItemReference> items_;
};

TEST_F(LedgerContentTest, ReadsWhatTheLedgerHasBounded) {
  EXPECT_EQ(Read(items_[0]), "one");
  EXPECT_EQ(Read(items_[2]), "six");
  EXPECT_EQ(Read(items_[1]), "two");
  EXPECT_EQ(records_.asked(), 1) << "the boundaries of a run of items are read together";
}

TEST_F(LedgerContentTest, ReadsItemsThatWereRecordedAfterTheFirstLook) {
  EXPECT_EQ(Read(items_[0]), "one");
  Write("onetwosixten");
  const ItemReference fourth = records_.Split(7, "onetwosixten", 3, "", /*from=*/9).front();
  EXPECT_EQ(fourth.index, 3u);
  EXPECT_EQ(Read(fourth), "ten");
  EXPECT_EQ(records_.asked(), 2);
}

TEST_F(LedgerContentTest, TellsAChangedSourceFromAShorterOneAndFromNone) {
  const uint64_t damage = base::DamageMet(base::Damaged::kContent);
  Write("onetvosix");
  EXPECT_EQ(Read(items_[0]), "one");
  EXPECT_THAT(Read(items_[1]), HasSubstr("item 7/1 at byte 3 (line 1): its bytes have changed"));
  Write("onetwos");
  EXPECT_THAT(Read(items_[2]), HasSubstr("the source ends before it does"));
  std::filesystem::remove(path_);
  EXPECT_THAT(Read(items_[0]), HasSubstr("does not exist"));
  EXPECT_THAT(damaged_, ElementsAre(7, 7, 7));
  EXPECT_EQ(base::DamageMet(base::Damaged::kContent), damage + 3);
  Write("onetwosix");
  EXPECT_EQ(Read(items_[1]), "two") << "put back, it is sound again";
}

// Or one malformed message would stop its batch.
TEST_F(LedgerContentTest,
       TakesAMessageThatContradictsTheLedgerForMalformedNotTheContentForDamaged) {
  std::string slice;
  ItemReference malformed = items_[0];
  malformed.hash = items_[1].hash;
  EXPECT_TRUE(absl::IsInvalidArgument(content_.Read(malformed, &slice)));
  records_.Seal(7);
  malformed = items_[0];
  malformed.index = 3;
  EXPECT_TRUE(absl::IsInvalidArgument(content_.Read(malformed, &slice)));
  EXPECT_THAT(damaged_, IsEmpty());
}

TEST_F(LedgerContentTest, HasNothingForAnItemThatTheLedgerHasNot) {
  std::string slice;
  ItemReference unknown = items_[0];
  unknown.batch = 8;
  EXPECT_TRUE(absl::IsNotFound(content_.Read(unknown, &slice)));
  unknown = items_[0];
  unknown.index = 3;
  EXPECT_TRUE(absl::IsNotFound(content_.Read(unknown, &slice))) << "it may have it later";
}

TEST_F(LedgerContentTest, ReadsTheCopyOfADeadLetterWhenTheSourceIsGone) {
  ASSERT_TRUE(content_.KeepForRedrive(items_[1]).ok());
  std::filesystem::remove(path_);
  EXPECT_EQ(Read(items_[1]), "two");
  EXPECT_THAT(damaged_, IsEmpty());
  EXPECT_THAT(Read(items_[0]), HasSubstr("does not exist")) << "no dead letter";
}

// The dead letter's message says how its blob is compressed.
TEST_F(LedgerContentTest, LeavesTheBlobThatTheMessageOfADeadLetterRefersToAsItIs) {
  const std::string zeros(1000, '0');
  Write(zeros);
  const ItemReference item = records_.Split(8, zeros, 1000).front();
  std::string compressed;
  ASSERT_TRUE(item::Compress(zeros, &compressed));
  ASSERT_TRUE(blobs_->Put(item::BlobName(8, 0), compressed).ok());
  ASSERT_TRUE(content_.KeepForRedrive(item).ok());
  EXPECT_EQ(blobs_->Get(item::BlobName(8, 0)).value(), compressed);
  std::filesystem::remove(path_);
  EXPECT_EQ(Read(item), zeros);
}

TEST_F(LedgerContentTest, ReplacesACopyThatIsDamaged) {
  ASSERT_TRUE(blobs_->Put(item::BlobName(7, 1), "tvo").ok());
  ASSERT_TRUE(content_.KeepForRedrive(items_[1]).ok());
  EXPECT_EQ(blobs_->Get(item::BlobName(7, 1)).value(), "two");
}

TEST_F(LedgerContentTest, TakesNoCopyThatIsAnotherItems) {
  ASSERT_TRUE(blobs_->Put(item::BlobName(7, 1), "six").ok());
  std::filesystem::remove(path_);
  EXPECT_THAT(Read(items_[1]), HasSubstr("DATA_LOSS"));
}

}  // namespace
}  // namespace muster::content
