// SPDX-License-Identifier: Apache-2.0
#include "muster/telemetry/registry.h"

#include <atomic>
#include <cmath>
#include <condition_variable>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/telemetry/catalogue.h"

namespace muster::telemetry {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class RegistryTest : public ::testing::Test {
 protected:
  // The value of a series; nullopt: there is none.
  static std::optional<std::string> In(const std::string& page, const std::string& series) {
    for (const absl::string_view line : absl::StrSplit(page, '\n')) {
      if (absl::StartsWith(line, absl::StrCat(series, " "))) {
        return std::string(line.substr(series.size() + 1));
      }
    }
    return std::nullopt;
  }
  std::optional<std::string> Shown(const std::string& series) {
    return In(registry_.Scrape(), series);
  }

  Registry registry_;
};

TEST_F(RegistryTest, ShowsACounterWithItsHelpTypeAndLabels) {
  const Counters<2> items(&registry_, kItems);
  items.With({"retail-in", "aggregated"}).Add(2);
  items.With({"retail-in", "aggregated"}).Add();
  const std::string page = registry_.Scrape();
  EXPECT_THAT(page, HasSubstr(absl::StrCat("# HELP muster_items_total ", kItems.help, "\n")));
  EXPECT_THAT(page, HasSubstr("# TYPE muster_items_total counter\n"));
  EXPECT_EQ(In(page, R"(muster_items_total{queue="retail-in",outcome="aggregated"})"), "3");
}

TEST_F(RegistryTest, ShowsTheTypeOfAMetricThatHasNoValueYet) {
  const Counters<2> items(&registry_, kItems);
  EXPECT_THAT(registry_.Scrape(), HasSubstr("# TYPE muster_items_total counter\n"));
}

TEST_F(RegistryTest, RecordsNothingWithoutARegistry) {
  Counters<2>(nullptr, kItems).With({"a", "b"}).Add();
  Gauges<1>(nullptr, kNatsInFlight).With({"a"}).Set(1);
  const Histogram nowhere = Histograms<0>(nullptr, kSqliteCommit).With({});
  nowhere.Observe(1);
  EXPECT_FALSE(nowhere.records());
  EXPECT_EQ(ReadAtScrape(nullptr, "a", {}, [](Samples*) { return absl::OkStatus(); }), nullptr);
}

TEST_F(RegistryTest, CountsObservationsUpToEachBound) {
  const Histogram commits = Histograms<0>(&registry_, kSqliteCommit).With({});
  EXPECT_TRUE(commits.records());
  commits.Observe(absl::Microseconds(100));
  commits.Observe(absl::Milliseconds(3));
  const std::string page = registry_.Scrape();
  EXPECT_EQ(In(page, R"(muster_sqlite_commit_seconds_bucket{le="0.0001"})"), "1");
  EXPECT_EQ(In(page, R"(muster_sqlite_commit_seconds_bucket{le="0.005"})"), "2");
  EXPECT_EQ(In(page, R"(muster_sqlite_commit_seconds_bucket{le="+Inf"})"), "2");
  EXPECT_EQ(In(page, "muster_sqlite_commit_seconds_count"), "2");
}

TEST_F(RegistryTest, ReadsAGaugeAtEachScrape) {
  int backlog = 0, reads = 0;
  const auto reading =
      ReadAtScrape(&registry_, "queues", {kQueueBacklog.entry()}, [&](Samples* samples) {
        ++reads;
        samples->Set(kQueueBacklog, {"retail-in"}, backlog);
        return absl::OkStatus();
      });
  backlog = 7;
  EXPECT_EQ(reads, 0) << "nobody has asked";
  EXPECT_EQ(Shown(R"(muster_queue_backlog{queue="retail-in"})"), "7");
  backlog = 8;
  EXPECT_EQ(Shown(R"(muster_queue_backlog{queue="retail-in"})"), "8");
  EXPECT_EQ(reads, 2);
}

TEST_F(RegistryTest, ReadsNoMoreWhenTheReadingHasEnded) {
  auto reading = ReadAtScrape(&registry_, "queues", {kQueueBacklog.entry()}, [](Samples* samples) {
    samples->Set(kQueueBacklog, {"retail-in"}, 1);
    return absl::OkStatus();
  });
  reading.reset();
  EXPECT_EQ(Shown(R"(muster_queue_backlog{queue="retail-in"})"), std::nullopt);
}

TEST_F(RegistryTest, FoldsReadingsOfOneQueueAsTheMetricSays) {
  const auto reading = ReadAtScrape(
      &registry_, "queues",
      {kQueueBacklog.entry(), kQueueOldestAge.entry(), kBatchDeadlineRemaining.entry()},
      [](Samples* samples) {
        for (const double value : {3.0, 5.0, 4.0}) {
          samples->Set(kQueueBacklog, {"q"}, value);
          samples->Set(kQueueOldestAge, {"q"}, value);
          samples->Set(kBatchDeadlineRemaining, {"q"}, value);
        }
        return absl::OkStatus();
      });
  const std::string page = registry_.Scrape();
  EXPECT_EQ(In(page, R"(muster_queue_backlog{queue="q"})"), "12");
  EXPECT_EQ(In(page, R"(muster_queue_oldest_age_seconds{queue="q"})"), "5");
  EXPECT_EQ(In(page, R"(muster_batch_deadline_remaining_seconds{queue="q"})"), "3");
}

TEST_F(RegistryTest, CountsTheScrapesThatASourceFails) {
  const auto reading = ReadAtScrape(&registry_, "queues", {kQueueBacklog.entry()}, [](Samples*) {
    return absl::UnavailableError("no connection");
  });
  registry_.Scrape();
  EXPECT_EQ(Shown(R"(muster_metrics_read_failures_total{source="queues"})"), "2");
}

// One of them in a sum would be there until the service starts anew.
TEST_F(RegistryTest, RecordsNoValueThatIsNoFiniteNumberAndSaysSo) {
  const Counter items = Counters<2>(&registry_, kItems).With({"q", "aggregated"});
  const Gauge tasks = Gauges<2>(&registry_, kDequeueTasks).With({"pool", "busy"});
  const Histogram commits = Histograms<0>(&registry_, kSqliteCommit).With({});
  items.Add(2);
  tasks.Set(3);
  commits.Observe(4);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<double> odd = {std::nan(""), kInfinity, -kInfinity};
  const auto reading =
      ReadAtScrape(&registry_, "queues", {kQueueBacklog.entry()}, [&](Samples* samples) {
        samples->Set(kQueueBacklog, {"q"}, 5);
        for (const double value : odd) samples->Set(kQueueBacklog, {"q"}, value);
        return absl::OkStatus();
      });
  for (const double value : odd) {
    items.Add(value);
    tasks.Set(value);
    tasks.Add(value);
    commits.Observe(value);
  }
  items.Add(-1);
  items.AddSeconds(absl::InfiniteDuration());
  tasks.Add(-1);
  const std::string page = registry_.Scrape();
  EXPECT_EQ(In(page, R"(muster_items_total{queue="q",outcome="aggregated"})"), "2");
  EXPECT_EQ(In(page, R"(muster_dequeue_tasks{pool="pool",state="busy"})"), "2");
  EXPECT_EQ(In(page, "muster_sqlite_commit_seconds_sum"), "4");
  EXPECT_EQ(In(page, "muster_sqlite_commit_seconds_count"), "1");
  EXPECT_EQ(In(page, R"(muster_queue_backlog{queue="q"})"), "5");
  const auto refused = [&](const char* metric) {
    return In(page, absl::StrCat("muster_metrics_refused_values_total{metric=\"", metric, "\"}"));
  };
  EXPECT_EQ(refused("muster_items_total"), "5");
  EXPECT_EQ(refused("muster_dequeue_tasks"), "6");
  EXPECT_EQ(refused("muster_sqlite_commit_seconds"), "3");
}

TEST_F(RegistryTest, PutsWhatIsOverTheLimitUnderOtherAndSaysSo) {
  const Counters<2> items(&registry_, kItems);
  for (size_t i = 0; i < kMaxSetsForNewValue + 5; ++i) {
    items.With({absl::StrCat("q", i), "aggregated"}).Add();
  }
  items.With({"q0", "dead_lettered"}).Add();         // a queue that is known
  items.With({"one-more", "dead_lettered"}).Add(2);  // the second label stays
  const std::string page = registry_.Scrape();
  EXPECT_EQ(In(page, R"(muster_items_total{queue="q0",outcome="dead_lettered"})"), "1");
  EXPECT_EQ(In(page, R"(muster_items_total{queue="q249",outcome="aggregated"})"), "1");
  EXPECT_EQ(In(page, R"(muster_items_total{queue="q250",outcome="aggregated"})"), std::nullopt);
  EXPECT_EQ(In(page, R"(muster_items_total{queue="other",outcome="aggregated"})"), "5");
  EXPECT_EQ(In(page, R"(muster_items_total{queue="other",outcome="dead_lettered"})"), "2");
  EXPECT_EQ(In(page, R"(muster_metrics_over_limit_total{metric="muster_items_total"})"), "6");
}

TEST_F(RegistryTest, PutsReadingsOverTheLimitUnderOther) {
  const auto reading =
      ReadAtScrape(&registry_, "queues", {kQueueBacklog.entry()}, [](Samples* samples) {
        for (size_t i = 0; i < kMaxValues + 3; ++i) {
          samples->Set(kQueueBacklog, {absl::StrCat("q", i)}, 2);
        }
        return absl::OkStatus();
      });
  EXPECT_EQ(Shown(R"(muster_queue_backlog{queue="other"})"), "6");
}

TEST_F(RegistryTest, BoundsAMetricWhoseOtherLabelsGrowByMistake) {
  const Counters<2> items(&registry_, kItems);
  for (size_t i = 0; i < kMaxLabelSets - 1 + 10; ++i) items.With({"q", absl::StrCat("o", i)}).Add();
  EXPECT_EQ(Shown(R"(muster_items_total{queue="other",outcome="other"})"), "10");
}

TEST_F(RegistryTest, CutsLongLabelValuesAndEscapesStrangeOnes) {
  const Counters<2> items(&registry_, kItems);
  items.With({std::string(1000, 'q'), "a\"b\\c"}).Add();
  items.With({"line\nfeed", "\xff"}).Add();
  const std::string page = registry_.Scrape();
  const std::string cut(kMaxLabelBytes, 'q');
  EXPECT_EQ(In(page, absl::StrCat("muster_items_total{queue=\"", cut, R"(",outcome="a\"b\\c"})")),
            "1");
  EXPECT_EQ(In(page, R"(muster_items_total{queue="line?feed",outcome="?"})"), "1");
}

TEST_F(RegistryTest, OneMetricOfTwoPartsIsOneFamily) {
  Counters<2>(&registry_, kItems).With({"q", "aggregated"}).Add();
  Counters<2>(&registry_, kItems).With({"q", "aggregated"}).Add();
  EXPECT_EQ(Shown(R"(muster_items_total{queue="q",outcome="aggregated"})"), "2");
}

TEST_F(RegistryTest, RecordsWhileAScrapeWaitsForAReader) {
  base::Mutex mu;
  base::CondVar changed;
  bool reads = false, may_end = false;
  const auto reading = ReadAtScrape(&registry_, "slow", {kQueueBacklog.entry()}, [&](Samples*) {
    base::MutexLock lock(&mu);
    reads = true;
    changed.NotifyAll();
    while (!may_end) changed.Wait(&mu);
    return absl::OkStatus();
  });
  std::thread scraper([&] { registry_.Scrape(); });
  {
    base::MutexLock lock(&mu);
    while (!reads) changed.Wait(&mu);
  }
  // Neither a known label set nor a new one, nor a new family, waits for the scrape.
  Counters<2>(&registry_, kItems).With({"new", "aggregated"}).Add();
  Histograms<0>(&registry_, kSqliteCommit).With({}).Observe(1);
  {
    base::MutexLock lock(&mu);
    may_end = true;
    changed.NotifyAll();
  }
  scraper.join();
  const std::string page = registry_.Scrape();
  EXPECT_EQ(In(page, "muster_items_total{queue=\"new\",outcome=\"aggregated\"}"), "1");
  EXPECT_EQ(In(page, "muster_sqlite_commit_seconds_count"), "1");
}

TEST_F(RegistryTest, ScrapesWhileOthersRecord) {
  constexpr int kThreads = 4, kRecords = 2000;
  std::atomic<bool> done = false;
  std::thread scraper([&] {
    while (!done) registry_.Scrape();
  });
  std::vector<std::thread> recorders;
  for (int i = 0; i < kThreads; ++i) {
    recorders.emplace_back([this] {
      const Counters<2> items(&registry_, kItems);
      const Histograms<1> latency(&registry_, kItemLatency);
      for (int n = 0; n < kRecords; ++n) {
        const std::string queue = absl::StrCat("q", n % 7);
        items.With({queue, "aggregated"}).Add();
        latency.With({queue}).Observe(n % 64, {1, 2, 3});
        const auto reading = ReadAtScrape(&registry_, "own", {kQueueBacklog.entry()},
                                          [](Samples*) { return absl::OkStatus(); });
      }
    });
  }
  for (std::thread& recorder : recorders) recorder.join();
  done = true;
  scraper.join();
  const std::string page = registry_.Scrape();
  double items = 0, observed = 0, sum = 0;
  const auto value = [&](const std::string& series) {
    return std::stod(In(page, series).value_or("0"));
  };
  for (int i = 0; i < 7; ++i) {
    const std::string series =
        absl::StrCat("muster_items_total{queue=\"q", i, "\",outcome=\"aggregated\"}");
    items += value(series);
    observed += value(absl::StrCat("muster_item_latency_seconds_count{queue=\"q", i, "\"}"));
    sum += value(absl::StrCat("muster_item_latency_seconds_sum{queue=\"q", i, "\"}"));
  }
  EXPECT_EQ(items, kThreads * kRecords);
  EXPECT_EQ(observed, kThreads * kRecords);
  double expected = 0;
  for (int n = 0; n < kRecords; ++n) expected += kThreads * (n % 64);
  EXPECT_EQ(sum, expected);
}

TEST_F(RegistryTest, ShowsTheLatestExemplarOfEachBucketAsOpenMetrics) {
  const Histogram latency = Histograms<1>(&registry_, kItemLatency).With({"a\"b"});
  latency.Observe(0.004);
  latency.Observe(0.02, {1, 2, 3});
  latency.Observe(0.02, {0xab, 0xcd, 0xef});
  Counters<2>(&registry_, kDuplicates).With({"q", "repeated"}).Add(2);
  const std::string page = registry_.Scrape(TextFormat::kOpenMetrics);
  EXPECT_THAT(page, HasSubstr("# TYPE muster_duplicates counter\n"));
  EXPECT_THAT(page, HasSubstr("\nmuster_duplicates_total{queue=\"q\",reason=\"repeated\"} 2\n"));
  const std::string bucket = "muster_item_latency_seconds_bucket{queue=\"a\\\"b\",le=";
  EXPECT_THAT(page, HasSubstr(bucket + "\"0.005\"} 1\n"));
  EXPECT_THAT(page,
              HasSubstr(bucket + "\"0.025\"} 3 # {trace_id=\"00000000000000ab00000000000000cd\","
                                 "span_id=\"00000000000000ef\"} 0.02"));
  EXPECT_THAT(page, HasSubstr(bucket + "\"1.0\"} 3\n"));
  EXPECT_THAT(page, HasSubstr(bucket + "\"+Inf\"} 3\n"));
  EXPECT_THAT(page, EndsWith("\n# EOF\n"));
}

TEST_F(RegistryTest, TakesASnapshotOfTheValuesThatAScrapeShows) {
  Counters<2>(&registry_, kDuplicates).With({"q", "repeated"}).Add(2);
  const Histogram latency = Histograms<1>(&registry_, kItemLatency).With({"q"});
  latency.Observe(0.004);
  latency.Observe(100'000);
  const auto reading =
      ReadAtScrape(&registry_, "queues", {kQueueBacklog.entry()}, [](Samples* samples) {
        samples->Set(kQueueBacklog, {"q"}, 7);
        return absl::OkStatus();
      });
  std::map<std::string, Point> points;
  for (const MetricSnapshot& metric : registry_.TakeSnapshot()) {
    EXPECT_FALSE(metric.points.empty()) << metric.metric.name;
    points[std::string(metric.metric.name)] = metric.points.front();
  }
  EXPECT_EQ(points["muster_duplicates_total"].value, 2);
  EXPECT_EQ(points["muster_queue_backlog"].value, 7);
  EXPECT_THAT(points["muster_queue_backlog"].labels, testing::ElementsAre("q"));
  const Point& seen = points["muster_item_latency_seconds"];
  EXPECT_EQ(seen.value, 100'000.004);
  ASSERT_EQ(seen.counts.size(), std::size(kItemSeconds) + 1);
  EXPECT_EQ(seen.counts.front(), 1);
  EXPECT_EQ(seen.counts.back(), 1);
}

using RegistryDeathTest = RegistryTest;

TEST_F(RegistryDeathTest, RefusesAMetricThatIsNotInTheCatalogue) {
  static constexpr CounterMetric<0> kUnknown{"muster_unknown_total", "things", 0, {}, "Not there"};
  EXPECT_DEATH(Counters<0>(&registry_, kUnknown), "muster_unknown_total is not in the catalogue");
}

}  // namespace
}  // namespace muster::telemetry
