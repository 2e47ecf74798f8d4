#include "examples/retail/handler.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "examples/retail/timestamp.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/handler/handler.h"
#include "muster/handler/sample_item.h"

namespace retail {
namespace {

using muster::handler::GroupPartial;
using muster::handler::GroupSchema;
using muster::handler::Handler;
using muster::handler::HandlerRegistry;
using muster::handler::JobSchema;
using muster::handler::MeasureSchema;
using muster::handler::Outcome;
using muster::handler::PartialRow;
using muster::handler::Rejection;
using muster::handler::Results;
using muster::handler::SampleItem;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<MeasureSchema> Measures() {
  return {{"revenue", MeasureSchema::Type::kDecimal, 3},
          {"units", MeasureSchema::Type::kInt, 0},
          {"transactions", MeasureSchema::Type::kInt, 0}};
}

class RetailTest : public testing::Test {
 protected:
  RetailTest() { RegisterRetail(registry_); }

  absl::StatusOr<std::unique_ptr<Handler>> Make() {
    return (*registry_.Find("retail"))->factory(schema_);
  }

  // Bills lines of {quantity, price, date, customer, country}.
  void Bill(std::vector<std::vector<std::string>> lines) {
    const SampleItem item(std::move(lines));
    Results results(&schema_, item.size());
    const std::unique_ptr<Handler> handler = *Make();
    EXPECT_EQ(handler->Process(item.get(), results).kind, Outcome::Kind::kOk);
    EXPECT_TRUE(results.Verdict().ok()) << results.Verdict();
    for (const Rejection& rejection : results.rejections()) {
      rejected_.push_back(absl::StrCat(rejection.line, " ", rejection.reason));
    }
    for (const GroupPartial& partial : results.TakePartials()) Show(partial);
  }

  void Show(const GroupPartial& partial) {
    for (const PartialRow& row : partial.rows) {
      std::string text = absl::StrCat(partial.group, " ", absl::StrJoin(row.keys, "|"), ":");
      for (const auto& measure : row.measures) absl::StrAppend(&text, " ", measure.ToString());
      billed_.push_back(std::move(text));
    }
  }

  HandlerRegistry registry_;
  JobSchema schema_{"retail",
                    "r1",
                    {"quantity", "price", "date", "customer", "country"},
                    {GroupSchema{"by_country_month", {"country", "month"}, Measures()},
                     GroupSchema{"by_customer", {"customer"}, Measures()}}};
  std::vector<std::string> billed_;
  std::vector<std::string> rejected_;
};

TEST_F(RetailTest, BillsQuantityTimesPriceByMonthAndByCustomer) {
  Bill({{"6", "2.55", "2010-12-01 08:26:00", "17850.0", "United Kingdom"},
        {"10", "0.125", "2011-01-31 23:59:59", "17850.0", "EIRE"}});
  EXPECT_THAT(billed_, ElementsAre("by_country_month EIRE|2011-01: 1.250 10 1",
                                   "by_country_month United Kingdom|2010-12: 15.300 6 1",
                                   "by_customer 17850.0: 16.550 16 2"));
}

TEST_F(RetailTest, TakesReturnsAndDebtsAsTheyAre) {
  Bill({{"-2", "4.00", "2010-12-01 08:26:00", "1", "UK"},
        {"1", "-11062.06", "2010-12-01 08:26:00", "1", "UK"}});
  EXPECT_THAT(billed_, ElementsAre("by_country_month UK|2010-12: -11070.060 -1 2",
                                   "by_customer 1: -11070.060 -1 2"));
}

TEST_F(RetailTest, KeepsTheBlankCustomerAsAKey) {
  Bill({{"1", "1", "2010-12-01 08:26:00", "", "UK"}});
  EXPECT_THAT(billed_,
              ElementsAre("by_country_month UK|2010-12: 1.000 1 1", "by_customer : 1.000 1 1"));
}

TEST_F(RetailTest, RejectsALineThatDoesNotParse) {
  Bill({{"x", "1", "2010-12-01 08:26:00", "1", "UK"},
        {"1.5", "1", "2010-12-01 08:26:00", "1", "UK"},
        {"1", "1e3", "2010-12-01 08:26:00", "1", "UK"},
        {"1", "", "2010-12-01 08:26:00", "1", "UK"},
        {"1", "1", "12/1/2010 8:26", "1", "UK"}});
  EXPECT_THAT(
      rejected_,
      ElementsAre("2 quantity: not a whole number: 'x'", "3 quantity: not a whole number: '1.5'",
                  "4 price: not a decimal number: '1e3'", "5 price: not a decimal number: ''",
                  "6 date: not a time like 2010-12-01 08:26:00: "
                  "'12/1/2010 8:26'"));
  EXPECT_THAT(billed_, IsEmpty());
}

TEST_F(RetailTest, RejectsWhatTheReportCannotHold) {
  const std::string digits(38, '9');
  Bill({{"1", "0.1234", "2010-12-01 08:26:00", "1", "UK"},
        {digits, "99", "2010-12-01 08:26:00", "1", "UK"},
        {"9223372036854775808", "0", "2010-12-01 08:26:00", "1", "UK"}});
  EXPECT_THAT(rejected_, ElementsAre("2 revenue: 0.1234 needs more than 3 decimals",
                                     "3 revenue: overflows", "4 units: overflows"));
  EXPECT_THAT(billed_, IsEmpty());
}

TEST_F(RetailTest, NeedsItsColumnsAndGroups) {
  schema_.columns[1] = "cost";
  EXPECT_EQ(Make().status().message(),
            "job 'retail' has no column 'price'; it has: quantity, cost, date, customer, country");
  schema_.columns[1] = "price";
  schema_.groups.pop_back();
  EXPECT_EQ(Make().status().message(),
            "job 'retail' has no group 'by_customer'; it has: by_country_month");
}

TEST(TimestampTest, AcceptsTimesOfTheCalendar) {
  for (const char* text : {"2010-12-01 08:26:00", "2012-02-29 00:00:00", "2000-02-29 23:59:59"}) {
    EXPECT_TRUE(IsTimestamp(text)) << text;
  }
}

TEST(TimestampTest, RefusesEverythingElse) {
  for (const char* text :
       {"", "2010-12-01", "2010-12-01T08:26:00", "2010-12-01 08:26:00 ", "2010-13-01 08:26:00",
        "2010-00-01 08:26:00", "2011-02-29 08:26:00", "1900-02-29 08:26:00", "2010-12-32 08:26:00",
        "2010-12-00 08:26:00", "2010-12-01 24:00:00", "2010-12-01 08:60:00", "2010-12-01 08:26:60",
        "2O10-12-01 08:26:00"}) {
    EXPECT_FALSE(IsTimestamp(text)) << text;
  }
}

}  // namespace
}  // namespace retail
