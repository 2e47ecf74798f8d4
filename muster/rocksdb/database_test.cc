// SPDX-License-Identifier: Apache-2.0

// Acknowledgements when the disk fails or the power goes.

#include "muster/rocksdb/database.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/damage.h"
#include "muster/base/status.h"
#include "muster/os/temp_dir.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "tests/fakes/base/killable_process.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/rocksdb/faulty_env.h"
#include "tests/fakes/telemetry/shown.h"

namespace muster::rocksdb {

namespace {

using ::testing::HasSubstr;

class DatabaseTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<Database>> Open(bool read_only = false) {
    DatabaseOptions options;
    options.families = {{"records"}, {"bodies", FamilyUse::kBodies, size_t{1} << 20}};
    options.read_only = read_only;
    return Database::Open(dir_, options);
  }

  static void Put(Database* database, const std::string& key, const std::string& value) {
    ::rocksdb::WriteBatch batch;
    batch.Put(database->family(0), key, value);
    ASSERT_TRUE(database->Write(&batch, Durability::kPower).ok());
  }

  static absl::StatusOr<std::string> Get(Database* database, const std::string& key) {
    std::string value;
    const ::rocksdb::Status status =
        database->db()->Get(::rocksdb::ReadOptions(), database->family(0), key, &value);
    if (!status.ok()) return ToStatus(status, key);
    return value;
  }

  const os::TempDir root_;
  std::string dir_ = root_ / "deep/data";
};

TEST_F(DatabaseTest, KeepsWhatWasWrittenOverAReopen) {
  { Put(Open()->get(), "k", "v"); }
  EXPECT_EQ(*Get(Open()->get(), "k"), "v");
}

TEST_F(DatabaseTest, ShowsItsSyncsAndSizesAsTheStoreOfItsDirectory) {
  telemetry::Registry registry;
  DatabaseOptions options;
  options.families = {{"records"}};
  options.metrics = &registry;
  {
    const auto database = Database::Open(root_ / "ledger", options);
    ASSERT_TRUE(database.ok()) << database.status();
    Put(database->get(), "k", std::string(10'000, 'v'));
    const std::string of = R"({store="ledger"})";
    EXPECT_EQ(telemetry::Shown(registry, "muster_rocksdb_sync_seconds_count" + of), 1);
    EXPECT_GE(telemetry::Shown(registry, "muster_rocksdb_wal_bytes" + of), 10'000);
    EXPECT_GE(telemetry::Shown(registry, "muster_rocksdb_memtable_bytes" + of), 10'000);
  }
  EXPECT_EQ(telemetry::Shown(registry, R"(muster_rocksdb_wal_bytes{store="ledger"})"), std::nullopt)
      << "it is closed";
}

// Writers have to wait when the memtables are full, and cannot be flushed.
TEST_F(DatabaseTest, ShowsForHowLongItHeldItsWritersUp) {
  constexpr size_t kMemtableBytes = size_t{64} << 10;
  telemetry::Registry registry;
  DatabaseOptions options;
  options.families = {{"records", FamilyUse::kRecords, kMemtableBytes}};
  options.metrics = &registry;
  const auto database = Database::Open(root_ / "ledger", options);
  ASSERT_TRUE(database.ok()) << database.status();
  const auto stalled = [&] {
    return telemetry::Shown(registry,
                            R"(muster_rocksdb_write_stall_seconds_total{store="ledger"})");
  };
  EXPECT_EQ(stalled(), 0);
  ::rocksdb::DB* const db = (*database)->db();
  ::rocksdb::ColumnFamilyHandle* const family = (*database)->family(0);
  do {
    ASSERT_TRUE(db->PauseBackgroundWork().ok());
    std::thread writer([&] {
      for (int i = 0; i < 40; ++i) {
        db->Put(::rocksdb::WriteOptions(), family, std::to_string(i), std::string(8 << 10, 'v'))
            .PermitUncheckedError();
      }
    });
    uint64_t is_stopped = 0;
    while (is_stopped == 0) db->GetIntProperty(family, "rocksdb.is-write-stopped", &is_stopped);
    base::LetOthersRun();
    ASSERT_TRUE(db->ContinueBackgroundWork().ok());
    writer.join();
  } while (stalled() == 0);  // the writer was late
}

TEST_F(DatabaseTest, RefusesASecondOpenInTheSameProcess) {
  auto first = Open();
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status second = Open().status();
  EXPECT_EQ(second, absl::FailedPreconditionError(second.message())) << "nobody lets go of it";
  EXPECT_THAT(second.message(), HasSubstr(dir_ + " is already open in this process"));
}

// On a full disk its writer ends the process.
TEST_F(DatabaseTest, KeepsNoLogFileOfRocksDbsOwn) {
  const auto database = Open();
  ASSERT_TRUE(database.ok()) << database.status();
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/LOG"));
}

TEST_F(DatabaseTest, FindsNothingWhereTheFirstOpenWasCutShort) {
  { ASSERT_TRUE(Database::Open(dir_, DatabaseOptions()).ok()); }
  EXPECT_TRUE(absl::IsNotFound(Open(/*read_only=*/true).status()));
}

// CURRENT is lost; tables, or changes in a log, are still there.
TEST_F(DatabaseTest, CreatesNothingOverFilesThatNothingNames) {
  { Put(Open()->get(), "k", "v"); }
  std::filesystem::remove(dir_ + "/CURRENT");
  for (const bool read_only : {false, true}) {
    const absl::Status status = Open(read_only).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(dir_ + " has lost its file CURRENT"));
  }
}

// The last words of a service said nothing of what an operator has for that.
TEST_F(DatabaseTest, NamesTheCheckWhereDamageKeepsItFromOpening) {
  { Put(Open()->get(), "k", "v"); }
  std::ofstream(dir_ + "/CURRENT") << "damaged";
  const absl::Status status = Open().status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("Corruption: "));
  EXPECT_THAT(status.message(), HasSubstr("; `muster check` tells what is damaged"));
}

TEST_F(DatabaseTest, CreatesAgainWhereTheFirstOpenWasCutShortBeforeItsEnd) {
  std::filesystem::create_directories(dir_);
  for (const char* name : {"LOCK", "IDENTITY", "MANIFEST-000001", "000001.dbtmp"}) {
    std::ofstream(dir_ + "/" + name) << "x";
  }
  EXPECT_TRUE(absl::IsNotFound(Open(/*read_only=*/true).status()));
  EXPECT_TRUE(Open().ok());
}

const base::testing::RegisteredProcess other_process("owner", [](const std::string& dir) {
  DatabaseOptions options;
  options.families = {{"records"}, {"bodies", FamilyUse::kBodies, size_t{1} << 20}};
  const auto database = Database::Open(dir, options);
  base::testing::Send(database.ok() ? "open" : "not open");
  base::testing::AwaitKill();
});

TEST_F(DatabaseTest, RefusesADirectoryThatAnotherProcessUses) {
  base::testing::KillableProcess process("owner", dir_);
  ASSERT_EQ(process.Receive(), "open");
  const absl::Status status = Open().status();
  EXPECT_TRUE(base::IsBusy(status)) << status;
  EXPECT_THAT(status.message(),
              HasSubstr(absl::StrCat(dir_, " is used by another process, process ", process.id())));
  EXPECT_TRUE(process.Kill());
  EXPECT_TRUE(Open().ok());
}

TEST_F(DatabaseTest, BlamesNobodyWhenTheLockFileCannotBeOpened) {
  { Put(Open()->get(), "k", "v"); }
  std::filesystem::remove(dir_ + "/LOCK");
  std::filesystem::create_directory(dir_ + "/LOCK");
  const absl::Status status = Open().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("LOCK: Is a directory"));
}

TEST_F(DatabaseTest, ReadsBesideTheOwnerWithoutTouchingAnyFile) {
  auto owner = Open();
  ASSERT_TRUE(owner.ok()) << owner.status();
  Put(owner->get(), "k", "v");
  const auto list = [&] {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir_)) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  };
  const auto before = list();
  auto reader = Open(/*read_only=*/true);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(*Get(reader->get(), "k"), "v");
  EXPECT_EQ(list(), before);
}

TEST_F(DatabaseTest, RefusesToWriteWhenReadOnly) {
  { Put(Open()->get(), "k", "v"); }
  auto reader = Open(/*read_only=*/true);
  ::rocksdb::WriteBatch batch;
  batch.Put((*reader)->family(0), "k", "w");
  EXPECT_EQ((*reader)->Write(&batch, Durability::kPower).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(DatabaseTest, FindsNothingToReadInAnEmptyPlace) {
  const absl::Status status = Open(/*read_only=*/true).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr(dir_));
  EXPECT_FALSE(std::filesystem::exists(dir_));
}

TEST(ToStatusTest, KeepsTheMeaningOfAnError) {
  const auto code = [](const ::rocksdb::Status& status) { return ToStatus(status, "x").code(); };
  EXPECT_EQ(code(::rocksdb::Status::OK()), absl::StatusCode::kOk);
  EXPECT_EQ(code(::rocksdb::Status::NotFound()), absl::StatusCode::kNotFound);
  const uint64_t damage = base::DamageMet(base::Damaged::kStore);
  EXPECT_EQ(code(::rocksdb::Status::Corruption("c")), absl::StatusCode::kDataLoss);
  EXPECT_EQ(base::DamageMet(base::Damaged::kStore), damage + 1);
  EXPECT_EQ(code(::rocksdb::Status::IOError("c")), absl::StatusCode::kUnavailable);
  EXPECT_EQ(code(::rocksdb::Status::NoSpace()), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ToStatus(::rocksdb::Status::NotFound("gone"), "get k").message(),
            "get k: NotFound: gone");
}

using ::testing::StartsWith;

class FailingDiskTest : public ::testing::Test {
 protected:
  static constexpr int kWriters = 16;

  std::unique_ptr<Database> Open(const std::string& dir) {
    DatabaseOptions options;
    options.families = {{"records"}};
    options.env = &env_;
    auto database = Database::Open(dir, options);
    EXPECT_TRUE(database.ok()) << database.status();
    return database.ok() ? *std::move(database) : nullptr;
  }

  static absl::Status Put(Database* database, const std::string& key,
                          Durability durability = Durability::kPower) {
    ::rocksdb::WriteBatch batch;
    batch.Put(database->family(0), key, "value");
    return database->Write(&batch, durability);
  }

  static bool Has(Database* database, const std::string& key) {
    std::string value;
    return database->db()->Get({}, database->family(0), key, &value).ok();
  }

  // Many writers write until the disk fails; `fail` makes it fail meanwhile. Returns the
  // acknowledged keys.
  std::vector<std::string> WriteUntilItFails(Database* database, std::atomic<bool>* fail) {
    std::vector<std::vector<std::string>> acknowledged(kWriters);
    std::vector<std::thread> writers;
    for (int writer = 0; writer < kWriters; ++writer) {
      writers.emplace_back([&, writer] {
        for (int i = 0;; ++i) {
          const std::string key = absl::StrCat(writer, "/", i);
          if (writer == 0 && i == 5) *fail = true;
          // Unsynced writes in between: they are in the log's way while it is synced.
          const Durability durability = i % 2 == 0 ? Durability::kPower : Durability::kProcess;
          const absl::Status status = Put(database, key, durability);
          if (!status.ok()) {
            EXPECT_TRUE(absl::IsUnavailable(status)) << status;
            return;
          }
          acknowledged[writer].push_back(key);
        }
      });
    }
    for (std::thread& writer : writers) writer.join();
    std::vector<std::string> all;
    for (const auto& keys : acknowledged) all.insert(all.end(), keys.begin(), keys.end());
    return all;
  }

  void ExpectOneErrorEach(std::atomic<bool>* fail) {
    constexpr int kRounds = 8;  // the writers meet the failure at another step in each
    for (int round = 0; round < kRounds; ++round) {
      const std::string dir = root_ / absl::StrCat(round);
      *fail = false;
      auto database = Open(dir);
      const std::vector<std::string> acknowledged = WriteUntilItFails(database.get(), fail);
      EXPECT_TRUE(absl::IsUnavailable(Put(database.get(), "late")));
      database.reset();
      *fail = false;
      database = Open(dir);
      for (const std::string& key : acknowledged) EXPECT_TRUE(Has(database.get(), key)) << key;
    }
  }

  const os::TempDir root_;
  testing::FaultyEnv env_;
};

// A flush holds the log, so that a synced write waits inside RocksDB, behind all checks of
// Database, while another write fails. RocksDB's own assertion would end the process when the first
// write goes on.
TEST_F(FailingDiskTest, AnswersAWriterWhoIsAboutToSyncWhenAnotherFails) {
  for (int round = 0; round < 5; ++round) {
    std::promise<void> flushing, opened;
    std::atomic<bool> first{true};
    std::shared_future<void> door = opened.get_future().share();
    env_.fail_appends = false;
    env_.before_sync = [] {};
    auto database = Open(root_ / absl::StrCat(round));
    ASSERT_TRUE(Put(database.get(), "before").ok());
    env_.before_sync = [&] {
      if (first.exchange(false)) flushing.set_value();
      door.wait();
    };
    std::thread flush(
        [&] { database->db()->Flush({}, database->family(0)).PermitUncheckedError(); });
    flushing.get_future().wait();
    absl::Status about_to_sync;
    std::thread writer([&] { about_to_sync = Put(database.get(), "about to sync"); });
    while (!Has(database.get(), "about to sync")) base::LetOthersRun();
    env_.fail_appends = true;
    EXPECT_TRUE(absl::IsUnavailable(Put(database.get(), "fails")));
    opened.set_value();
    writer.join();
    flush.join();
    EXPECT_TRUE(absl::IsUnavailable(about_to_sync)) << about_to_sync;
  }
}

TEST_F(FailingDiskTest, AnswersEveryWriterWhenTheLogCannotBeWritten) {
  ExpectOneErrorEach(&env_.fail_appends);
}

TEST_F(FailingDiskTest, TellsOnceThatItRefusesAllWrites) {
  const std::string dir = root_ / "told";
  std::vector<absl::Status> told;
  DatabaseOptions options;
  options.families = {{"records"}};
  options.env = &env_;
  options.on_failure = [&told](const absl::Status& why) { told.push_back(why); };
  auto database = Database::Open(dir, options).value();
  ASSERT_TRUE(Put(database.get(), "before").ok());
  EXPECT_TRUE(told.empty());
  env_.disk_full = true;
  EXPECT_FALSE(Put(database.get(), "fails").ok());
  EXPECT_FALSE(Put(database.get(), "fails too").ok());
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(std::string(told.front().message()),
              StartsWith(absl::StrCat("the disk of ", dir, " is full")));
  database.reset();
  EXPECT_EQ(told.size(), 1u);
}

TEST_F(FailingDiskTest, SaysFirstWhoseDiskIsFull) {
  const std::string dir = root_ / "full";
  auto database = Open(dir);
  ASSERT_TRUE(Put(database.get(), "before").ok());
  env_.disk_full = true;
  EXPECT_TRUE(absl::IsResourceExhausted(Put(database.get(), "fails")));
  env_.disk_full = false;
  const absl::Status late = Put(database.get(), "late");
  EXPECT_TRUE(absl::IsUnavailable(late)) << late;
  EXPECT_THAT(std::string(late.message()),
              StartsWith(absl::StrCat("the disk of ", dir, " is full: make room and start again")));
  database.reset();
  database = Open(dir);
  EXPECT_TRUE(Has(database.get(), "before"));
  EXPECT_TRUE(Put(database.get(), "there is room again").ok());
}

TEST_F(FailingDiskTest, AnswersEveryWriterWhenTheLogCannotBeSynced) {
  ExpectOneErrorEach(&env_.fail_syncs);
}

TEST_F(FailingDiskTest, WhatWasAcknowledgedSurvivesAPowerCut) {
  auto database = Open(root_ / "before");
  ASSERT_TRUE(Put(database.get(), "synced").ok());
  ASSERT_TRUE(Put(database.get(), "written", Durability::kProcess).ok());
  env_.CopyAsAfterPowerCut(root_ / "before", root_ / "after");
  auto after = Open(root_ / "after");
  EXPECT_TRUE(Has(after.get(), "synced"));
  EXPECT_FALSE(Has(after.get(), "written")) << "the power cut of this test loses nothing";
}

}  // namespace

// Opening after a crash has cut a write-ahead log short, or after damage to the log.

namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// RocksDB's log is a sequence of such blocks; it cuts a longer record into fragments.
constexpr size_t kLogBlockBytes = 32 << 10;

// Writes a log of numbered records, and opens changed copies of it.
class LogDamageTest : public ::testing::Test {
 protected:
  static absl::StatusOr<std::unique_ptr<Database>> Open(const std::string& dir) {
    DatabaseOptions options;
    options.families = {{"records"}};
    return Database::Open(dir, options);
  }

  // Returns the end of the log after each of `values`, which get the keys "0", "1" …
  std::vector<uintmax_t> WriteLog(const std::vector<std::string>& values) {
    std::vector<uintmax_t> ends;
    auto database = Open(intact_);
    EXPECT_TRUE(database.ok()) << database.status();
    for (size_t i = 0; i < values.size(); ++i) {
      ::rocksdb::WriteBatch batch;
      batch.Put((*database)->family(0), absl::StrCat(i), values[i]);
      EXPECT_TRUE((*database)->Write(&batch, Durability::kPower).ok());
      ends.push_back(fs::file_size(LogOf(intact_)));
    }
    return ends;
  }

  // The newest one.
  static fs::path LogOf(const std::string& dir) {
    fs::path newest;
    for (const auto& entry : fs::directory_iterator(dir)) {
      if (entry.path().extension() == ".log") newest = std::max(newest, entry.path());
    }
    return newest;
  }

  void Copy() {
    fs::remove_all(copy_);
    fs::copy(intact_, copy_);
  }

  void FlipByte(uintmax_t at) {
    std::fstream log(LogOf(copy_), std::ios::in | std::ios::out | std::ios::binary);
    log.seekg(static_cast<std::streamoff>(at));
    const int byte = log.get();
    log.seekp(static_cast<std::streamoff>(at));
    log.put(static_cast<char>(byte ^ 0x10));
  }

  // The keys "0" to "n - 1" are there.
  static void ExpectFirst(size_t n, Database* database) {
    for (size_t i = 0; i < n; ++i) {
      std::string value;
      EXPECT_TRUE(database->db()->Get({}, database->family(0), absl::StrCat(i), &value).ok())
          << "key " << i;
    }
  }

  const os::TempDir root_;
  const std::string intact_ = root_ / "intact";
  const std::string copy_ = root_ / "copy";
};

// Opening must not silently drop writes that were acknowledged after the damage.
TEST_F(LogDamageTest, NamesTheDirectoryWhoseLogIsDamagedInTheMiddle) {
  const std::vector<uintmax_t> ends =
      WriteLog({"first", "middle", std::string(2 * kLogBlockBytes, 'x')});
  for (uintmax_t at = ends[0]; at < ends[1]; ++at) {
    Copy();
    FlipByte(at);
    const absl::Status status = Open(copy_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << "byte " << at << ": " << status;
    EXPECT_THAT(status.message(), HasSubstr(copy_));
  }
}

TEST_F(LogDamageTest, OpensALogWhoseLastRecordWasCutShort) {
  const std::vector<uintmax_t> ends = WriteLog({"first", "second", "last"});
  for (uintmax_t length = ends[1]; length < ends[2]; ++length) {
    Copy();
    fs::resize_file(LogOf(copy_), length);
    const auto database = Open(copy_);
    ASSERT_TRUE(database.ok()) << "cut to " << length << ": " << database.status();
    ExpectFirst(2, database->get());
  }
}

// A record of several fragments may end between two of them, too.
TEST_F(LogDamageTest, OpensALogWhoseLastRecordLacksWholeFragments) {
  const std::vector<uintmax_t> ends =
      WriteLog({"first", "second", std::string(3 * kLogBlockBytes, 'x')});
  std::vector<uintmax_t> lengths;
  for (uintmax_t length = ends[1]; length < ends[2]; length += 5'003) lengths.push_back(length);
  for (uintmax_t block = kLogBlockBytes; block < ends[2]; block += kLogBlockBytes) {
    for (const int past : {-1, 0, 1, 7}) lengths.push_back(block + past);
  }
  for (const uintmax_t length : lengths) {
    Copy();
    fs::resize_file(LogOf(copy_), length);
    const auto database = Open(copy_);
    ASSERT_TRUE(database.ok()) << "cut to " << length << ": " << database.status();
    ExpectFirst(2, database->get());
  }
}

}  // namespace

}  // namespace muster::rocksdb
