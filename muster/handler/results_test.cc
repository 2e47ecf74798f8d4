// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/results.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/handler/sample_item.h"
#include "tests/fakes/base/test_seed.h"

namespace muster::handler {
namespace {

using base::Decimal;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Group kByCustomer{0};
constexpr Group kByCountryMonth{1};
constexpr int64_t kMaxInt = std::numeric_limits<int64_t>::max();
constexpr int64_t kMinInt = std::numeric_limits<int64_t>::min();

Decimal Number(absl::string_view text) { return *Decimal::Parse(text); }

std::string Nines(int digits) { return std::string(static_cast<size_t>(digits), '9'); }

std::vector<std::string> Shown(const std::vector<GroupPartial>& partials) {
  std::vector<std::string> lines;
  for (const GroupPartial& partial : partials) {
    for (const PartialRow& row : partial.rows) {
      std::string line = absl::StrCat(partial.group, " ", absl::StrJoin(row.keys, "|"), ":");
      for (const Decimal& measure : row.measures) absl::StrAppend(&line, " ", measure.ToString());
      lines.push_back(line);
    }
  }
  return lines;
}

class ResultsTest : public testing::Test {
 protected:
  // Bills `amount` and `units` to a customer.
  void Bill(int transaction, absl::string_view customer, Decimal amount, Decimal units) {
    results_.Count(items_[transaction], {{kByCustomer, {customer}, {amount, units}}});
  }
  void Bill(int transaction, absl::string_view customer, absl::string_view amount,
            int64_t units = 1) {
    Bill(transaction, customer, Number(amount), Decimal::FromInt(units));
  }

  std::vector<std::string> Reasons() const {
    std::vector<std::string> reasons;
    for (const Rejection& r : results_.rejections()) {
      reasons.push_back(absl::StrCat(r.line, " ", r.reason));
    }
    return reasons;
  }

  std::vector<std::string> Rows() { return Shown(results_.TakePartials()); }

  const JobSchema schema_{
      "billing",
      "r1",
      {"customer", "amount"},
      {{"by_customer",
        {"customer"},
        {{"revenue", MeasureSchema::Type::kDecimal, 3}, {"units", MeasureSchema::Type::kInt, 0}}},
       {"by_country_month",
        {"country", "month"},
        {{"revenue", MeasureSchema::Type::kDecimal, 3}}}}};
  const SampleItem items_{{{"a"}, {"b"}, {"c"}}};
  Results results_{&schema_, items_.size()};
};

TEST_F(ResultsTest, AddsUpWhatIsCounted) {
  Bill(0, "ann", "1.5", 2);
  Bill(1, "bob", "2.25");
  Bill(2, "ann", "-0.125", -1);
  EXPECT_TRUE(results_.Verdict().ok());
  EXPECT_EQ(results_.counted(), 3);
  EXPECT_THAT(Rows(), ElementsAre("by_customer ann: 1.375 1", "by_customer bob: 2.250 1"));
}

TEST_F(ResultsTest, SortsRowsByTheirKeys) {
  for (const char* month : {"2011-11", "2010-12"}) {
    for (const char* country : {"UK", "EIRE", ""}) {
      EXPECT_TRUE(
          results_.AddRow(kByCountryMonth, std::vector<std::string>{country, month}, {Number("1")})
              .ok());
    }
  }
  EXPECT_THAT(
      Rows(),
      ElementsAre("by_country_month |2010-12: 1.000", "by_country_month |2011-11: 1.000",
                  "by_country_month EIRE|2010-12: 1.000", "by_country_month EIRE|2011-11: 1.000",
                  "by_country_month UK|2010-12: 1.000", "by_country_month UK|2011-11: 1.000"));
}

TEST_F(ResultsTest, KeepsKeysApartThatJoinToTheSameText) {
  results_.Count(items_[0], {{kByCountryMonth, {"ab", "c"}, {Number("1")}},
                             {kByCountryMonth, {"a", "bc"}, {Number("2")}}});
  EXPECT_THAT(Rows(), ElementsAre("by_country_month a|bc: 2.000", "by_country_month ab|c: 1.000"));
}

TEST_F(ResultsTest, CountsATransactionThatContributesToNothing) {
  results_.Count(items_[0], {});
  EXPECT_EQ(results_.counted(), 1);
  EXPECT_THAT(Rows(), IsEmpty());
}

TEST_F(ResultsTest, IsIncompleteUntilEachTransactionHasAVerdict) {
  Bill(0, "ann", "1");
  results_.Reject(items_[1], "no");
  EXPECT_THAT(results_.Verdict().message(), HasSubstr("transaction 2 no verdict"));
  Bill(2, "ann", "1");
  EXPECT_TRUE(results_.Verdict().ok());
}

TEST_F(ResultsTest, NamesTheTransactionWithTwoVerdictsAndAddsOnlyTheFirst) {
  Bill(0, "ann", "1");
  Bill(1, "ann", "1");
  Bill(1, "ann", "1");
  results_.Reject(items_[2], "no");
  results_.Reject(items_[2], "still no");
  EXPECT_EQ(results_.Verdict().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(results_.Verdict().message(), HasSubstr("transaction 1 two verdicts"));
  EXPECT_THAT(Rows(), ElementsAre("by_customer ann: 2.000 2"));
  EXPECT_THAT(Reasons(), ElementsAre("4 no"));
}

TEST_F(ResultsTest, RefusesATransactionOfAnotherItem) {
  const SampleItem larger({{""}, {""}, {""}, {""}});
  results_.Reject(larger[3], "no");
  results_.CountAllExceptRejected();
  EXPECT_THAT(results_.Verdict().message(), HasSubstr("transaction 3 is not of this work item"));
}

TEST_F(ResultsTest, RejectsAValueWithMoreDecimalsThanTheMeasureKeeps) {
  Bill(0, "ann", "1.2345");
  EXPECT_THAT(Reasons(), ElementsAre("2 revenue: 1.2345 needs more than 3 decimals"));
  EXPECT_EQ(results_.counted(), 0);
  EXPECT_THAT(Rows(), IsEmpty());
}

TEST_F(ResultsTest, AcceptsMoreDecimalsThatAreZeros) {
  Bill(0, "ann", "1.23400");
  EXPECT_THAT(Rows(), ElementsAre("by_customer ann: 1.234 1"));
}

TEST_F(ResultsTest, RejectsAFractionOfAnIntegerMeasure) {
  Bill(0, "ann", Number("1"), Number("1.5"));
  EXPECT_THAT(Reasons(), ElementsAre("2 units: 1.5 is not a whole number"));
}

TEST_F(ResultsTest, HoldsIntegersUpToThe64BitBounds) {
  Bill(0, "ann", "0", kMaxInt);
  Bill(1, "bob", "0", kMinInt);
  EXPECT_THAT(Rows(), ElementsAre("by_customer ann: 0.000 9223372036854775807",
                                  "by_customer bob: 0.000 -9223372036854775808"));
}

TEST_F(ResultsTest, RejectsAnIntegerBeyond64Bits) {
  Bill(0, "ann", Number("0"), Number("9223372036854775808"));
  EXPECT_THAT(Reasons(), ElementsAre("2 units: overflows"));
}

TEST_F(ResultsTest, RejectsTheTransactionWhoseIntegerSumOverflows) {
  Bill(0, "ann", "1", kMaxInt);
  Bill(1, "ann", "1", 1);
  Bill(2, "ann", "1", -1);
  EXPECT_THAT(Reasons(), ElementsAre("3 units: overflows"));
  EXPECT_THAT(Rows(), ElementsAre("by_customer ann: 2.000 9223372036854775806"));
}

TEST_F(ResultsTest, RejectsTheTransactionWhoseDecimalSumOverflows) {
  const std::string largest = absl::StrCat(Nines(35), ".", "999");
  Bill(0, "ann", largest);
  Bill(1, "ann", "0.001");
  Bill(2, "ann", absl::StrCat("-", largest));
  EXPECT_THAT(Reasons(), ElementsAre("3 revenue: overflows"));
  EXPECT_THAT(Rows(), ElementsAre("by_customer ann: 0.000 2"));
}

TEST_F(ResultsTest, RejectsAValueThatOverflowsAtTheScaleOfItsMeasure) {
  Bill(0, "ann", Nines(36));
  EXPECT_THAT(Reasons(), ElementsAre("2 revenue: overflows"));
}

TEST_F(ResultsTest, TakesBackEarlierContributionsOfATransactionThatOverflows) {
  Bill(0, "ann", "1", kMaxInt);
  results_.Count(items_[1], {{kByCountryMonth, {"UK", "2011-11"}, {Number("7")}},
                             {kByCustomer, {"ann"}, {Number("5"), Decimal::FromInt(1)}}});
  EXPECT_THAT(Reasons(), ElementsAre("3 units: overflows"));
  EXPECT_THAT(Rows(), ElementsAre("by_customer ann: 1.000 9223372036854775807"));
}

TEST_F(ResultsTest, ChecksTwoContributionsToOneRowTogether) {
  const Decimal most = Decimal::FromInt(kMaxInt);
  results_.Count(items_[0], {{kByCustomer, {"ann"}, {Number("1"), most}},
                             {kByCustomer, {"ann"}, {Number("1"), most}}});
  EXPECT_THAT(Reasons(), ElementsAre("2 units: overflows"));
  Bill(1, "ann", "3", 4);
  EXPECT_THAT(Rows(), ElementsAre("by_customer ann: 3.000 4"));
}

TEST_F(ResultsTest, RejectsAKeyThatNoReportCanShow) {
  Bill(0, "\xff", "1");
  Bill(1, absl::string_view("a\0b", 3), "1");
  Bill(2, std::string(kMaxKeyBytes + 1, 'x'), "1");
  EXPECT_THAT(Reasons(), ElementsAre("2 customer: the key is not UTF-8 text",
                                     "3 customer: a NUL is not allowed in a key",
                                     "4 customer: a key of 1025 bytes; at most 1024"));
}

TEST_F(ResultsTest, CallsAContributionOfTheWrongShapeAMistake) {
  results_.Count(items_[0], {{kByCustomer, {"ann", "UK"}, {Number("1")}}});
  results_.CountAllExceptRejected();
  EXPECT_THAT(results_.Verdict().message(),
              HasSubstr("group by_customer has 1 keys and 2 measures, not 2 and 1"));
}

TEST_F(ResultsTest, CallsAnUnknownGroupAMistake) {
  results_.Count(items_[0], {{Group{}, {"ann"}, {Number("1")}}});
  EXPECT_THAT(results_.Verdict().message(), HasSubstr("no group number -1"));
}

TEST_F(ResultsTest, MakesReasonsShortAndPrintable) {
  results_.Reject(items_[0], "bad \xff byte\n");
  results_.Reject(items_[1], std::string(kMaxReasonBytes + 1, 'x'));
  results_.Reject(items_[2], absl::StrCat(std::string(kMaxReasonBytes - 1, 'x'), "é"));
  EXPECT_EQ(results_.rejections()[0].reason, "bad ? byte?");
  EXPECT_EQ(results_.rejections()[1].reason, std::string(kMaxReasonBytes, 'x'));
  EXPECT_EQ(results_.rejections()[2].reason, std::string(kMaxReasonBytes - 1, 'x'));
}

TEST_F(ResultsTest, AddsRowsThatWereAddedUpElsewhere) {
  results_.Reject(items_[1], "no");
  EXPECT_TRUE(results_
                  .AddRow(kByCustomer, std::vector<std::string>{"ann"},
                          {Number("15.3"), Decimal::FromInt(6)})
                  .ok());
  results_.CountAllExceptRejected();
  EXPECT_TRUE(results_.Verdict().ok());
  EXPECT_EQ(results_.counted(), 2);
  EXPECT_THAT(Rows(), ElementsAre("by_customer ann: 15.300 6"));
}

TEST_F(ResultsTest, RefusesRowsThatDoNotMatchTheSchema) {
  const std::vector<std::string> ann{"ann"};
  EXPECT_EQ(results_.AddRow(Group{2}, ann, {Number("1")}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(results_.AddRow(kByCustomer, ann, {Number("1")}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(results_.AddRow(kByCustomer, ann, {Number("0.0001"), Number("1")}).message(),
            "revenue: 0.0001 needs more than 3 decimals");
  EXPECT_EQ(results_.AddRow(kByCustomer, ann, {Number("1"), Number(Nines(20))}).code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_THAT(Rows(), IsEmpty());
}

TEST_F(ResultsTest, AbsorbsWhatOneTransactionCameToAlone) {
  Bill(0, "ann", "1.5", 2);
  Results alone(&schema_, 1);
  const SampleItem one{{{"b"}}};
  alone.Count(one[0], {{kByCustomer, {"ann"}, {Number("2"), Number("3")}},
                       {kByCountryMonth, {"UK", "2011-11"}, {Number("4")}}});
  results_.Absorb(items_[1], alone);
  Results refused(&schema_, 1);
  refused.Reject(one[0], "no");
  results_.Absorb(items_[2], refused);
  EXPECT_TRUE(results_.Verdict().ok());
  EXPECT_EQ(results_.counted(), 2);
  EXPECT_THAT(Reasons(), ElementsAre("4 no"));
  EXPECT_THAT(Rows(),
              ElementsAre("by_customer ann: 3.500 5", "by_country_month UK|2011-11: 4.000"));
}

TEST_F(ResultsTest, AbsorbsNothingOfATransactionWhoseSumOverflows) {
  const SampleItem one{{{"b"}}};
  results_.Count(items_[0], {{kByCountryMonth, {"UK", "2011-11"}, {Number(Nines(35))}}});
  Results alone(&schema_, 1);
  alone.Count(one[0], {{kByCustomer, {"ann"}, {Number("2"), Number("3")}},
                       {kByCountryMonth, {"UK", "2011-11"}, {Number(Nines(35))}}});
  results_.Absorb(items_[1], alone);
  EXPECT_THAT(Reasons(), ElementsAre("3 revenue: overflows"));
  EXPECT_THAT(Rows(), ElementsAre("by_country_month UK|2011-11: " + Nines(35) + ".000"));
}

// Money is integers underneath: transactions give the same bytes in every order.
TEST(ResultsPropertyTest, EveryOrderOfTransactionsGivesTheSamePartials) {
  const uint32_t seed = base::testing::TestSeed();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  const JobSchema schema{
      "billing", "r1", {}, {{"g", {"k"}, {{"m", MeasureSchema::Type::kDecimal, 4}}}}};
  constexpr int kTransactions = 400;
  const std::vector<std::vector<std::string>> rows_of_no_fields(kTransactions);
  const SampleItem items(rows_of_no_fields);
  std::vector<std::string> keys;
  std::vector<Decimal> amounts;
  std::vector<int> order;
  for (int i = 0; i < kTransactions; ++i) {
    keys.push_back(absl::StrCat("customer ", random() % 37));
    amounts.push_back(*Decimal::FromUnits(static_cast<int64_t>(random()) / 1000, 4));
    order.push_back(i);
  }
  std::vector<std::string> expected;
  for (int round = 0; round < 20; ++round) {
    Results results(&schema, kTransactions);
    for (int i : order) {
      const auto at = static_cast<size_t>(i);
      results.Count(items[i], {{Group{0}, {keys[at]}, {amounts[at]}}});
    }
    ASSERT_TRUE(results.Verdict().ok());
    const std::vector<std::string> rows = Shown(results.TakePartials());
    if (round == 0) expected = rows;
    ASSERT_EQ(rows, expected);
    std::shuffle(order.begin(), order.end(), random);
  }
}

TEST(GroupSumsDeathTest, OnlyWhatWasAddedIsTakenBack) {
  const GroupSchema schema{
      .name = "by_customer", .keys = {"customer"}, .measures = {{.name = "lines"}}};
  GroupSums sums(&schema);
  const std::vector<absl::string_view> keys = {"acme"};
  const std::vector<Decimal> values = {Decimal::FromInt(1)};
  ASSERT_TRUE(sums.Add(keys, values).ok());
  sums.Subtract(keys, values);
  EXPECT_DEATH(sums.Subtract(keys, values), "group by_customer has no such addition");
}

class OutputsTest : public testing::Test {
 protected:
  using Type = base::OutputColumn::Type;

  // Counts the transaction with 1 for the customer, and gives these records.
  void Give(int transaction, std::vector<std::vector<std::string>> records) {
    results_.Count(items_[transaction], {{kByCustomer, {"ann"}, {Decimal::FromInt(1)}}},
                   std::move(records));
  }
  static std::vector<std::string> ShownOutputs(Results& results) {
    std::vector<std::string> lines;
    for (const base::OutputRecord& record : results.TakeOutputs()) {
      lines.push_back(absl::StrCat(record.line, ": ", absl::StrJoin(record.fields, "|")));
    }
    return lines;
  }

  const JobSchema schema_{
      "billing",
      "r1",
      {"customer"},
      {{"by_customer", {"customer"}, {{"units", MeasureSchema::Type::kInt, 0}}}},
      {{"invoice", Type::kText, 0}, {"total", Type::kDecimal, 2}}};
  const SampleItem items_{{{"a"}, {"b"}, {"c"}}};
  Results results_{&schema_, items_.size()};
};

TEST_F(OutputsTest, ComeOutInTheOrderOfTheirLines) {
  Give(2, {{"c1", "3"}});
  Give(0, {{"a1", "1.5"}, {"a2", ""}});
  Give(1, {});
  ASSERT_TRUE(results_.Verdict().ok());
  EXPECT_THAT(ShownOutputs(results_), ElementsAre(absl::StrCat(items_[0].line(), ": a1|1.50"),
                                                  absl::StrCat(items_[0].line(), ": a2|"),
                                                  absl::StrCat(items_[2].line(), ": c1|3.00")));
}

TEST_F(OutputsTest, ATransactionWithARecordThatDoesNotFitIsRejectedAndContributesToNothing) {
  Give(0, {{"a1", "1"}, {"a2", "a lot"}});
  Give(1, {{"b1", "2"}});
  Give(2, {{"c1"}});
  ASSERT_EQ(results_.rejections().size(), 2u);
  EXPECT_EQ(results_.rejections()[0].reason, "outputs: total: 'a lot' is not a decimal number");
  EXPECT_EQ(results_.rejections()[1].reason, "outputs: a record has 1 field, the job 2 columns");
  EXPECT_EQ(results_.counted(), 1);
  EXPECT_THAT(ShownOutputs(results_), ElementsAre(absl::StrCat(items_[1].line(), ": b1|2.00")));
  EXPECT_THAT(Shown(results_.TakePartials()), ElementsAre("by_customer ann: 1"));
}

TEST_F(OutputsTest, ATransactionWhoseContributionDoesNotFitGivesNoRecord) {
  results_.Count(items_[0], {{kByCustomer, {"ann"}, {Number("0.5")}}}, {{"a1", "1"}});
  EXPECT_EQ(results_.rejections().size(), 1u);
  EXPECT_THAT(ShownOutputs(results_), IsEmpty());
}

TEST_F(OutputsTest, AreBoundedForTheWholeItem) {
  const std::string large(base::kMaxOutputRecordBytes - 100, 'x');
  const size_t fit = base::kMaxItemOutputBytes / base::kMaxOutputRecordBytes;
  Give(0, std::vector<std::vector<std::string>>(fit, {large, "1"}));
  Give(1, {{large, "1"}, {large, "1"}});
  Give(2, {{"c1", "1"}});
  ASSERT_EQ(results_.rejections().size(), 1u);
  EXPECT_EQ(results_.rejections()[0].line, items_[1].line());
  EXPECT_THAT(results_.rejections()[0].reason, HasSubstr("more than 8388608 bytes"));
  EXPECT_EQ(results_.TakeOutputs().size(), fit + 1);
}

TEST_F(OutputsTest, OfATransactionThatRanAloneAreTakenOver) {
  Results alone(&schema_, 1);
  alone.Count(items_[1].Alone(), {}, {{"b1", "2"}});
  results_.Absorb(items_[1], alone);
  Results rejected(&schema_, 1);
  rejected.Count(items_[0].Alone(), {}, {{"a1", "x"}});
  results_.Absorb(items_[0], rejected);
  EXPECT_EQ(results_.rejections().size(), 1u);
  EXPECT_THAT(ShownOutputs(results_), ElementsAre(absl::StrCat(items_[1].line(), ": b1|2.00")));
}

TEST_F(ResultsTest, RejectsATransactionThatGivesARecordOfAJobWithoutOutputs) {
  results_.Count(items_[0], {}, {{"a1"}});
  EXPECT_THAT(Reasons(), ElementsAre(absl::StrCat(items_[0].line(), " outputs: the job has none")));
}

}  // namespace
}  // namespace muster::handler
