// SPDX-License-Identifier: Apache-2.0

// SQLite's own matters: the file, its tables, and behavior when the file is damaged or the disk is
// full.

#include "muster/report/sqlite/sqlite_report_store.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/status.h"
#include "muster/os/temp_dir.h"
#include "muster/report/audit.h"
#include "muster/report/report_client.h"
#include "muster/report/sqlite/connection.h"
#include "muster/report/sqlite/rebuild.h"
#include "muster/report/sqlite/rows.h"
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

constexpr uint64_t kBatch = 7;

base::Decimal D(absl::string_view text) { return *base::Decimal::Parse(text); }

class SqliteReportTest : public ::testing::Test {
 protected:
  std::unique_ptr<ReportStore> Open(const SqliteOptions& options = {}) {
    auto store = OpenSqliteReport(path(), options);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }

  std::string path() const { return dir_ / "report.db"; }

  static BatchShape Retail(uint64_t batch = kBatch, const std::string& job = "retail") {
    return {batch,
            job,
            "r1",
            {{"by_customer", {"customer"}, {{"revenue", false, 3}, {"units", true, 0}}}}};
  }

  static CountedItem Item(uint64_t index, const std::string& customer, const std::string& revenue) {
    CountedItem item;
    item.batch = kBatch;
    item.index = index;
    item.transactions = 2;
    item.aggregated = 1;
    item.rejected = 1;
    item.content = base::Fingerprint(absl::StrCat(index));
    item.result = base::Fingerprint(revenue);
    item.attempts = 1;
    item.handler_version = "v1";
    item.worker = "w";
    item.groups = {{"by_customer", {{{customer}, {D(revenue), base::Decimal::FromInt(4)}}}}};
    item.rejections = {{static_cast<int64_t>(index) + 2, "price: 'x'"}};
    return item;
  }

  static absl::Status Commit(ReportStore* store, std::vector<CountedItem> items) {
    return store->Commit({"out", 1, std::move(items)}).status();
  }

  // Reads as a person with the sqlite3 shell would; one string per row.
  std::vector<std::string> Query(const std::string& sql, int columns) {
    auto connection = Connection::Open(path(), OpenMode::kReadOnly);
    EXPECT_TRUE(connection.ok()) << connection.status();
    auto query = (*connection)->Prepare(sql);
    EXPECT_TRUE(query.ok()) << query.status();
    std::vector<std::string> rows;
    while (*query->Step()) {
      std::string row(query->Text(0));
      for (int i = 1; i < columns; ++i) absl::StrAppend(&row, "|", query->Text(i));
      rows.push_back(row);
    }
    return rows;
  }

  void Execute(const std::string& sql) {
    auto connection = Connection::Open(path(), OpenMode::kWrite);
    ASSERT_TRUE(connection.ok()) << connection.status();
    const absl::Status status = (*connection)->Execute(sql);
    ASSERT_TRUE(status.ok()) << sql << ": " << status;
  }

  // Tears the first page of the tables that `condition` names in the list of all.
  void TearPagesOf(const std::string& condition) {
    for (const std::string& page :
         Query(absl::StrCat("SELECT rootpage FROM sqlite_master WHERE ", condition), 1)) {
      std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekp((std::stoll(page) - 1) * 4096);
      file << std::string(512, '\xee');
    }
  }

  // A completed batch of two items, on disk.
  void WriteBatch() {
    std::unique_ptr<ReportStore> store = Open();
    ASSERT_TRUE(store->RegisterBatch(Retail()).ok());
    ASSERT_TRUE(Commit(store.get(), {Item(0, "17850.0", "12.5"), Item(1, "", "-0.001")}).ok());
    report::BatchFacts facts;
    facts.batch = kBatch;
    facts.job = "retail";
    facts.job_revision = "r1";
    facts.handler_version = "v1";
    facts.items = 2;
    facts.transactions = 4;
    ASSERT_TRUE(store->Complete(facts).ok());
  }

  // Two completed batches, of which 9 retries what 8 has rejected at line 41, and rejects it again.
  void WriteRetry() {
    const std::unique_ptr<ReportStore> store = Open();
    for (const uint64_t batch : {8, 9}) {
      ASSERT_TRUE(store->RegisterBatch(Retail(batch)).ok());
      CountedItem item = Item(batch == 8 ? 39 : 0, "ann", "1");
      item.batch = batch;
      item.index = 0;
      ASSERT_TRUE(Commit(store.get(), {item}).ok());
      report::BatchFacts facts;
      facts.batch = batch;
      facts.job = "retail";
      facts.job_revision = "r1";
      facts.handler_version = "v1";
      facts.items = 1;
      facts.transactions = 2;
      ASSERT_TRUE(store->Complete(facts).ok());
    }
    const auto claimed = store->ClaimRejections(8, {}, 10);
    ASSERT_TRUE(claimed.ok()) << claimed.status();
    ASSERT_TRUE(store->RecordRetry(8, claimed->claims.at(0).retry, {{0, 41, 2}}, 9).ok());
  }

  // The line that the rejection of batch 9 has in batch 8; -1: batch 9 has none.
  static int64_t RetriedLine(report::ReportReader& reader) {
    int64_t line = -1;
    const auto add = [&line](const report::RejectionRow& row) { line = row.retry_of_line; };
    EXPECT_TRUE(reader.ForEachRejection(9, 0, 10, add).ok());
    return line;
  }

  std::vector<std::string> Differences() {
    std::unique_ptr<ReportStore> store = Open({.read_only = true});
    auto reader = store->Read();
    EXPECT_TRUE(reader.ok()) << reader.status();
    auto verified = report::VerifyReceipt(**reader, kBatch);
    if (!verified.ok()) return {std::string(verified.status().message())};
    return verified->differences;
  }

  const os::TempDir dir_;
};

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

TEST_F(SqliteReportTest, RefusesASecondWriterClearly) {
  std::unique_ptr<ReportStore> first = Open();
  const auto second = OpenSqliteReport(path());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(base::IsBusy(second.status()));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("being written"));
  first.reset();
  EXPECT_NE(Open(), nullptr);
}

TEST_F(SqliteReportTest, OpensReadOnlyBesideAWriter) {
  std::unique_ptr<ReportStore> writer = Open();
  ASSERT_TRUE(writer->RegisterBatch(Retail()).ok());
  ASSERT_TRUE(Commit(writer.get(), {Item(0, "ann", "1")}).ok());
  std::unique_ptr<ReportStore> reader = Open({.read_only = true});
  ASSERT_NE(reader, nullptr);
  EXPECT_EQ((*reader->Read())->GetProgress(kBatch)->items_counted, 1);
  ASSERT_TRUE(Commit(writer.get(), {Item(1, "ann", "1")}).ok());
  EXPECT_EQ((*reader->Read())->GetProgress(kBatch)->items_counted, 2);
  EXPECT_EQ(Commit(reader.get(), {}).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(SqliteReportTest, ReadOnlyNeedsAReport) {
  EXPECT_EQ(OpenSqliteReport(path(), {.read_only = true}).status().code(),
            absl::StatusCode::kNotFound);
}

// NotFound is final: after it a controller would give up valid results.
TEST_F(SqliteReportTest, SaysUnavailableWhileNoMoreFilesCanBeOpened) {
  std::unique_ptr<ReportStore> store = Open();
  ASSERT_TRUE(store->RegisterBatch(Retail()).ok());
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{3, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::Status status = store->Read().status();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_TRUE(store->Read().ok());
}

// A caller waits for the registration, and opening the report takes longer than all the rest.
TEST_F(SqliteReportTest, RegistersABatchWithoutOpeningTheReportAgain) {
  const std::unique_ptr<ReportStore> store = Open();
  report::LocalReportClient desk(store.get(), {});
  ASSERT_TRUE(desk.RegisterBatch(Retail(7)).ok());
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto registered = desk.RegisterBatch(Retail(8));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(registered.ok()) << registered.status();
  EXPECT_EQ(registered->batch, 8u);
}

// To open the file and parse its schema takes longer than most questions.
TEST_F(SqliteReportTest, ReadsAgainWithoutOpeningTheReportAgain) {
  const std::unique_ptr<ReportStore> store = Open();
  ASSERT_TRUE(store->RegisterBatch(Retail(7)).ok());
  ASSERT_TRUE(store->Read().ok());
  ASSERT_TRUE(store->RegisterBatch(Retail(8)).ok());
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto reader = store->Read();
  const absl::StatusOr<uint64_t> highest =
      reader.ok() ? (*reader)->HighestBatch() : reader.status();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(highest.ok()) << highest.status();
  EXPECT_EQ(*highest, 8u);  // what was written since the last reader, too
}

TEST_F(SqliteReportTest, AReaderThatOutlivesTheStoreReadsOn) {
  std::unique_ptr<ReportStore> store = Open();
  ASSERT_TRUE(store->RegisterBatch(Retail(7)).ok());
  const auto reader = store->Read().value();
  store.reset();
  EXPECT_EQ(reader->HighestBatch().value(), 7u);
}

TEST_F(SqliteReportTest, ReadsNoFileThatWasMovedAsideByAConnectionOfBefore) {
  const std::unique_ptr<ReportStore> store = Open();
  ASSERT_TRUE(store->RegisterBatch(Retail(7)).ok());
  const auto before = store->Read().value();
  ASSERT_TRUE(store->Read().ok());  // leaves a connection to the old file
  ASSERT_EQ(rename(path().c_str(), (path() + ".aside").c_str()), 0);
  EXPECT_TRUE(absl::IsUnavailable(store->Read().status()));
  EXPECT_EQ(before->HighestBatch().value(), 7u);
}

TEST_F(SqliteReportTest, SaysUnavailableWhileTheFileIsMovedAside) {
  std::unique_ptr<ReportStore> store = Open();
  ASSERT_TRUE(store->RegisterBatch(Retail()).ok());
  const std::string aside = path() + ".aside";
  ASSERT_EQ(rename(path().c_str(), aside.c_str()), 0);
  const absl::Status status = store->Read().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_TRUE(absl::IsUnavailable(Commit(store.get(), {Item(0, "ann", "1")})));
  EXPECT_TRUE(absl::IsUnavailable(store->Complete(report::BatchFacts()).status()));
  EXPECT_TRUE(absl::IsUnavailable(store->RegisterBatch(Retail(8)).status()));
  std::ofstream(path()) << "another one";
  EXPECT_TRUE(absl::IsUnavailable(store->RegisterBatch(Retail(8)).status()));
  ASSERT_EQ(rename(aside.c_str(), path().c_str()), 0);
  EXPECT_TRUE(store->Read().ok());
}

// Some changes were acknowledged, and the report that was put back, or begun anew, had none of
// them.
TEST_F(SqliteReportTest, ChangesNothingInAFileThatWasMovedAside) {
  WriteRetry();
  std::unique_ptr<ReportStore> store = Open();
  ASSERT_TRUE(store->RegisterBatch(Retail()).ok());
  const std::string aside = path() + ".aside";
  ASSERT_EQ(rename(path().c_str(), aside.c_str()), 0);
  EXPECT_TRUE(absl::IsUnavailable(store->ReopenDeadLettered(kBatch, {0})));
  EXPECT_TRUE(absl::IsUnavailable(store->CancelBatch(kBatch, {absl::FromUnixSeconds(1), ""})));
  EXPECT_TRUE(absl::IsUnavailable(store->ClaimRejections(8, {}, 10).status()));
  EXPECT_TRUE(absl::IsUnavailable(store->RecordRetry(8, 1, {}, 9).status()));
  EXPECT_TRUE(absl::IsUnavailable(store->ForgetBatch(8, 100).status()));
  std::ofstream(path()) << "another one";
  EXPECT_TRUE(absl::IsUnavailable(store->ClaimRejections(8, {}, 10).status()));
  ASSERT_EQ(rename(aside.c_str(), path().c_str()), 0);
  EXPECT_FALSE((*store->Read())->GetProgress(kBatch)->cancelled.has_value());
  EXPECT_TRUE((*store->Read())->GetProgress(8).ok());
  EXPECT_TRUE(store->CancelBatch(kBatch, {absl::FromUnixSeconds(1), ""}).ok());
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

TEST_F(SqliteReportTest, SaysUnavailableWhileSomebodyHoldsTheDatabase) {
  std::unique_ptr<ReportStore> store = Open({.busy_wait = absl::ZeroDuration()});
  ASSERT_TRUE(store->RegisterBatch(Retail()).ok());
  auto shell = Connection::Open(path(), OpenMode::kWrite);
  ASSERT_TRUE((*shell)->Execute("BEGIN IMMEDIATE").ok());
  EXPECT_EQ(Commit(store.get(), {Item(0, "ann", "1")}).code(), absl::StatusCode::kUnavailable);
  ASSERT_TRUE((*shell)->Execute("ROLLBACK").ok());
  EXPECT_TRUE(Commit(store.get(), {Item(0, "ann", "1")}).ok());
}

// A caller that asks again after each wait would be out of time before it has heard why.
TEST_F(SqliteReportTest, WaitsOnceForATransactionThatSomebodyLeavesOpen) {
  constexpr int kTries = 50;
  const absl::Duration wait = absl::Milliseconds(200);
  std::unique_ptr<ReportStore> store = Open({.busy_wait = wait});
  ASSERT_TRUE(store->RegisterBatch(Retail()).ok());
  auto shell = Connection::Open(path(), OpenMode::kWrite);
  ASSERT_TRUE((*shell)->Execute("BEGIN IMMEDIATE").ok());
  const absl::Time begun = absl::Now();
  for (int i = 0; i < kTries; ++i) {
    const absl::Status commit = Commit(store.get(), {Item(0, "ann", "1")});
    EXPECT_EQ(commit.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(commit.message()), HasSubstr("another program has a transaction open"));
  }
  EXPECT_LT(absl::Now() - begun, kTries * wait / 2);
  ASSERT_TRUE((*shell)->Execute("ROLLBACK").ok());
  EXPECT_TRUE(Commit(store.get(), {Item(0, "ann", "1")}).ok());
}

TEST_F(SqliteReportTest, TheLogThatGrewWhileSomebodyReadShrinksAgain) {
  constexpr uintmax_t kKept = uintmax_t{16} << 20;
  std::unique_ptr<ReportStore> store = Open();
  ASSERT_TRUE(store->RegisterBatch(Retail()).ok());
  const auto log_bytes = [this] { return std::filesystem::file_size(path() + "-wal"); };
  auto shell = Connection::Open(path(), OpenMode::kReadOnly);
  ASSERT_TRUE((*shell)->Execute("BEGIN; SELECT count(*) FROM muster_item").ok());
  const std::string wide(1000, 'x');
  uint64_t index = 0;
  while (log_bytes() <= kKept) {
    std::vector<CountedItem> many;
    for (int i = 0; i < 4000; ++i, ++index)
      many.push_back(Item(index, wide + absl::StrCat(index), "1"));
    ASSERT_TRUE(Commit(store.get(), many).ok());
  }
  ASSERT_TRUE((*shell)->Execute("COMMIT").ok());
  // The first one moves the log into the file, and the second one begins it anew.
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Commit(store.get(), {Item(++index, "ann", "1")}).ok());
  EXPECT_LE(log_bytes(), kKept);
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

// A user may read a report without permission to write it.

namespace {

constexpr uid_t kNobody = 65534;

// Returns 0 when a user who is not root can open and read `path`.
int ReadAsNobody(const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    // Root may write everywhere, whatever the folder's mode says.
    if (geteuid() == 0 && setuid(kNobody) != 0) _exit(2);
    const auto store = OpenSqliteReport(path, {.read_only = true});
    if (!store.ok()) {
      fprintf(stderr, "%s\n", store.status().ToString().c_str());
      _exit(3);
    }
    const auto reader = (*store)->Read();
    _exit(reader.ok() && (*reader)->HighestBatch().ok() ? 0 : 4);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The special characters would have a meaning in a URI.
TEST(ReadOnlyFolderTest, IsEnoughToReadAReport) {
  const os::TempDir dir;
  const std::string folder = dir / "50% #1?";
  const std::string path = folder + "/report.db";
  ASSERT_EQ(mkdir(folder.c_str(), 0755), 0);
  ASSERT_TRUE(OpenSqliteReport(path).ok());
  ASSERT_EQ(chmod(dir.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(path.c_str(), 0444), 0);
  ASSERT_EQ(chmod(folder.c_str(), 0555), 0);
  EXPECT_EQ(ReadAsNobody(path), 0);
  ASSERT_EQ(chmod(folder.c_str(), 0755), 0);
}

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
