// SPDX-License-Identifier: Apache-2.0
#include "muster/base/lru_map.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::base {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LruMapTest : public ::testing::Test {
 protected:
  void Add(int key) { *map_.FindOrAdd(key).first = std::to_string(key); }
  // What was used last first.
  std::vector<int> Keys() const {
    std::vector<int> keys;
    for (const auto& [key, value] : map_) keys.push_back(key);
    return keys;
  }

  LruMap<int, std::string> map_{3};
};

TEST_F(LruMapTest, DropsWhatWasUsedLeastRecently) {
  for (const int key : {1, 2, 3}) Add(key);
  EXPECT_EQ(*map_.Find(1), "1");
  Add(4);
  EXPECT_THAT(Keys(), ElementsAre(4, 1, 3));
  EXPECT_EQ(map_.Find(2), nullptr);
  EXPECT_EQ(map_.size(), 3u);
}

TEST_F(LruMapTest, APeekIsNoUse) {
  for (const int key : {1, 2, 3}) Add(key);
  EXPECT_EQ(*map_.Peek(1), "1");
  Add(4);
  EXPECT_EQ(map_.Peek(1), nullptr);
}

TEST_F(LruMapTest, FindsWhatIsThereInsteadOfAddingIt) {
  Add(1);
  const auto [value, is_new] = map_.FindOrAdd(1);
  EXPECT_FALSE(is_new);
  EXPECT_EQ(*value, "1");
  EXPECT_TRUE(map_.FindOrAdd(2).second);
}

TEST_F(LruMapTest, KeepsValuesWhereTheyAre) {
  Add(1);
  const std::string* const value = map_.Peek(1);
  Add(2);
  EXPECT_EQ(map_.Find(1), value);
}

TEST_F(LruMapTest, ErasesByKeyAndByValue) {
  for (const int key : {1, 2, 3}) Add(key);
  EXPECT_TRUE(map_.Erase(2));
  EXPECT_FALSE(map_.Erase(2));
  map_.EraseIf([](const std::string& value) { return value == "3"; });
  EXPECT_THAT(Keys(), ElementsAre(1));
  map_.DropLeastRecent();
  EXPECT_THAT(Keys(), IsEmpty());
  EXPECT_TRUE(map_.empty());
}

}  // namespace
}  // namespace muster::base
