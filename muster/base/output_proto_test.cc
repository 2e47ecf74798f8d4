// SPDX-License-Identifier: Apache-2.0
#include "muster/base/output_proto.h"

#include "gtest/gtest.h"

namespace muster::base {
namespace {

TEST(OutputProtoTest, KeepsColumnsOfEachType) {
  for (const OutputColumn& column : {OutputColumn{"note", OutputColumn::Type::kText, 0},
                                     OutputColumn{"count", OutputColumn::Type::kInt, 0},
                                     OutputColumn{"total", OutputColumn::Type::kDecimal, 18}}) {
    EXPECT_EQ(*FromProto(ToProto(column)), column);
  }
}

TEST(OutputProtoTest, RefusesATypeThatItDoesNotKnow) {
  v1::OutputColumn column;
  column.set_name("when");
  EXPECT_EQ(FromProto(column).status().message(),
            "output column 'when' is neither text nor int nor decimal");
}

TEST(OutputProtoTest, KeepsRecords) {
  const OutputRecord record{7, {"a\nb", "", "1.50"}};
  EXPECT_EQ(FromProto(ToProto(record)), record);
}

}  // namespace
}  // namespace muster::base
