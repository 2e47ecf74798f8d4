// SPDX-License-Identifier: Apache-2.0
#include "muster/item/items_in_message.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/v1/item_result.pb.h"
#include "muster/v1/work_item.pb.h"

namespace muster::item {
namespace {

using ::testing::ElementsAre;

v1::ItemResult ResultOf(uint32_t index) {
  v1::ItemResult result;
  result.set_batch(7);
  result.set_index(index);
  result.mutable_aggregated();
  return result;
}

template <typename Form>
void AddUnknownField(Form* message) {
  message->GetReflection()->MutableUnknownFields(message)->AddVarint(900, 1);
}

TEST(ItemsInMessageTest, TellTheItemOfAWorkItem) {
  v1::WorkItem item;
  item.set_batch(7);
  item.set_index(3);
  item.set_inline_("slice");
  AddUnknownField(&item);
  const auto items = ItemsInWork(item.SerializeAsString());
  ASSERT_TRUE(items.has_value());
  EXPECT_EQ(items->batch, 7u);
  EXPECT_THAT(items->indexes, ElementsAre(3));
  EXPECT_FALSE(items->and_others);
}

TEST(ItemsInMessageTest, TellThatAWorkItemOfANewerFormMayBeMore) {
  v1::WorkItem item;
  item.set_batch(7);
  AddUnknownField(&item);
  EXPECT_TRUE(ItemsInWork(item.SerializeAsString())->and_others);
}

TEST(ItemsInMessageTest, TellTheItemsOfResults) {
  EXPECT_THAT(ItemsInResult(ResultOf(3).SerializeAsString())->indexes, ElementsAre(3));
  v1::ItemResult many;
  many.set_batch(7);
  many.add_together(ResultOf(1).SerializeAsString());
  many.add_together(ResultOf(4).SerializeAsString());
  const auto items = ItemsInResult(many.SerializeAsString());
  ASSERT_TRUE(items.has_value());
  EXPECT_EQ(items->batch, 7u);
  EXPECT_THAT(items->indexes, ElementsAre(1, 4));
  EXPECT_FALSE(items->and_others);
}

TEST(ItemsInMessageTest, TellThatResultsWhichCannotBeReadMayBeAny) {
  v1::ItemResult many;
  many.set_batch(7);
  many.add_together(ResultOf(1).SerializeAsString());
  many.add_together("\xff");
  EXPECT_TRUE(ItemsInResult(many.SerializeAsString())->and_others);
  v1::ItemResult newer;
  newer.set_batch(7);
  AddUnknownField(&newer);
  EXPECT_TRUE(ItemsInResult(newer.SerializeAsString())->and_others);
}

TEST(ItemsInMessageTest, TellNothingOfOtherBytes) {
  EXPECT_FALSE(ItemsInWork("\xff").has_value());
  EXPECT_FALSE(ItemsInResult("\xff").has_value());
  EXPECT_FALSE(ItemsInWork("").has_value());
  EXPECT_FALSE(ItemsInResult("").has_value());
}

}  // namespace
}  // namespace muster::item
