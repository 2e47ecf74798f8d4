// SPDX-License-Identifier: Apache-2.0

// The arithmetic below the simulator: portable functions, random times, percentiles.
#include "muster/scaling/replay/distribution.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "muster/scaling/replay/metrics.h"

namespace muster::scaling::replay {
namespace {

TEST(PortableMathTest, AgreesWithTheCLibrary) {
  const base::UniformSource uniform = base::SeededUniform(7);
  for (int i = 0; i < 100'000; ++i) {
    const double x = std::pow(10, 600 * uniform() - 300);
    EXPECT_NEAR(PortableLog(x), std::log(x), 1e-14 * std::max(1.0, std::fabs(std::log(x)))) << x;
    const double y = 1400 * uniform() - 700;
    EXPECT_NEAR(PortableExp(y) / std::exp(y), 1, 1e-13) << y;
  }
  EXPECT_EQ(PortableLog(1), 0);
  EXPECT_EQ(PortableExp(0), 1);
}

TEST(PortableMathTest, YieldsTheSameBitsAsEver) {
  EXPECT_EQ(PortableLog(10), 0x1.26bb1bbb55516p+1);
  EXPECT_EQ(PortableExp(1), 0x1.5bf0a8b14576ap+1);
}

TEST(DistributionTest, HasTheMeanAndThePercentileThatItPromises) {
  for (const Shape shape : {Shape::kFixed, Shape::kExponential, Shape::kLognormal}) {
    const Distribution spread(shape, 1'000'000, 0.5);
    const base::UniformSource uniform = Stream(3, RandomStream::kService);
    std::vector<int64_t> times(200'000);
    double sum = 0;
    for (int64_t& time : times) sum += static_cast<double>(time = spread.Draw(uniform));
    EXPECT_NEAR(sum / static_cast<double>(times.size()), 1e6, 1e4);
    std::sort(times.begin(), times.end());
    const auto p95 = static_cast<double>(times[times.size() / 100 * 95]);
    EXPECT_NEAR(p95 / static_cast<double>(spread.P95Us()), 1, 0.02);
  }
}

TEST(RandomStreamsTest, DifferFromEachOtherAndFromSeedToSeed) {
  EXPECT_EQ(Stream(1, RandomStream::kService)(), Stream(1, RandomStream::kService)());
  EXPECT_NE(Stream(1, RandomStream::kService)(), Stream(2, RandomStream::kService)());
  EXPECT_NE(Stream(1, RandomStream::kService)(), Stream(1, RandomStream::kColdStart)());
}

TEST(LatencyHistogramTest, IsWithinAMillisecondOrAThousandth) {
  LatencyHistogram histogram;
  const base::UniformSource uniform = base::SeededUniform(11);
  std::vector<int64_t> all;
  for (int i = 0; i < 50'000; ++i) {
    all.push_back(static_cast<int64_t>(std::pow(10, 12 * uniform())));
    histogram.Add(all.back(), 1);
  }
  std::sort(all.begin(), all.end());
  for (const double share : {0.01, 0.5, 0.95, 0.99, 0.999}) {
    const auto exact = static_cast<double>(
        all[static_cast<size_t>(std::ceil(share * static_cast<double>(all.size()))) - 1]);
    const auto found = static_cast<double>(histogram.Percentile(share));
    EXPECT_GE(found, exact);
    EXPECT_LE(found - exact, std::max(1'000.0, exact * 0.001)) << share;
  }
  EXPECT_EQ(histogram.max_us(), all.back());
  EXPECT_EQ(histogram.Percentile(1), all.back());
}

TEST(LatencyHistogramTest, SpreadsARangeOverItsItems) {
  LatencyHistogram histogram;
  histogram.AddRange(0, 9'000'000, 10);  // 0 s, 1 s … 9 s
  EXPECT_NEAR(static_cast<double>(histogram.Percentile(0.5)), 4e6, 5e3);
  LatencyHistogram wide;
  wide.AddRange(1'000'000, 0, 1'000'000);  // either order
  EXPECT_NEAR(static_cast<double>(wide.Percentile(0.95)), 950e3, 32e3);
  EXPECT_EQ(wide.items(), 1'000'000);
  EXPECT_EQ(wide.max_us(), 1'000'000);
}

TEST(LatencyHistogramTest, MergesAsIfAllHadBeenAddedToOne) {
  LatencyHistogram one;
  LatencyHistogram other;
  LatencyHistogram both;
  one.Add(1'500, 3);
  other.Add(9'000'000'000, 2);
  both.Add(1'500, 3);
  both.Add(9'000'000'000, 2);
  one.Merge(other);
  EXPECT_EQ(one.items(), 5);
  EXPECT_EQ(one.Percentile(0.6), both.Percentile(0.6));
  EXPECT_EQ(one.Percentile(0.61), both.Percentile(0.61));
  EXPECT_EQ(LatencyHistogram().Percentile(0.5), 0);
}

}  // namespace
}  // namespace muster::scaling::replay
