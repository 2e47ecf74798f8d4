// SPDX-License-Identifier: Apache-2.0

// Ten thousand queues, or batches by mistake: what a service keeps and shows of them is bounded,
// and no sum lacks one.
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/telemetry/catalogue.h"
#include "muster/telemetry/registry.h"

namespace muster::telemetry {
namespace {

constexpr int kQueues = 10'000;
constexpr int kEnough = 2 * kMaxLabelSets;  // so that each metric has all its sets
// All metrics of all services, each with as many label sets as it may have.
constexpr size_t kMaxPageBytes = size_t{16} << 20;

class CardinalityTest : public ::testing::Test {
 protected:
  // Records a 1 for each of the queues from `first` to before `end`.
  void Record(const Metric& metric, int first, int end) {
    Family* const family = FamilyOf(&registry_, metric);
    for (int i = first; i < end; ++i) {
      const std::string queue = absl::StrCat("queue-", i, "-in");
      std::vector<absl::string_view> values(metric.labels.size(), i % 3 == 0 ? "rare" : "usual");
      values.front() = queue;
      switch (metric.kind) {
        case Kind::kCounter:
          CounterOf(family, values).Add();
          break;
        case Kind::kGauge:
          GaugeOf(family, values).Add(1);
          break;
        case Kind::kHistogram:
          HistogramOf(family, values).Observe(1);
          break;
      }
    }
  }
  void RecordAll(int first, int end) {
    for (const Metric& metric : Catalogue()) {
      if (!metric.labels.empty() && metric.name != kOverLimit.name) Record(metric, first, end);
    }
  }
  static double SumOf(const Point& point) {
    EXPECT_EQ(std::accumulate(point.counts.begin(), point.counts.end(), uint64_t{0}),
              point.counts.empty() ? 0 : static_cast<uint64_t>(point.value));
    return point.value;
  }

  Registry registry_;
};

TEST_F(CardinalityTest, BoundsTheSetsOfEachMetricAndLosesNothingOfItsSum) {
  RecordAll(0, kQueues);
  for (const MetricSnapshot& shown : registry_.TakeSnapshot()) {
    if (shown.metric.labels.empty() || shown.metric.name == kOverLimit.name) continue;
    EXPECT_LE(shown.points.size(), 500) << shown.metric.name;
    double sum = 0, of_other = 0;
    for (const Point& point : shown.points) {
      sum += SumOf(point);
      if (point.labels.front() == kOther) of_other += SumOf(point);
    }
    EXPECT_EQ(sum, kQueues) << shown.metric.name;
    EXPECT_GT(of_other, 0) << shown.metric.name;
  }
}

TEST_F(CardinalityTest, KeepsSumsByOutcomeAndCountsWhatIsOver) {
  Record(kItems.entry(), 0, kQueues);
  double rare = 0, over = 0;
  for (const MetricSnapshot& shown : registry_.TakeSnapshot()) {
    for (const Point& point : shown.points) {
      if (shown.metric.name == kItems.name && point.labels[1] == "rare") rare += point.value;
      if (shown.metric.name == kOverLimit.name && point.labels[0] == kItems.name)
        over = point.value;
    }
  }
  EXPECT_EQ(rare, (kQueues + 2) / 3);
  EXPECT_EQ(over, kQueues - kMaxSetsForNewValue);
}

TEST_F(CardinalityTest, AQueueThatIsShownHasRoomForItsOtherOutcomes) {
  const Counters<2> items(&registry_, kItems);
  for (const char* const outcome : {"aggregated", "dead_lettered"}) {
    for (int i = 0; i < kQueues; ++i) items.With({absl::StrCat("q", i), outcome}).Add();
  }
  const std::string page = registry_.Scrape();
  EXPECT_TRUE(absl::StrContains(page, R"({queue="q200",outcome="aggregated"} 1)"));
  EXPECT_TRUE(absl::StrContains(page, R"({queue="q200",outcome="dead_lettered"} 1)"));
  EXPECT_FALSE(absl::StrContains(page, R"({queue="q300",outcome="dead_lettered"})"));
}

TEST_F(CardinalityTest, APageOfAllMetricsIsBoundedAndPrometheusReadsIt) {
  RecordAll(0, kEnough);
  const std::string page = registry_.Scrape();
  RecordProperty("page_bytes", absl::StrCat(page.size()));
  EXPECT_LT(page.size(), kMaxPageBytes);
  RecordAll(kEnough, 2 * kEnough);
  // The values have grown by digits.
  EXPECT_LT(registry_.Scrape().size(), page.size() + page.size() / 100);
  if (std::system("command -v promtool > /dev/null") != 0) GTEST_SKIP() << "there is no promtool";
  FILE* const promtool = popen("promtool check metrics", "w");
  ASSERT_NE(promtool, nullptr);
  EXPECT_EQ(fwrite(page.data(), 1, page.size(), promtool), page.size());
  EXPECT_EQ(pclose(promtool), 0);
}

}  // namespace
}  // namespace muster::telemetry
