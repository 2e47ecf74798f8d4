// SPDX-License-Identifier: Apache-2.0
#include "services/controller/report_spool.h"

#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"

namespace muster::controller {
namespace {

using ::testing::ElementsAre;

v1::GetReportResponse Page(const std::string& group) {
  v1::GetReportResponse page;
  page.mutable_schema()->set_name(group);
  return page;
}

class ReportSpoolTest : public ::testing::Test {
 protected:
  std::vector<std::string> Sent(ReportSpool* spool) {
    std::vector<std::string> sent;
    EXPECT_TRUE(spool
                    ->Send([&sent](const v1::GetReportResponse& page) {
                      sent.push_back(page.schema().name());
                      return true;
                    })
                    .ok());
    return sent;
  }

  const os::TempDir dir_;
};

TEST_F(ReportSpoolTest, SendsAShortReportFromMemory) {
  ReportSpool spool(dir_ / "not there");
  for (const char* group : {"a", "b", ""}) ASSERT_TRUE(spool.Add(Page(group)).ok());
  EXPECT_THAT(Sent(&spool), ElementsAre("a", "b", ""));
}

TEST_F(ReportSpoolTest, SendsALongReportFromAFileThatLeavesNothingBehind) {
  ReportSpool spool(dir_.path(), 100);
  std::vector<std::string> groups;
  for (int i = 0; i < 20; ++i) {
    groups.push_back(std::string(7 * i, static_cast<char>('a' + i)));
    ASSERT_TRUE(spool.Add(Page(groups.back())).ok());
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir_.path()));
  EXPECT_EQ(Sent(&spool), groups);
}

TEST_F(ReportSpoolTest, StopsWhenItsReaderHasLeft) {
  ReportSpool spool(dir_.path());
  ASSERT_TRUE(spool.Add(Page("a")).ok());
  ASSERT_TRUE(spool.Add(Page("b")).ok());
  int sent = 0;
  EXPECT_TRUE(
      absl::IsCancelled(spool.Send([&sent](const v1::GetReportResponse&) { return ++sent < 1; })));
  EXPECT_EQ(sent, 1);
}

TEST_F(ReportSpoolTest, SaysWhichFolderItCannotWriteTo) {
  ReportSpool spool(dir_ / "not there", 0);
  const absl::Status refused = spool.Add(Page("a"));
  EXPECT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.message()), ::testing::HasSubstr("not there"));
}

}  // namespace
}  // namespace muster::controller
