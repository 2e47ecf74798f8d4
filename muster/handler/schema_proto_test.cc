// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/schema_proto.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::handler {
namespace {

using ::testing::ElementsAre;

TEST(SchemaTest, SaysAllThatAHandlerMustKnowInTheJobsOrder) {
  using Type = MeasureSchema::Type;
  const v1::JobSchema proto =
      ToProto({.job = "retail",
               .revision = "abc",
               .columns = {"b", "a"},
               .groups = {{"by_day",
                           {"day", "city"},
                           {{"count", Type::kInt, 0}, {"revenue", Type::kDecimal, 3}}}}});
  EXPECT_EQ(proto.job(), "retail");
  EXPECT_EQ(proto.revision(), "abc");
  EXPECT_THAT(proto.columns(), ElementsAre("b", "a"));
  ASSERT_EQ(proto.groups_size(), 1);
  EXPECT_EQ(proto.groups(0).name(), "by_day");
  EXPECT_THAT(proto.groups(0).keys(), ElementsAre("day", "city"));
  ASSERT_EQ(proto.groups(0).measures_size(), 2);
  EXPECT_EQ(proto.groups(0).measures(0).type(), v1::MEASURE_TYPE_INT);
  EXPECT_EQ(proto.groups(0).measures(1).name(), "revenue");
  EXPECT_EQ(proto.groups(0).measures(1).type(), v1::MEASURE_TYPE_DECIMAL);
  EXPECT_EQ(proto.groups(0).measures(1).scale(), 3);
}

}  // namespace
}  // namespace muster::handler
