// SPDX-License-Identifier: Apache-2.0
#include "muster/sync/rocksdb/record_codec.h"

#include <string>

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/text.h"
#include "muster/rocksdb/checked_value.h"

namespace muster::sync::rocksdb {
namespace {

using ::testing::HasSubstr;

// Stored data has this form: if this test fails, the code cannot read data of earlier versions.
TEST(RecordCodecTest, KeepsItsFirstFormatForever) {
  const std::string stored = base::BytesFromHex("3483345a46e0911401000000000000010231303031");
  EXPECT_EQ(absl::BytesToHexString(EncodeRecord("1001", 258)), absl::BytesToHexString(stored));
  const absl::StatusOr<sync::VersionedData> record = DecodeRecord("k", stored);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->data, "1001");
  EXPECT_EQ(record->version, 258u);
}

TEST(RecordCodecTest, NoticesEveryDamagedByteAndEveryCut) {
  const std::string good = EncodeRecord("some data", 7);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string damaged = good;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x20);
    EXPECT_EQ(DecodeRecord("ids/batch", damaged).status().code(), absl::StatusCode::kDataLoss);
    const absl::Status cut = DecodeRecord("ids/batch", good.substr(0, i)).status();
    EXPECT_EQ(cut.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(cut.message()), HasSubstr("'ids/batch'"));
  }
}

TEST(RecordCodecTest, RefusesRecordsThatMakeNoSense) {
  EXPECT_EQ(DecodeRecord("k", EncodeRecord("x", sync::kAbsent)).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(DecodeRecord("k", muster::rocksdb::CheckedValue("")).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(DecodeRecord("k", muster::rocksdb::CheckedValue("\x01tail")).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST(RecordCodecTest, SaysThatANewerFormatIsNotDamage) {
  const absl::Status status =
      DecodeRecord("k", muster::rocksdb::CheckedValue("\x02whatever")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("format 2"));
}

}  // namespace
}  // namespace muster::sync::rocksdb
