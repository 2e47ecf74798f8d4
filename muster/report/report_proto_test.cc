// SPDX-License-Identifier: Apache-2.0
#include "muster/report/report_proto.h"

#include "gtest/gtest.h"
#include "muster/base/decimal.h"

namespace muster::report {

namespace {

Progress Full() {
  Progress progress;
  progress.batch = 7;
  progress.job = "shop";
  progress.job_revision = "r1";
  progress.items_counted = 2;
  progress.items_dead = 3;
  progress.transactions = 50;
  progress.aggregated = 19;
  progress.rejected = 1;
  progress.dead_lettered = 30;
  progress.duplicates = 4;
  progress.conflicts = 5;
  progress.attempts = 6;
  progress.first_counted = absl::FromUnixMicros(1323435000000042);
  progress.last_counted = absl::FromUnixMicros(1323435001000042);
  progress.receipt_revision = 8;
  progress.reopened = true;
  progress.cancelled = {absl::FromUnixMicros(1323435002000042), "sent twice"};
  progress.owner = "0123456789abcdef0123456789abcdef";
  progress.retry_of = 9;
  progress.retried_in = {10, 11};
  progress.replaces = {5, 4};
  progress.replaced_by = 12;
  return progress;
}

// The message has one field for each member: a change of one needs the same change of the other.
TEST(ProgressForm, CarriesEveryField) {
  const v1::CountingProgress proto = ToProto(Full());
  for (int i = 0; i < v1::CountingProgress::descriptor()->field_count(); ++i) {
    const auto* const field = v1::CountingProgress::descriptor()->field(i);
    const auto& reflection = *proto.GetReflection();
    EXPECT_TRUE(field->is_repeated() ? reflection.FieldSize(proto, field) > 0
                                     : reflection.HasField(proto, field))
        << field->name();
  }
  EXPECT_EQ(ToProto(FromProto(proto)).SerializeAsString(), proto.SerializeAsString());
  EXPECT_EQ(FromProto(proto).last_counted, Full().last_counted);
  EXPECT_EQ(FromProto(proto).conflicts, 5);
  EXPECT_EQ(FromProto(proto).cancelled->when, Full().cancelled->when);
}

TEST(ProgressForm, LeavesTimesUnsetWhileNothingWasCounted) {
  const v1::CountingProgress proto = ToProto(Progress{});
  EXPECT_FALSE(proto.has_first_counted());
  EXPECT_FALSE(FromProto(proto).last_counted.has_value());
  EXPECT_FALSE(FromProto(proto).cancelled.has_value());
}

const GroupShape& ByCustomer() {
  static const auto* const shape =
      new GroupShape{"by_customer", {"customer"}, {{"revenue", false, 2}}};
  return *shape;
}

TEST(RowForm, KeepsDecimalsAndScale) {
  const GroupRow row{{"ann"}, {*base::Decimal::Parse("-15.30")}};
  const v1::PartialRow proto = ToProto(row);
  EXPECT_EQ(proto.measures(0), "-15.30");
  const absl::StatusOr<GroupRow> back = FromProto(proto, ByCustomer());
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->keys, row.keys);
  EXPECT_EQ(back->measures[0].ToString(), "-15.30");
}

TEST(RowForm, RefusesARowOfAnotherGroup) {
  v1::PartialRow proto;
  proto.add_keys("ann");
  EXPECT_TRUE(absl::IsDataLoss(FromProto(proto, ByCustomer()).status()));
  proto.add_measures("1.00");
  EXPECT_TRUE(FromProto(proto, ByCustomer()).ok());
  proto.add_keys("bob");
  EXPECT_TRUE(absl::IsDataLoss(FromProto(proto, ByCustomer()).status()));
}

TEST(RowForm, RefusesAMeasureThatIsNoNumber) {
  v1::PartialRow proto;
  proto.add_keys("ann");
  proto.add_measures("1e6");
  EXPECT_EQ(FromProto(proto, ByCustomer()).status(),
            absl::DataLossError("group 'by_customer': '1e6' is no number"));
}

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
