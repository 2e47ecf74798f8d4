#include "cli/output/table.h"

#include <sstream>
#include <string>

#include "gtest/gtest.h"

namespace muster::cli {
namespace {

std::string Print(const Table& table) {
  std::ostringstream out;
  table.PrintTo(out);
  return out.str();
}

TEST(TableTest, PadsColumnsToTheirWidestCellAndAlignsNumbersRight) {
  Table table;
  table.AddColumn("country");
  table.AddColumn("units", Align::kRight);
  table.AddRow({"EIRE", "5"});
  table.AddRow({"Österreich", "12345"});
  EXPECT_EQ(Print(table),
            "COUNTRY     UNITS\n"
            "EIRE            5\n"
            "Österreich  12345\n");
}

TEST(TableTest, DataCannotMoveTheCursor) {
  Table table;
  table.AddColumn("name");
  table.AddRow({"evil\x1b[2J\n"});
  EXPECT_EQ(Print(table), "NAME\nevil?[2J?\n");
}

TEST(TableTest, QuotesCsvFieldsThatNeedIt) {
  Table table;
  table.AddColumn("name");
  table.AddColumn("note");
  table.AddRow({"a,b", "say \"hi\""});
  std::ostringstream out;
  table.PrintCsvTo(out);
  EXPECT_EQ(out.str(), "name,note\n\"a,b\",\"say \"\"hi\"\"\"\n");
}

TEST(TableTest, GroupsDigitsByThousands) {
  EXPECT_EQ(Grouped(0), "0");
  EXPECT_EQ(Grouped(999), "999");
  EXPECT_EQ(Grouped(1000), "1,000");
  EXPECT_EQ(Grouped(541909), "541,909");
  EXPECT_EQ(Grouped(1234567890), "1,234,567,890");
}

TEST(TableTest, CountsOneThingInTheSingular) {
  EXPECT_EQ(Counted(0, "item"), "0 items");
  EXPECT_EQ(Counted(1, "item"), "1 item");
  EXPECT_EQ(Counted(541909, "item"), "541,909 items");
}

}  // namespace
}  // namespace muster::cli
