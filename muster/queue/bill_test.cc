#include "muster/queue/bill.h"

#include "gtest/gtest.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::queue {
namespace {

TEST(BillTest, PollingCostsWhatThePapersSay) {
  const Prices prices;
  EXPECT_EQ(PollingDay(1).calls(), 79'200);
  const int64_t month = PollingDay(1).calls() * kDaysOfAMonth;
  EXPECT_EQ(ShowDollars(TransactionCost(month, prices)), "$2.38");
  const int64_t month_of_many = PollingDay(200).calls() * kDaysOfAMonth;
  EXPECT_EQ(ShowDollars(TransactionCost(month_of_many, prices)), "$475.20");
}

// The papers' own loop, for one thread: look, sleep a second, look again.
TEST(BillTest, ALoopThatPollsEachSecondMakesThatManyCallsInTheIdleHoursOfADay) {
  base::FakeClock clock;
  int64_t calls = 0;
  for (const absl::Duration end = clock.Monotonic() + absl::Hours(22); clock.Monotonic() < end;) {
    ++calls;
    clock.Advance(absl::Seconds(1));
  }
  EXPECT_EQ(calls, PollingDay(1).calls());
}

TEST(BillTest, AddsUpTransactionsAndBusMessages) {
  Usage usage;
  usage.transactions[0] = {9'000, 500};
  usage.transactions[2] = {0, 500};
  usage.bus_messages = 500'000;
  Usage twice = usage;
  twice.Add(usage);
  EXPECT_EQ(twice.total(), 20'000);
  EXPECT_EQ(twice.wasted(), 2'000);
  EXPECT_DOUBLE_EQ(Cost(twice, {}), 0.02);
  EXPECT_DOUBLE_EQ(Cost(twice, {.per_10000_transactions = 0, .per_million_bus_messages = 2}), 2);
}

TEST(BillTest, ShowsFractionsOfACentWhereTheyMatter) {
  EXPECT_EQ(ShowDollars(0), "$0.00");
  EXPECT_EQ(ShowDollars(0.00012), "$0.000120");
  EXPECT_EQ(ShowDollars(0.5), "$0.50");
}

}  // namespace
}  // namespace muster::queue
