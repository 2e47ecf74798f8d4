// SPDX-License-Identifier: Apache-2.0

// A report that one controller after the other owns, each under a higher epoch.

#include <cstdint>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/status.h"
#include "muster/os/temp_dir.h"
#include "muster/report/sqlite/connection.h"
#include "muster/report/sqlite/rebuild.h"
#include "muster/report/sqlite/sqlite_report_store.h"
#include "tests/fakes/report/sqlite/sqlite_report_fixture.h"

namespace muster::report::sqlite {
namespace {

using report::ReportStore;
using ::testing::HasSubstr;

class OwnedReportTest : public SqliteReportTest {
 protected:
  std::unique_ptr<ReportStore> OpenAs(const std::string& instance, uint64_t epoch) {
    return Open({.owner = report::ReportOwner{instance, epoch}});
  }
  absl::Status OpenError(const std::string& instance, uint64_t epoch) {
    return OpenSqliteReport(path(), {.owner = report::ReportOwner{instance, epoch}}).status();
  }
};

TEST_F(OwnedReportTest, TheNextOwnerFencesEveryChangeOfTheOneBefore) {
  const auto first = OpenAs("controller-a", 1);
  ASSERT_TRUE(first->RegisterBatch(Retail()).ok());
  ASSERT_TRUE(Commit(first.get(), {Item(0, "ann", "1")}).ok());
  const auto second = OpenAs("controller-b", 2);
  const absl::Status fenced = first->Commit({"shop-out-0", 1, {Item(1, "ann", "1")}}).status();
  EXPECT_EQ(fenced.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(fenced.message()),
              HasSubstr("written by controller-b now, since epoch 2"));
  EXPECT_TRUE(absl::IsFailedPrecondition(first->RegisterBatch(Retail(8)).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(first->ReopenDeadLettered(kBatch, {})));
  EXPECT_TRUE(absl::IsFailedPrecondition(first->CancelBatch(kBatch, {})));
  EXPECT_TRUE(absl::IsFailedPrecondition(first->ForgetBatch(kBatch, 10).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(first->Complete({}).status()));
  const auto counted =
      second->Commit({"shop-out-0", 2, {Item(0, "ann", "1"), Item(1, "ann", "1")}});
  ASSERT_TRUE(counted.ok()) << counted.status();
  EXPECT_EQ(counted->progress.front().items_counted, 2);
  EXPECT_EQ(counted->progress.front().duplicates, 1);
}

TEST_F(OwnedReportTest, AnEarlierEpochOrAnotherInstanceOfTheSameIsRefused) {
  OpenAs("controller-a", 3).reset();
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenError("controller-b", 2)));
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenError("controller-b", 3)));
  EXPECT_EQ(OpenAs("controller-a", 3)->epoch(), 3u);
  EXPECT_EQ(OpenAs("controller-b", 4)->epoch(), 4u);
}

TEST_F(OwnedReportTest, TheOnlyWriterOfALocalRunGoesOnUnderTheLastEpoch) {
  EXPECT_EQ(Open()->epoch(), 1u);
  OpenAs("controller-a", 5).reset();
  EXPECT_EQ(Open()->epoch(), 5u);
  const auto owner = OpenAs("controller-a", 6);
  EXPECT_TRUE(base::IsBusy(OpenSqliteReport(path(), {}).status())) << "while there is an owner";
}

TEST_F(OwnedReportTest, ItsIdIsDrawnOnceAndSeenBesideAWriter) {
  EXPECT_TRUE(absl::IsNotFound(ReadIdentity(path()).status()));
  const auto owner = OpenAs("controller-a", 2);
  const report::ReportIdentity identity = ReadIdentity(path()).value();
  EXPECT_EQ(identity.report.size(), 16u);
  EXPECT_EQ(identity.epoch, 2u);
  EXPECT_EQ(identity.owner, "controller-a");
  OpenAs("controller-b", 3).reset();
  EXPECT_EQ(ReadIdentity(path())->report, identity.report);
  const os::TempDir other;
  ASSERT_TRUE(OpenSqliteReport(other / "report.db", {}).ok());
  EXPECT_NE(ReadIdentity(other / "report.db")->report, identity.report);
}

TEST_F(OwnedReportTest, AReportOfAnEarlierMusterGetsAnIdWhenItIsWritten) {
  Open().reset();
  {
    const auto connection = Connection::Open(path(), OpenMode::kWrite).value();
    ASSERT_TRUE(connection->Execute("DROP TABLE muster_identity").ok());
  }
  EXPECT_TRUE(absl::IsNotFound(ReadIdentity(path()).status()));
  Open().reset();
  EXPECT_TRUE(ReadIdentity(path()).ok());
}

TEST_F(OwnedReportTest, ARebuiltReportIsTheSameReport) {
  OpenAs("controller-a", 5).reset();
  const std::string id = ReadIdentity(path())->report;
  ASSERT_TRUE(Rebuild(path(), {}).ok());
  EXPECT_EQ(ReadIdentity(path())->report, id);
  EXPECT_EQ(ReadIdentity(path())->epoch, 5u);
}

}  // namespace
}  // namespace muster::report::sqlite
