#include "muster/report/schema.h"

#include "gtest/gtest.h"

namespace muster::report {
namespace {

GroupShape ByDay() {
  return {"by_day", {"day", "shop"}, {{"revenue", false, 2}, {"units", true, 0}}};
}

TEST(SchemaForm, MakesTheShapeOfAJobsSchema) {
  using Type = handler::MeasureSchema::Type;
  handler::JobSchema schema;
  schema.job = "shop";
  schema.revision = "r1";
  schema.columns = {"day", "amount"};
  schema.groups = {
      {"by_day", {"day", "shop"}, {{"revenue", Type::kDecimal, 2}, {"units", Type::kInt, 0}}}};
  const BatchShape shape = ShapeOf(7, schema);
  EXPECT_EQ(shape.batch, 7);
  EXPECT_EQ(shape.job, "shop");
  EXPECT_EQ(shape.job_revision, "r1");
  ASSERT_EQ(shape.groups.size(), 1);
  EXPECT_EQ(shape.groups[0], ByDay());
}

TEST(SchemaForm, KeepsEachGroupOnItsWay) {
  const v1::JobSchema proto = ToProto(BatchShape{7, "shop", "r1", {ByDay()}});
  EXPECT_EQ(proto.job(), "shop");
  EXPECT_EQ(proto.revision(), "r1");
  ASSERT_EQ(proto.groups_size(), 1);
  EXPECT_EQ(*FromProto(proto.groups(0)), ByDay());
}

TEST(SchemaForm, RefusesAMeasureOfNoType) {
  v1::GroupSchema proto = ToProto(ByDay());
  proto.mutable_measures(1)->clear_type();
  EXPECT_EQ(
      FromProto(proto).status(),
      absl::InvalidArgumentError("group 'by_day': measure 'units' is neither int nor decimal"));
}

}  // namespace
}  // namespace muster::report
