// SPDX-License-Identifier: Apache-2.0

// A report whose file others open, lock, move aside or replace, or that nobody may write.

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
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/status.h"
#include "muster/os/temp_dir.h"
#include "muster/report/report_client.h"
#include "muster/report/sqlite/connection.h"
#include "muster/report/sqlite/sqlite_report_store.h"
#include "tests/fakes/report/sqlite/sqlite_report_fixture.h"

namespace muster::report::sqlite {
namespace {

using report::CountedItem;
using report::ReportStore;
using ::testing::HasSubstr;

TEST_F(SqliteReportTest, RefusesASecondWriterClearly) {
  std::unique_ptr<ReportStore> first = Open();
  const auto second = OpenSqliteReport(path());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(base::IsBusy(second.status()));
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr(absl::StrCat(" is used by another process, process ", getpid(),
                                     "; stop it first")));
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
  constexpr int kTries = 500;  // if each of them waited: 100 s
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

// A user may read a report without permission to write it.

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

}  // namespace
}  // namespace muster::report::sqlite
