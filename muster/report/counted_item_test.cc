// SPDX-License-Identifier: Apache-2.0
#include "muster/report/counted_item.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::report {
namespace {

using ::testing::HasSubstr;

BatchShape Shop() {
  return {1, "shop", "r1", {{"by_day", {"day"}, {{"units", true, 0}, {"revenue", false, 2}}}}};
}

std::string Refusal(const BatchShape& shape) {
  const absl::Status status = ValidateBatchShape(shape);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(ShapeTest, AcceptsKeysAndMeasures) { EXPECT_TRUE(ValidateBatchShape(Shop()).ok()); }

TEST(ShapeTest, AcceptsAJobWithoutGroups) {
  EXPECT_TRUE(ValidateBatchShape({1, "shop", "r1", {}}).ok());
}

TEST(ShapeTest, RefusesAGroupWithoutKeysOrMeasures) {
  BatchShape shape = Shop();
  shape.groups[0].keys.clear();
  EXPECT_THAT(Refusal(shape), HasSubstr("group 'by_day': a group needs a key"));
  shape = Shop();
  shape.groups[0].measures.clear();
  EXPECT_THAT(Refusal(shape), HasSubstr("needs a measure"));
}

TEST(ShapeTest, RefusesTwoColumnsThatSqlTakesForOne) {
  BatchShape shape = Shop();
  shape.groups[0].keys.push_back("UNITS");
  EXPECT_THAT(Refusal(shape), HasSubstr("'units' is used twice"));
}

TEST(ShapeTest, RefusesTwoGroupsOfOneName) {
  BatchShape shape = Shop();
  shape.groups.push_back(shape.groups[0]);
  EXPECT_THAT(Refusal(shape), HasSubstr("'by_day' is used twice"));
}

TEST(ShapeTest, RefusesNamesAndScalesOutOfBounds) {
  BatchShape shape = Shop();
  shape.groups[0].keys = {std::string(65, 'x')};
  EXPECT_THAT(Refusal(shape), HasSubstr("1 to 64 bytes"));
  shape.groups[0].keys = {std::string("a\0b", 3)};
  EXPECT_THAT(Refusal(shape), HasSubstr("NUL"));
  shape = Shop();
  shape.groups[0].measures[0].scale = 1;
  EXPECT_THAT(Refusal(shape), HasSubstr("0..0"));
  shape.groups[0].measures[0] = {"units", false, 19};
  EXPECT_THAT(Refusal(shape), HasSubstr("0..18"));
}

TEST(ShapeTest, RefusesABatchThatNoStoreCanNumber) {
  BatchShape shape = Shop();
  shape.batch = uint64_t{1} << 63;
  EXPECT_THAT(Refusal(shape), HasSubstr("out of range"));
}

}  // namespace
}  // namespace muster::report
