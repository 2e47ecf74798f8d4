// SPDX-License-Identifier: Apache-2.0
#include "muster/blob/blob_store.h"

#include <string>

#include "gtest/gtest.h"

namespace muster::blob {
namespace {

TEST(BlobNameTest, IsAPlainWord) {
  for (const std::string& name : {std::string("batch-17-item-42"), std::string("A"),
                                  std::string("a.b_c"), std::string(kMaxNameBytes, 'x')}) {
    EXPECT_TRUE(ValidateBlobName(name).ok()) << name;
  }
}

TEST(BlobNameTest, CannotLeaveTheFolderOrHideInIt) {
  for (const std::string& name :
       {std::string(""), std::string("."), std::string(".."), std::string("../x"),
        std::string("/etc/passwd"), std::string("a/b"), std::string(".hidden"), std::string("a\\b"),
        std::string("a b"), std::string("a\0b", 3), std::string("caf\xc3\xa9"),
        std::string(kMaxNameBytes + 1, 'x')}) {
    EXPECT_EQ(ValidateBlobName(name).code(), absl::StatusCode::kInvalidArgument) << name;
  }
}

TEST(BlobSizeTest, IsBounded) {
  EXPECT_TRUE(ValidateBlobSize("b", kMaxBlobBytes).ok());
  EXPECT_EQ(ValidateBlobSize("b", kMaxBlobBytes + 1).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace muster::blob
