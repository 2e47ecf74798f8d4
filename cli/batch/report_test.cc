// SPDX-License-Identifier: Apache-2.0
#include "cli/batch/report.h"

#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// What is written of a report with one group, "by_name", of so many rows.
std::string Written(int rows, const ReportRequest& request) {
  const auto read = [rows](const report::RowVisitor& visitor) {
    const absl::Status begun = visitor.on_group({"by_name", {"name"}, {}});
    for (int row = 0; row < rows; ++row) visitor.on_row({{absl::StrCat("name ", row)}, {}});
    return begun;
  };
  std::ostringstream out;
  const absl::Status written = WriteReport(read, request, out);
  EXPECT_TRUE(written.ok()) << written;
  return out.str();
}

TEST(ReportWriterTest, SaysWithTheDataDirectoryHowToSeeTheRowsThatItLeavesOut) {
  const ReportRequest request{7, "", OutputFormat::kTable, 2, " --data-dir 'd'"};
  const std::string cut = Written(5, request);
  EXPECT_THAT(cut, EndsWith("… and 3 more: muster report 7 --group by_name --data-dir 'd'\n"));
  EXPECT_THAT(cut, Not(HasSubstr("name 2")));
  EXPECT_THAT(Written(2, request), Not(HasSubstr("more")));
}

TEST(ReportWriterTest, LeavesNothingOutUnlessItIsAsked) {
  EXPECT_THAT(Written(50, {7, "", OutputFormat::kTable}), HasSubstr("name 49"));
}

TEST(ReportWriterTest, WritesTheSameAsYamlAsItDoesAsJson) {
  EXPECT_EQ(Written(2, {7, "", OutputFormat::kYaml}),
            "batch: 7\ngroups:\n  - name: by_name\n    rows:\n      - name: \"name 0\"\n"
            "      - name: \"name 1\"\n");
  EXPECT_EQ(Written(0, {7, "", OutputFormat::kYaml}),
            "batch: 7\ngroups:\n  - name: by_name\n    rows: []\n");
  EXPECT_EQ(Written(1, {7, "", OutputFormat::kJson}),
            "{\"batch\":7,\"groups\":[{\"name\":\"by_name\",\"rows\":[{\"name\":\"name 0\"}]}]}\n");
}

}  // namespace
}  // namespace muster::cli
