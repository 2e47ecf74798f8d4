// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/batch/block_hashes.h"

#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::initiator::batch {
namespace {

using Block = BlockHashes::Block;
using ::testing::HasSubstr;

const std::string kWhole(kBlockBytes, 'w');

TEST(BlockHashesTest, KnowWhatArrivedInAnyPieces) {
  BlockHashes blocks(0);
  blocks.Append(0, "ab");
  blocks.Append(2, kWhole);
  const std::string first = ("ab" + kWhole).substr(0, kBlockBytes);
  EXPECT_EQ(blocks.At(0), (Block{0, kBlockBytes, base::Fingerprint(first)}));
  EXPECT_EQ(blocks.At(kBlockBytes - 1), blocks.At(0));
  EXPECT_EQ(blocks.At(kBlockBytes), (Block{kBlockBytes, kBlockBytes + 2, base::Fingerprint("ww")}));
}

TEST(BlockHashesTest, DoNotKnowTheBlocksOfAnEarlierProcess) {
  BlockHashes blocks(kBlockBytes + 1);
  blocks.Append(kBlockBytes + 1, kWhole + kWhole);
  EXPECT_EQ(blocks.At(0), (Block{0, kBlockBytes, std::nullopt}));
  EXPECT_EQ(blocks.At(kBlockBytes), (Block{kBlockBytes, 2 * kBlockBytes, std::nullopt}));
  EXPECT_EQ(blocks.At(2 * kBlockBytes),
            (Block{2 * kBlockBytes, 3 * kBlockBytes, base::Fingerprint(kWhole)}));
}

TEST(BlockHashesTest, ForgetWhatIsDropped) {
  BlockHashes blocks(0);
  blocks.Append(0, kWhole + kWhole + "tail");
  blocks.GoOnAt(kBlockBytes + 7);
  EXPECT_EQ(blocks.At(0).hash, base::Fingerprint(kWhole));
  EXPECT_EQ(blocks.At(kBlockBytes), (Block{kBlockBytes, kBlockBytes + 7, std::nullopt}));
  blocks.GoOnAt(kBlockBytes);
  blocks.Append(kBlockBytes, "new");
  EXPECT_EQ(blocks.At(kBlockBytes),
            (Block{kBlockBytes, kBlockBytes + 3, base::Fingerprint("new")}));
}

class TextThatChanges final : public input::ByteSource {
 public:
  uint64_t size() const override { return text.size(); }
  absl::StatusOr<size_t> Read(uint64_t offset, char* out, size_t bytes) const override {
    return input::TextSource(text).Read(offset, out, bytes);
  }

  std::string text = kWhole + kWhole + "tail";
};

TEST(CheckedSourceTest, ReadsNothingElseThanWasThere) {
  const auto changing = std::make_shared<TextThatChanges>();
  BlockHashes hashes;
  hashes.Append(0, changing->text);
  const CheckedSource source("/data/uploads/7", changing, std::move(hashes));
  std::string all(source.size() + 1, '\0');
  EXPECT_EQ(*source.Read(0, all.data(), all.size()), source.size());
  changing->text[kBlockBytes + 5] = 'x';
  char part[8];
  const absl::Status changed = source.Read(0, all.data(), all.size()).status();
  EXPECT_TRUE(absl::IsDataLoss(changed)) << changed;
  EXPECT_THAT(changed.message(),
              HasSubstr("/data/uploads/7 has changed: its bytes 262144 to 524288"));
  EXPECT_TRUE(absl::IsDataLoss(source.Read(kBlockBytes - 4, part, 8).status()));
  EXPECT_TRUE(source.Read(kBlockBytes - 8, part, 8).ok());
  EXPECT_EQ(*source.Read(2 * kBlockBytes + 2, part, 8), 2u);
  changing->text.resize(kBlockBytes + 1);
  EXPECT_TRUE(absl::IsDataLoss(source.Read(kBlockBytes, part, 1).status()));
}

}  // namespace
}  // namespace muster::initiator::batch
