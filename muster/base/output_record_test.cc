// SPDX-License-Identifier: Apache-2.0
#include "muster/base/output_record.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::base {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Type = OutputColumn::Type;
using Fields = std::vector<std::string>;

const std::vector<OutputColumn>& Columns() {
  static const auto* const columns = new std::vector<OutputColumn>{
      {"note", Type::kText, 0}, {"count", Type::kInt, 0}, {"total", Type::kDecimal, 2}};
  return *columns;
}

std::string WhyNot(Fields fields) {
  return std::string(FitOutputFields(Columns(), &fields).message());
}

TEST(OutputRecordTest, BringsNumbersToTheFormOfTheirColumn) {
  Fields fields = {"é,\n\"", "+07", "1.5"};
  ASSERT_TRUE(FitOutputFields(Columns(), &fields).ok());
  EXPECT_THAT(fields, ElementsAre("é,\n\"", "7", "1.50"));
}

TEST(OutputRecordTest, TakesZerosBeyondTheDecimalsOfAColumn) {
  Fields fields = {"", "3.00", "-2.500"};
  ASSERT_TRUE(FitOutputFields(Columns(), &fields).ok());
  EXPECT_THAT(fields, ElementsAre("", "3", "-2.50"));
}

TEST(OutputRecordTest, TakesNumbersWithAnExponentAsMeasuresDo) {
  Fields fields = {"", "1E+2", "0E-8"};  // as Python prints a zero of eight decimals
  ASSERT_TRUE(FitOutputFields(Columns(), &fields).ok());
  EXPECT_THAT(fields, ElementsAre("", "100", "0.00"));
  EXPECT_EQ(WhyNot({"", "", "125e-3"}), "outputs: total: '125e-3' needs more than 2 decimals");
}

TEST(OutputRecordTest, LetsEachFieldBeAbsent) {
  Fields fields = {"", "", ""};
  ASSERT_TRUE(FitOutputFields(Columns(), &fields).ok());
  EXPECT_THAT(fields, ElementsAre("", "", ""));
}

TEST(OutputRecordTest, NamesTheColumnOfAFieldThatDoesNotFit) {
  EXPECT_EQ(WhyNot({"", "x", ""}), "outputs: count: 'x' is not a decimal number");
  EXPECT_EQ(WhyNot({"", "1.5", ""}), "outputs: count: '1.5' is not a whole number");
  EXPECT_EQ(WhyNot({"", "", "0.125"}), "outputs: total: '0.125' needs more than 2 decimals");
  EXPECT_EQ(WhyNot({"", "9223372036854775808", ""}), "outputs: count: overflows");
  EXPECT_EQ(WhyNot({"", "", std::string(38, '9')}), "outputs: total: overflows");
  EXPECT_EQ(WhyNot({"", "", std::string(39, '9')}),
            absl::StrCat("outputs: total: '", std::string(39, '9'), "' has more than 38 digits"));
  EXPECT_EQ(WhyNot({"\xff", "", ""}), "outputs: note: not UTF-8 text");
  EXPECT_EQ(WhyNot({std::string("a\0b", 3), "", ""}), "outputs: note: a NUL is not allowed");
}

TEST(OutputRecordTest, TakesTheGreatestAndTheLeastWholeNumber) {
  Fields fields = {"", "-9223372036854775808", ""};
  EXPECT_TRUE(FitOutputFields(Columns(), &fields).ok());
  fields[1] = "9223372036854775807";
  EXPECT_TRUE(FitOutputFields(Columns(), &fields).ok());
}

TEST(OutputRecordTest, RefusesARecordOfAnotherWidthOrTooLarge) {
  EXPECT_EQ(WhyNot({"a"}), "outputs: a record has 1 field, the job 3 columns");
  EXPECT_THAT(WhyNot({std::string(kMaxOutputRecordBytes, 'a'), "", ""}),
              HasSubstr("at most 65536"));
}

TEST(OutputRecordTest, NamesATypeAsAJobFileDoes) {
  EXPECT_EQ(OutputTypeName(Columns()[0]), "text");
  EXPECT_EQ(OutputTypeName(Columns()[1]), "int");
  EXPECT_EQ(OutputTypeName(Columns()[2]), "decimal(2)");
}

}  // namespace
}  // namespace muster::base
