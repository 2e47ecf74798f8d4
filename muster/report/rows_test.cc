#include "muster/report/rows.h"

#include "gtest/gtest.h"
#include "muster/base/decimal.h"

namespace muster::report {
namespace {

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

}  // namespace
}  // namespace muster::report
