// SPDX-License-Identifier: Apache-2.0

// An item whose sum would overflow is given up with its cause; the other items count, and no sum
// ever wraps.
#include <limits>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/conformance/report/report_conformance.h"

namespace muster::report::conformance {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

// The most that 38 digits hold with two decimals.
std::string MostRevenue() { return std::string(36, '9') + ".99"; }

}  // namespace

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void LinkOverflowTests() {}

TEST_P(ReportConformanceTest, GivesUpTheItemThatOverflowsAnInt) {
  Commit({Item(0, "ann", "1", kMost)});
  const CommitSummary summary =
      CommitAll({Item(1, "bob", "1", -5), Item(2, "ann", "1", 6), Item(3, "cid", "1", 1)});
  EXPECT_EQ(summary.verdicts[0].verdict, Verdict::kCounted);
  EXPECT_EQ(summary.verdicts[1].verdict, Verdict::kRefused);
  EXPECT_THAT(summary.verdicts[1].why, HasSubstr("by_customer"));
  EXPECT_EQ(summary.verdicts[2].verdict, Verdict::kCounted);
  EXPECT_THAT(Rows("by_customer"),
              ElementsAre(absl::StrCat("ann: 1.00 ", kMost), "bob: 1.00 -5", "cid: 1.00 1"));
  EXPECT_THAT(Rows("by_day"), ElementsAre(absl::StrCat("monday|a: ", kMost - 4)));
  EXPECT_EQ(GetProgress().items_dead, 1);
  EXPECT_EQ(GetProgress().dead_lettered, 10);
  EXPECT_THAT(Items()[2].cause, HasSubstr("by_customer"));
  EXPECT_THAT(Rejections(), ElementsAre("1 no price", "11 no price", "31 no price"));
}

TEST_P(ReportConformanceTest, GivesUpTheItemThatOverflowsADecimal) {
  EXPECT_THAT(Commit({Item(0, "ann", "-0.01", 1), Item(1, "ann", MostRevenue(), 1),
                      Item(2, "ann", "0.01", 1)}),
              ElementsAre(Verdict::kCounted, Verdict::kCounted, Verdict::kCounted));
  EXPECT_THAT(Commit({Item(3, "ann", "0.01", 1)}), ElementsAre(Verdict::kRefused));
  EXPECT_THAT(Rows("by_customer"), ElementsAre(absl::StrCat("ann: ", MostRevenue(), " 3")));
}

TEST_P(ReportConformanceTest, FindsTheOverflowWithinOneCommit) {
  EXPECT_THAT(Commit({Item(0, "ann", MostRevenue(), 1), Item(1, "ann", MostRevenue(), 1),
                      Item(2, "ann", "-1", 1)}),
              ElementsAre(Verdict::kCounted, Verdict::kRefused, Verdict::kCounted));
  EXPECT_EQ(GetProgress().items_counted, 2);
}

TEST_P(ReportConformanceTest, DropsTheSameOverflowDeliveredAgain) {
  Commit({Item(0, "ann", "1", kMost), Item(1, "ann", "1", 1)});
  EXPECT_THAT(Commit({Item(1, "ann", "1", 1), Item(2, "bob", "1", 0)}),
              ElementsAre(Verdict::kDuplicate, Verdict::kCounted));
  EXPECT_EQ(GetProgress().items_dead, 1);
}

TEST_P(ReportConformanceTest, GivesUpAnItemThatDoesNotFitItsGroups) {
  CountedItem unknown = Item(0, "ann", "1", 1);
  unknown.groups[0].group = "by_moon";
  CountedItem keys = Item(1, "ann", "1", 1);
  keys.groups[0].rows[0].keys.push_back("more");
  CountedItem measures = Item(2, "ann", "1", 1);
  measures.groups[0].rows[0].measures.pop_back();
  CountedItem decimals = Item(3, "ann", "1.001", 1);
  const CommitSummary summary =
      CommitAll({unknown, keys, measures, decimals, Item(4, "ann", "1", 1)});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(summary.verdicts[i].verdict, Verdict::kRefused) << i;
  EXPECT_THAT(summary.verdicts[0].why, HasSubstr("by_moon"));
  EXPECT_THAT(summary.verdicts[3].why, HasSubstr("1.001"));
  EXPECT_EQ(summary.verdicts[4].verdict, Verdict::kCounted);
  EXPECT_THAT(Rows("by_customer"), ElementsAre("ann: 1.00 1"));
}

TEST_P(ReportConformanceTest, GivesUpAnItemWhoseCountsDoNotAddUp) {
  CountedItem item = Item(0, "ann", "1", 1);
  item.aggregated = 8;
  EXPECT_THAT(Commit({item}), ElementsAre(Verdict::kRefused));
  EXPECT_EQ(GetProgress().transactions, 10);
  EXPECT_EQ(GetProgress().dead_lettered, 10);
}

TEST_P(ReportConformanceTest, TakesTrailingZerosBeyondTheScale) {
  EXPECT_THAT(Commit({Item(0, "ann", "1.2500", 1)}), ElementsAre(Verdict::kCounted));
  EXPECT_THAT(Rows("by_customer"), ElementsAre("ann: 1.25 1"));
}

}  // namespace muster::report::conformance
