// SPDX-License-Identifier: Apache-2.0
#include "muster/blob/file/blob_codec.h"

#include <string>

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/damage.h"
#include "muster/base/fingerprint.h"
#include "muster/base/text.h"

namespace muster::blob::file {
namespace {

using ::testing::HasSubstr;

constexpr size_t kFormatAt = 20, kCodingAt = 21, kSizeAt = 22;

// Returns `file` with the right checksum for its bytes: as a hostile or newer writer would store
// it.
std::string Resealed(absl::string_view name, std::string file) {
  base::Fingerprinter fingerprinter;
  fingerprinter.Update(name);
  fingerprinter.Update(absl::string_view(file).substr(kFormatAt));
  file.replace(4, 16, base::BytesFromHex(fingerprinter.Digest().ToHex()));
  return file;
}

// Stored data has this form: if this test fails, the code cannot read data of earlier versions.
TEST(BlobCodecTest, KeepsItsFirstFormatForever) {
  const std::string raw =
      base::BytesFromHex("4d424c42324e4dc3f400f8dcdc5a3b8a72c666b201000000000000000004626f6479");
  EXPECT_EQ(absl::BytesToHexString(EncodeBlob("b", "body")), absl::BytesToHexString(raw));
  EXPECT_EQ(*DecodeBlob("b", raw), "body");
  // Other versions of zstd may compress differently; only reading must stay the same.
  const std::string compressed = base::BytesFromHex(
      "4d424c42d4ab1fafea869b7bec3cd405c221dde9010100000000000003e828b52ffd60e8024d0000107a7a0100e3"
      "2b8005");
  EXPECT_EQ(*DecodeBlob("b", compressed), std::string(1000, 'z'));
}

TEST(BlobCodecTest, CompressesWhatGetsSmaller) {
  EXPECT_LT(EncodeBlob("b", std::string(1 << 20, 'x')).size(), 1000u);
  EXPECT_EQ(EncodeBlob("b", "body").size(), 30u + 4u);
}

TEST(BlobCodecTest, NoticesEveryDamagedByteAndEveryCut) {
  for (const std::string& body : {std::string("a short one"), std::string(500, 'x')}) {
    const std::string good = EncodeBlob("orders", body);
    for (size_t i = 0; i < good.size(); ++i) {
      std::string damaged = good;
      damaged[i] = static_cast<char>(damaged[i] ^ 1);
      const absl::Status status = DecodeBlob("orders", damaged).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << i;
      EXPECT_THAT(std::string(status.message()), HasSubstr("'orders'"));
      EXPECT_EQ(DecodeBlob("orders", good.substr(0, i)).status().code(),
                absl::StatusCode::kDataLoss);
    }
    EXPECT_EQ(DecodeBlob("orders", good + "x").status().code(), absl::StatusCode::kDataLoss);
  }
}

TEST(BlobCodecTest, NoticesTheFileOfAnotherBlob) {
  const uint64_t damage = base::DamageMet(base::Damaged::kBlob);
  EXPECT_EQ(DecodeBlob("b", EncodeBlob("a", "body")).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(base::DamageMet(base::Damaged::kBlob), damage + 1);
}

// A small file that claims a huge size must not make the reader allocate that size, or decompress
// without end.
TEST(BlobCodecTest, RefusesSizesThatLie) {
  for (const std::string& body : {std::string("raw"), std::string(100'000, 'x')}) {
    for (const char byte : {'\x01', '\x7f'}) {
      std::string huge = EncodeBlob("b", body);
      huge[kSizeAt] = byte;
      EXPECT_EQ(DecodeBlob("b", Resealed("b", huge)).status().code(), absl::StatusCode::kDataLoss);
    }
    std::string small = EncodeBlob("b", body);
    small.replace(kSizeAt, 8, std::string("\0\0\0\0\0\0\0\2", 8));
    EXPECT_EQ(DecodeBlob("b", Resealed("b", small)).status().code(), absl::StatusCode::kDataLoss);
  }
}

TEST(BlobCodecTest, RefusesACodingThatIsNone) {
  std::string file = EncodeBlob("b", "body");
  file[kCodingAt] = 9;
  EXPECT_EQ(DecodeBlob("b", Resealed("b", file)).status().code(), absl::StatusCode::kDataLoss);
}

TEST(BlobCodecTest, SaysThatANewerFormatIsNotDamage) {
  std::string file = EncodeBlob("b", "body");
  file[kFormatAt] = 2;
  const absl::Status status = DecodeBlob("b", Resealed("b", file)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("format 2"));
}

}  // namespace
}  // namespace muster::blob::file
