// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/paging.h"

#include "gtest/gtest.h"

namespace muster::rpc {
namespace {

struct Entry {
  size_t bytes;
  size_t ByteSizeLong() const { return bytes; }
};

TEST(PageSizeTest, IsTheDefaultWhereTheRequestNamesNone) {
  EXPECT_EQ(PageSize(0), kDefaultPageSize);
  EXPECT_EQ(PageSize(1), 1);
  EXPECT_EQ(PageSize(kMaxPageSize), kMaxPageSize);
}

TEST(PageSizeTest, RefusesWhatIsOutOfBounds) {
  EXPECT_EQ(PageSize(-1), std::nullopt);
  EXPECT_EQ(PageSize(kMaxPageSize + 1), std::nullopt);
}

TEST(AnswerRoomTest, TakesTheFirstEntryAndThenWhatFits) {
  AnswerRoom room;
  EXPECT_TRUE(room.Take(Entry{kMaxAnswerBytes - 1}));
  EXPECT_TRUE(room.Take(Entry{1}));
  EXPECT_FALSE(room.Take(Entry{1}));
  EXPECT_TRUE(AnswerRoom().Take(Entry{2 * kMaxAnswerBytes}));
}

}  // namespace
}  // namespace muster::rpc
