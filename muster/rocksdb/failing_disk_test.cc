// What becomes of acknowledgements when the disk fails or the power goes.
#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/rocksdb/database.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "tests/fakes/rocksdb/faulty_env.h"

namespace muster::rocksdb {
namespace {

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

  // Many write until the disk fails, which `fail` makes it do while they are at it. Answers the
  // keys that were acknowledged.
  std::vector<std::string> WriteUntilItFails(Database* database, std::atomic<bool>* fail) {
    std::vector<std::vector<std::string>> acknowledged(kWriters);
    std::vector<std::thread> writers;
    for (int writer = 0; writer < kWriters; ++writer) {
      writers.emplace_back([&, writer] {
        for (int i = 0;; ++i) {
          const std::string key = absl::StrCat(writer, "/", i);
          if (writer == 0 && i == 5) *fail = true;
          // Unsynced ones in between: they are in the log's way while it is synced.
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

// A flush holds the log, so that a synced write waits within RocksDB, past every test of ours,
// while another write fails. RocksDB's own assertion would end the process when the first one goes
// on.
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
    while (!Has(database.get(), "about to sync")) std::this_thread::yield();
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
}  // namespace muster::rocksdb
