// SPDX-License-Identifier: Apache-2.0

// SqliteReportTest: the fixture of the tests of a report in a SQLite file.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "muster/base/decimal.h"
#include "muster/os/temp_dir.h"
#include "muster/report/audit.h"
#include "muster/report/report_store.h"
#include "muster/report/sqlite/connection.h"
#include "muster/report/sqlite/sqlite_report_store.h"

namespace muster::report::sqlite {

inline constexpr uint64_t kBatch = 7;

inline base::Decimal D(absl::string_view text) { return *base::Decimal::Parse(text); }

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

}  // namespace muster::report::sqlite
