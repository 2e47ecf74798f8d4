// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/handler.h"

#include "gtest/gtest.h"
#include "muster/handler/sample_item.h"

namespace muster::handler {
namespace {

TEST(HandlerRegistryTest, FindsAHandlerByItsName) {
  HandlerRegistry registry;
  registry.Register({"retail", "1", nullptr});
  registry.Register({"billing", "7", nullptr});
  ASSERT_TRUE(registry.Find("billing").ok());
  EXPECT_EQ((*registry.Find("billing"))->version, "7");
}

TEST(HandlerRegistryTest, KeepsTheLaterOfTwoOfTheSameName) {
  HandlerRegistry registry;
  registry.Register({"retail", "1", nullptr});
  registry.Register({"retail", "2", nullptr});
  EXPECT_EQ((*registry.Find("retail"))->version, "2");
}

TEST(HandlerRegistryTest, NamesTheHandlersThatThereAre) {
  HandlerRegistry registry;
  EXPECT_EQ(registry.Find("x").status().message(), "this program has no handler 'x'; it has: none");
  registry.Register({"retail", "1", nullptr});
  registry.Register({"billing", "1", nullptr});
  EXPECT_EQ(registry.Find("x").status().message(),
            "this program has no handler 'x'; it has: billing, retail");
  EXPECT_EQ(registry.Find("retial").status().message(),
            "this program has no handler 'retial'; it has: billing, retail; did you mean "
            "'retail'?");
  EXPECT_EQ(registry.Find("x").status().code(), absl::StatusCode::kNotFound);
}

TEST(JobSchemaTest, FindsColumnsAndGroups) {
  const JobSchema schema{
      "retail", "r1", {"quantity", "price"}, {{"a", {"k"}, {}}, {"b", {"k"}, {}}}};
  EXPECT_EQ(schema.FindColumn("price")->index, 1);
  EXPECT_EQ(schema.FindGroup("b")->index, 1);
}

TEST(JobSchemaTest, NamesTheColumnsAndGroupsThatThereAre) {
  const JobSchema schema{"retail", "r1", {"quantity", "price"}, {}};
  EXPECT_EQ(schema.FindColumn("prise").status().message(),
            "job 'retail' has no column 'prise'; it has: quantity, price");
  EXPECT_EQ(schema.FindGroup("x").status().message(),
            "job 'retail' has no group 'x'; it has: none");
  EXPECT_EQ(schema.FindGroup("x").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(WorkItemTest, IsIdentifiedByBatchAndIndex) {
  ItemContext context;
  context.batch = 12;
  context.index = 7;
  EXPECT_EQ(SampleItem({}, context).get().id(), "12/7");
  context.only_line = 3501;
  EXPECT_EQ(SampleItem({}, context).get().id(), "12/7:3501");
}

}  // namespace
}  // namespace muster::handler
