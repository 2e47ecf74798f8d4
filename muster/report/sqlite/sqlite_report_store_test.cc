// SPDX-License-Identifier: Apache-2.0

// SQLite's own matters: the file, its tables, and behavior when the file is damaged or the disk is
// full.

#include "muster/report/sqlite/sqlite_report_store.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/status.h"
#include "muster/os/temp_dir.h"
#include "muster/report/report_client.h"
#include "muster/report/sqlite/batch_rows.h"
#include "muster/report/sqlite/connection.h"
#include "muster/report/sqlite/rebuild.h"
#include "tests/fakes/report/sqlite/sqlite_report_fixture.h"
#include "tests/fakes/telemetry/shown.h"

namespace muster::report::sqlite {
namespace {

using report::BatchShape;
using report::CountedItem;
using report::ReportStore;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(SqliteReportTest, TheViewsTakeBackThatARedrivenBatchIsComplete) {
  auto store = Open();
  ASSERT_TRUE(store->RegisterBatch(Retail()).ok());
  CountedItem dead = report::DeadLettered(Item(0, "ann", "1"), "no");
  ASSERT_TRUE(Commit(store.get(), {dead}).ok());
  report::BatchFacts facts;
  facts.batch = kBatch;
  facts.job = "retail";
  facts.job_revision = "r1";
  facts.items = 1;
  facts.transactions = 2;
  ASSERT_TRUE(store->Complete(facts).ok());
  const std::string revision = "SELECT receipt_revision FROM muster_batches";
  EXPECT_THAT(Query(revision, 1), ElementsAre("1"));
  ASSERT_TRUE(store->ReopenDeadLettered(kBatch, {0}).ok());
  EXPECT_THAT(Query(revision, 1), ElementsAre("0"));
  EXPECT_THAT(Query("SELECT batch FROM muster_current", 1), IsEmpty());
  ASSERT_TRUE(Commit(store.get(), {dead}).ok());
  ASSERT_TRUE(store->Complete(facts).ok());
  EXPECT_THAT(Query(revision, 1), ElementsAre(Not("0")));
  EXPECT_THAT(Query("SELECT batch FROM muster_current", 1), ElementsAre("7"));
}

TEST_F(SqliteReportTest, AReportOfAnOlderMusterGetsTheViewsOfToday) {
  Open().reset();
  Execute(
      "DROP VIEW muster_current; DROP VIEW muster_batches; "
      "CREATE VIEW muster_batches AS SELECT batch, receipt_revision FROM muster_batch; "
      "DROP TABLE muster_reopened; DROP TABLE muster_replaced");
  auto store = Open();
  ASSERT_TRUE(store->RegisterBatch(Retail()).ok());
  EXPECT_THAT(Query("SELECT batch, job FROM muster_batches", 2), ElementsAre("7|retail"));
  EXPECT_THAT(Query("SELECT batch FROM muster_current", 1), IsEmpty());
}

TEST_F(SqliteReportTest, PeopleReadOneTablePerGroup) {
  WriteBatch();
  EXPECT_THAT(Query("SELECT * FROM by_customer", 4),
              ElementsAre("7||-0.001|4", "7|17850.0|12.500|4"));
  EXPECT_THAT(Query("SELECT customer, revenue FROM by_customer WHERE units > 3", 2),
              ElementsAre("|-0.001", "17850.0|12.500"));
  EXPECT_THAT(Query("SELECT batch, job, transactions, aggregated, rejected FROM muster_batches", 5),
              ElementsAre("7|retail|4|2|2"));
  EXPECT_THAT(Query("SELECT item, outcome, content FROM muster_items", 3),
              ElementsAre("0|aggregated|" + base::Fingerprint("0").ToHex(),
                          "1|aggregated|" + base::Fingerprint("1").ToHex()));
  EXPECT_THAT(Query("SELECT item, line, reason FROM muster_rejections", 3),
              ElementsAre("0|2|price: 'x'", "1|3|price: 'x'"));
  EXPECT_THAT(Query("SELECT last_counted FROM muster_batches", 1)[0], HasSubstr("T"));
}

TEST_F(SqliteReportTest, ShowsItsCommitsAndItsLog) {
  telemetry::Registry registry;
  const auto store = Open({.metrics = &registry});
  ASSERT_TRUE(store->RegisterBatch(Retail()).ok());
  ASSERT_TRUE(Commit(store.get(), {Item(0, "ann", "1.5")}).ok());
  EXPECT_EQ(telemetry::Shown(registry, "muster_sqlite_commit_seconds_count"), 1);
  EXPECT_GT(telemetry::Shown(registry, "muster_sqlite_wal_bytes"), 0);
}

TEST_F(SqliteReportTest, ReceiptCanBeCheckedWithoutMuster) {
  WriteBatch();
  const std::string text = Query("SELECT text FROM muster_receipts", 1)[0];
  EXPECT_EQ(base::Sha256Hex(text), Query("SELECT checksum FROM muster_receipts", 1)[0]);
}

TEST_F(SqliteReportTest, AnotherJobsGroupGetsALongerTableName) {
  std::unique_ptr<ReportStore> store = Open();
  BatchShape changed = Retail(9, "other");
  changed.job_revision = "r2";
  changed.groups[0].keys = {"who"};
  ASSERT_TRUE(store->RegisterBatch(Retail(7)).ok());
  ASSERT_TRUE(store->RegisterBatch(Retail(8, "other")).ok());
  ASSERT_TRUE(store->RegisterBatch(changed).ok());
  EXPECT_THAT(Query("SELECT name FROM muster_table ORDER BY name", 1),
              ElementsAre("by_customer", "other_by_customer", "other_by_customer_2"));
}

TEST_F(SqliteReportTest, ReadOnlyNeedsAReport) {
  EXPECT_EQ(OpenSqliteReport(path(), {.read_only = true}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(SqliteReportTest, RefusesTheReportOfANewerMuster) {
  Open().reset();
  Execute("PRAGMA user_version = 3");
  const auto store = OpenSqliteReport(path());
  EXPECT_EQ(store.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("newer muster"));
}

// Its tables and rows are as they were; what it had no table for, it has none of.
TEST_F(SqliteReportTest, ReadsAndGoesOnWithAReportFromBeforeCancellations) {
  WriteBatch();
  Execute("DROP TABLE muster_cancelled");
  EXPECT_THAT(Differences(), IsEmpty()) << "read-only";
  const std::unique_ptr<ReportStore> store = Open();
  ASSERT_TRUE(store->RegisterBatch(Retail(8)).ok());
  EXPECT_TRUE(store->CancelBatch(8, {absl::FromUnixSeconds(1), "unwanted"}).ok());
  EXPECT_TRUE((*store->Read())->GetProgress(8)->cancelled.has_value());
}

TEST_F(SqliteReportTest, ReadsAndGoesOnWithAReportFromBeforeOutputs) {
  WriteBatch();
  Execute("DROP TABLE muster_output; DROP TABLE muster_output_column");
  {
    const auto reader = *Open({.read_only = true})->Read();
    EXPECT_THAT(*reader->OutputColumns(kBatch), IsEmpty());
    const auto next = reader->ReadOutputs(kBatch, {}, 1, [](const auto&) { FAIL(); });
    EXPECT_TRUE(next.ok() && !next->has_value()) << next.status();
  }
  ASSERT_TRUE(Rebuild(path(), {kBatch}).ok());
  EXPECT_THAT(Differences(), IsEmpty());
}

TEST_F(SqliteReportTest, ReadsAndGoesOnWithAReportFromBeforeRetries) {
  WriteRetry();
  Execute("DROP TABLE muster_retry; DROP TABLE muster_retried_line");
  {
    const auto reader = *Open({.read_only = true})->Read();
    EXPECT_EQ(RetriedLine(*reader), 0);
    EXPECT_THAT(reader->GetProgress(8)->retried_in, IsEmpty());
    EXPECT_THAT(*reader->ClaimedRejections(8, 1, {}, 10), IsEmpty());
  }
  const std::unique_ptr<ReportStore> store = Open();
  EXPECT_EQ(store->ClaimRejections(8, {{41}}, 10).value().claims.at(0).transactions, 1);
}

TEST_F(SqliteReportTest, ARebuiltReportHasTheRetriesOfTheBatchesThatItKeeps) {
  WriteRetry();
  ASSERT_TRUE(Rebuild(path(), {8, 9}).ok());
  {
    const auto reader = *Open({.read_only = true})->Read();
    EXPECT_EQ(RetriedLine(*reader), 41);
    EXPECT_EQ(reader->GetProgress(9)->retry_of, 8);
  }
  ASSERT_TRUE(Rebuild(path(), {9}).ok());
  const auto reader = *Open({.read_only = true})->Read();
  EXPECT_EQ(RetriedLine(*reader), 0);
  EXPECT_EQ(reader->GetProgress(9)->retry_of, 0);
}

TEST_F(SqliteReportTest, ARebuiltReportHasTheOutputsOfTheBatchesThatItKeeps) {
  BatchShape shape = Retail(8);
  shape.job_revision = "r2";
  shape.outputs = {{"note", base::OutputColumn::Type::kText, 0}};
  {
    const std::unique_ptr<ReportStore> store = Open();
    ASSERT_TRUE(store->RegisterBatch(shape).ok());
    CountedItem item = Item(0, "ann", "1");
    item.batch = 8;
    item.outputs = std::vector<base::OutputRecord>{{2, {"a"}}, {3, {"b"}}};
    ASSERT_TRUE(Commit(store.get(), {item}).ok());
  }
  ASSERT_TRUE(Rebuild(path(), {8}).ok());
  const auto reader = *Open({.read_only = true})->Read();
  EXPECT_EQ(*reader->OutputColumns(8), shape.outputs);
  std::vector<std::string> notes;
  const auto next = reader->ReadOutputs(
      8, {}, 1, [&](const base::OutputRecord& record) { notes.push_back(record.fields.at(0)); });
  EXPECT_TRUE(next.ok()) << next.status();
  EXPECT_THAT(notes, ElementsAre("a", "b"));
}

TEST_F(SqliteReportTest, SaysDataLossForRecordsThatCannotBeRead) {
  BatchShape shape = Retail(8);
  shape.job_revision = "r2";
  shape.outputs = {{"note", base::OutputColumn::Type::kText, 0}};
  {
    const std::unique_ptr<ReportStore> store = Open();
    ASSERT_TRUE(store->RegisterBatch(shape).ok());
    CountedItem item = Item(0, "ann", "1");
    item.batch = 8;
    item.outputs = std::vector<base::OutputRecord>{{2, {"a"}}};
    ASSERT_TRUE(Commit(store.get(), {item}).ok());
  }
  Execute("UPDATE muster_output SET records = 2");
  const auto reader = *Open({.read_only = true})->Read();
  const auto next = reader->ReadOutputs(8, {}, 1, [](const auto&) {});
  EXPECT_TRUE(absl::IsDataLoss(next.status()));
  EXPECT_THAT(std::string(next.status().message()), HasSubstr("item 8/0"));
}

TEST_F(SqliteReportTest, RefusesAForeignDatabase) {
  {
    auto connection = Connection::Open(path(), OpenMode::kCreate);
    ASSERT_TRUE((*connection)->Execute("CREATE TABLE t (x)").ok());
  }
  EXPECT_EQ(OpenSqliteReport(path()).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Query("SELECT name FROM sqlite_master", 1), ElementsAre("t")) << "left as it was";
}

TEST_F(SqliteReportTest, SaysDataLossForAFileThatIsNoDatabase) {
  std::ofstream(path()) << std::string(5000, 'x');
  EXPECT_EQ(OpenSqliteReport(path()).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(SqliteReportTest, SaysDataLossForTornPages) {
  WriteBatch();
  TearPagesOf("name IN ('muster_batch', 'muster_item')");
  std::unique_ptr<ReportStore> store = Open();
  EXPECT_EQ((*store->Read())->GetProgress(kBatch).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Commit(store.get(), {Item(2, "ann", "1")}).code(), absl::StatusCode::kDataLoss);
}

TEST_F(SqliteReportTest, SaysDataLossForATornPageOfTheSchemaBehindTheFirst) {
  std::unique_ptr<ReportStore> store = Open();
  report::BatchShape wide = Retail();
  for (int i = 0; i < 40; ++i) {
    wide.groups.push_back({absl::StrCat("group_", i), {"key"}, {{"units", true, 0}}});
  }
  ASSERT_TRUE(store->RegisterBatch(wide).ok());
  store.reset();
  std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(0, std::ios::end);
  const std::streamoff size = file.tellg();
  for (std::streamoff page = 4096; page < size; page += 4096) {
    file.seekp(page);
    file << std::string(512, '\xee');
  }
  file.close();
  EXPECT_EQ(OpenSqliteReport(path()).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(SqliteReportTest, SaysDataLossForAMeasureThatIsNoNumber) {
  WriteBatch();
  Execute("UPDATE by_customer SET revenue = '12.5x' WHERE customer = '17850.0'");
  std::unique_ptr<ReportStore> store = Open();
  const auto visit = [](const report::GroupRow&) {};
  const absl::Status read = (*store->Read())->ForEachRow(kBatch, "by_customer", visit);
  EXPECT_EQ(read.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(read.message()), HasSubstr("17850.0"));
  const absl::Status commit = Commit(store.get(), {Item(2, "17850.0", "1")});
  EXPECT_EQ(commit.code(), absl::StatusCode::kDataLoss) << commit;
}

TEST_F(SqliteReportTest, ACommitThatFindsNoRoomCountsNothing) {
  std::unique_ptr<ReportStore> store = Open({.max_bytes = 40 * 4096});
  ASSERT_TRUE(store->RegisterBatch(Retail()).ok());
  ASSERT_TRUE(Commit(store.get(), {Item(0, "ann", "1")}).ok());
  std::vector<CountedItem> many;
  for (int i = 0; i < 4000; ++i) many.push_back(Item(i + 1, absl::StrCat("customer ", i), "1"));
  EXPECT_EQ(Commit(store.get(), many).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ((*store->Read())->GetProgress(kBatch)->items_counted, 1);
  EXPECT_TRUE(Commit(store.get(), {Item(1, "ann", "1")}).ok()) << "what fits still counts";
}

TEST_F(SqliteReportTest, AReceiptOfAnUntouchedReportVerifies) {
  WriteBatch();
  EXPECT_THAT(Differences(), IsEmpty());
}

// Changes one stored value and expects that the receipt shows it.
class TamperTest : public SqliteReportTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(TamperTest, IsFoundByTheReceipt) {
  WriteBatch();
  Execute(GetParam());
  EXPECT_THAT(Differences(), Not(IsEmpty()));
}

INSTANTIATE_TEST_SUITE_P(
    AnyCell, TamperTest,
    ::testing::Values(
        "UPDATE by_customer SET revenue = '12.501' WHERE customer = '17850.0'",
        "UPDATE by_customer SET revenue = '+12.500' WHERE customer = '17850.0'",
        "UPDATE by_customer SET units = 5 WHERE customer = ''",
        "UPDATE by_customer SET customer = '17850.1' WHERE customer = '17850.0'",
        "DELETE FROM by_customer WHERE customer = ''",
        "INSERT INTO by_customer VALUES (7, 'eve', '0.000', 0)",
        "UPDATE muster_item SET aggregated = 2, rejected = 0 WHERE item = 1",
        "UPDATE muster_item SET worker = 'x' WHERE item = 1",
        "UPDATE muster_item SET counted = counted + 1 WHERE item = 1",
        "UPDATE muster_item SET result = zeroblob(16) WHERE item = 1",
        "UPDATE muster_item SET content = zeroblob(15) WHERE item = 1",
        "UPDATE muster_item SET outcome = 3 WHERE item = 1",
        "UPDATE muster_item SET item = 2 WHERE item = 1", "DELETE FROM muster_item WHERE item = 0",
        "UPDATE muster_rejection SET reason = 'y' WHERE item = 0",
        "DELETE FROM muster_rejection WHERE item = 0", "UPDATE muster_batch SET transactions = 5",
        "UPDATE muster_batch SET job = 'x'",
        "UPDATE muster_receipt SET text = replace(text, 'aggregated 2', 'aggregated 3')",
        "UPDATE muster_receipt SET text = text || ' '",
        "UPDATE muster_receipt SET checksum = upper(checksum)",
        "UPDATE muster_column SET name = 'rev' WHERE name = 'revenue'",
        "UPDATE muster_column SET scale = 2 WHERE name = 'revenue'"));

// The child commits items one by one and writes a byte for each acknowledged one; it is killed in
// the middle.
TEST_F(SqliteReportTest, WhatWasAcknowledgedSurvivesAKill) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto store = OpenSqliteReport(path());
    if (!store.ok() || !(*store)->RegisterBatch(Retail()).ok()) _exit(1);
    for (uint64_t i = 0;; ++i) {
      if (!Commit(store->get(), {Item(i, "ann", "1")}).ok()) _exit(2);
      if (write(pipe_ends[1], "x", 1) != 1) _exit(3);
    }
  }
  char acknowledged[25];
  size_t count = 0;
  while (count < sizeof acknowledged) {
    const ssize_t bytes = read(pipe_ends[0], acknowledged, sizeof acknowledged - count);
    ASSERT_GT(bytes, 0);
    count += static_cast<size_t>(bytes);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(pipe_ends[0]);
  close(pipe_ends[1]);

  // First read-only, over the log that the dead writer left behind.
  {
    std::unique_ptr<ReportStore> reader = Open({.read_only = true});
    ASSERT_NE(reader, nullptr);
    EXPECT_GE((*reader->Read())->GetProgress(kBatch)->items_counted, static_cast<int64_t>(count));
  }
  std::unique_ptr<ReportStore> store = Open();
  const int64_t items = (*store->Read())->GetProgress(kBatch)->items_counted;
  EXPECT_GE(items, static_cast<int64_t>(count));
  EXPECT_THAT(Query("SELECT revenue, units FROM by_customer", 2),
              ElementsAre(absl::StrCat(items, ".000|", 4 * items)));
}

TEST(ReportRowsDeathTest, CountsNoItemWhoseTransactionsDoNotAddUp) {
  report::ItemFacts item;
  item.batch = kBatch;
  item.transactions = 5;
  item.aggregated = 3;
  report::Progress progress;
  EXPECT_DEATH(AddToProgress(item, 1, &progress), "item 7/0: transactions 5, aggregated 3");
  item.rejected = 2;
  AddToProgress(item, 1, &progress);
  EXPECT_EQ(progress.transactions, progress.aggregated + progress.rejected);
}

TEST(StatementDeathTest, TakesNoParameterWithoutAValue) {
  const os::TempDir dir;
  const auto connection = Connection::Open(dir / "any.db", OpenMode::kCreate).value();
  Statement statement = connection->Prepare("SELECT ?, ?").value();
  EXPECT_DEATH(statement.Run(1).IgnoreError(), "parameters 2, values 1: SELECT");
}

}  // namespace
}  // namespace muster::report::sqlite
