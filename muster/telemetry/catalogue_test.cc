// SPDX-License-Identifier: Apache-2.0
#include "muster/telemetry/catalogue.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::telemetry {
namespace {

std::string ReadSource(const std::string& path) {
  std::ifstream file(absl::StrCat(MUSTER_SOURCE_DIR, "/", path));
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(CatalogueTest, ListsEachMetricOfItsHeaderOnce) {
  const std::string header = ReadSource("muster/telemetry/catalogue.h");
  const std::regex name("k\\w+\\{\\s*\"([a-z_]+)\"");
  std::multiset<std::string> named;
  for (std::sregex_iterator i(header.begin(), header.end(), name), end; i != end; ++i) {
    named.insert((*i)[1]);
  }
  std::multiset<std::string> listed;
  for (const Metric& metric : Catalogue()) listed.insert(std::string(metric.name));
  EXPECT_EQ(listed, named);
  EXPECT_EQ(std::set<std::string>(listed.begin(), listed.end()).size(), listed.size());
}

TEST(CatalogueTest, NamesMetricsAsPrometheusDoes) {
  for (const Metric& metric : Catalogue()) {
    SCOPED_TRACE(metric.name);
    const bool is_total = absl::EndsWith(metric.name, "_total");
    EXPECT_EQ(is_total, metric.kind == Kind::kCounter);
    EXPECT_EQ(absl::StrContains(metric.name, "_seconds"), metric.unit == "seconds");
    EXPECT_EQ(absl::EndsWith(metric.name, "_bytes"), metric.unit == "bytes");
    EXPECT_EQ(!metric.buckets.empty(), metric.kind == Kind::kHistogram);
    EXPECT_TRUE(std::is_sorted(metric.buckets.begin(), metric.buckets.end()));
    EXPECT_FALSE(metric.help.empty());
    EXPECT_FALSE(absl::EndsWith(metric.help, ".")) << "the page adds the full stop";
    EXPECT_NE(metric.services, 0U) << "some service has it";
    for (const absl::string_view label : metric.labels) {
      EXPECT_FALSE(absl::StrContains(label, "batch")) << "there are too many batches";
      EXPECT_NE(label, "le");
    }
  }
}

// "initiator, scaling agent".
std::string ServicesOf(const Metric& metric) {
  if (metric.services == kEveryService) return "every";
  std::vector<absl::string_view> names;
  if ((metric.services & kInitiator) != 0) names.push_back("initiator");
  if ((metric.services & kController) != 0) names.push_back("controller");
  if ((metric.services & kProcessor) != 0) names.push_back("processor");
  if ((metric.services & kScalingAgent) != 0) names.push_back("scaling agent");
  if ((metric.services & kQueueGateway) != 0) names.push_back("queue gateway");
  return absl::StrJoin(names, ", ");
}

// The metric as a row of docs/operations/metrics.md.
std::string RowOf(const Metric& metric) {
  return absl::StrCat("| `", metric.name, "` | ", KindName(metric.kind), " | ", metric.unit, " | ",
                      absl::StrJoin(metric.labels, ", "), " | ", ServicesOf(metric), " | ",
                      metric.help, ". |");
}

// A row that is missing or wrong in the page is to be copied from what this test says.
TEST(CatalogueTest, IsTheReferenceOnThePage) {
  std::vector<std::string> rows, expected;
  const std::string page = ReadSource("docs/operations/metrics.md");
  for (const absl::string_view line : absl::StrSplit(page, '\n')) {
    if (absl::StartsWith(line, "| `")) rows.emplace_back(line);
  }
  for (const Metric& metric : Catalogue()) expected.push_back(RowOf(metric));
  EXPECT_EQ(rows, expected) << absl::StrJoin(expected, "\n");
}

}  // namespace
}  // namespace muster::telemetry
