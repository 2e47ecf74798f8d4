// SPDX-License-Identifier: Apache-2.0

// Checks and repairs of a database with files that were damaged on disk.
#include "muster/rocksdb/salvage.h"

#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/failpoint.h"
#include "muster/os/temp_dir.h"
#include "muster/rocksdb/record_cursor.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"

namespace muster::rocksdb {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SalvageTest : public ::testing::Test {
 protected:
  static constexpr int kRecords = 2000;
  static constexpr size_t kValueBytes = 100;

  static DatabaseOptions Options() {
    DatabaseOptions options;
    options.families = {{"records", FamilyUse::kBodies}};
    return options;
  }

  static std::string Key(int i) { return absl::StrFormat("key %05d", i); }

  // Records 0 … kRecords-1, a write each.
  void Write(bool flush) {
    const auto database = Database::Open(dir_, Options()).value();
    for (int i = 0; i < kRecords; ++i) {
      ::rocksdb::WriteBatch batch;
      batch.Put(database->family(0), Key(i),
                std::string(kValueBytes, static_cast<char>('a' + i % 26)));
      ASSERT_TRUE(database->Write(&batch, Durability::kProcess).ok());
    }
    if (!flush) return;
    ASSERT_TRUE(database->db()->Flush({}, database->family(0)).ok());
  }

  // Changes bytes of the largest file with this extension: in its middle, or at `at`.
  void Damage(const std::string& extension, int bytes, std::optional<uintmax_t> at = {}) {
    fs::path file;
    for (const auto& entry : fs::directory_iterator(dir_)) {
      if (entry.path().extension() != extension) continue;
      if (file.empty() || entry.file_size() > fs::file_size(file)) file = entry.path();
    }
    ASSERT_FALSE(file.empty());
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(at.value_or(fs::file_size(file) / 2)));
    stream << std::string(static_cast<size_t>(bytes), '\xee');
  }

  absl::StatusOr<std::unique_ptr<Database>> Open(bool repair, bool may_begin_anew = false) {
    SalvageOptions salvage;
    salvage.on_damage = [this](const FileDamage& damage) {
      damages_.push_back(damage.kind);
      remedy_ = damage.remedy;
      mendable_ = damage.mendable;
      return absl::OkStatus();
    };
    if (repair) {
      salvage.keep_in = [this] {
        fs::create_directory(kept_);
        return kept_;
      };
    }
    salvage.may_begin_anew = may_begin_anew;
    return OpenToSalvage(dir_, Options(), salvage);
  }

  static int Readable(const Database& database, uint64_t* gaps) {
    RecordCursor record(&database, 0);
    int count = 0;
    for (; record.valid(); record.Next()) ++count;
    *gaps = record.gaps();
    return count;
  }

  const os::TempDir root_;
  const std::string dir_ = root_ / "database";
  const std::string kept_ = root_ / "kept";
  std::vector<std::string> damages_;
  std::string remedy_;     // of the last damage
  bool mendable_ = false;  // the same
};

TEST_F(SalvageTest, FindsNothingInASoundDatabase) {
  Write(/*flush=*/true);
  uint64_t gaps = 0;
  EXPECT_EQ(Readable(**Open(/*repair=*/false), &gaps), kRecords);
  EXPECT_EQ(Readable(**Open(/*repair=*/true), &gaps), kRecords);
  EXPECT_EQ(gaps, 0u);
  EXPECT_THAT(damages_, IsEmpty());
  EXPECT_FALSE(fs::exists(kept_));
}

TEST_F(SalvageTest, ChangesNothingWhenItOnlyLooks) {
  Write(/*flush=*/false);
  Damage(".log", 1);
  ASSERT_TRUE(Open(/*repair=*/false).ok());
  EXPECT_THAT(damages_, ElementsAre("log"));
  EXPECT_TRUE(absl::IsDataLoss(Database::Open(dir_, Options()).status()));
}

TEST_F(SalvageTest, GoesOnWithWhatPrecedesTheDamageOfALog) {
  Write(/*flush=*/false);
  Damage(".log", 1);
  uint64_t gaps = 0;
  const int kept = Readable(**Open(/*repair=*/true), &gaps);
  EXPECT_GT(kept, kRecords / 3);
  EXPECT_LT(kept, kRecords);
  EXPECT_THAT(remedy_, HasSubstr(absl::StrCat("the ", kept, " changes before the damage")));
  EXPECT_THAT(remedy_, HasSubstr(absl::StrCat("at least ", kRecords - kept, " after it")));
  EXPECT_FALSE(fs::is_empty(kept_));
  damages_.clear();
  EXPECT_EQ(Readable(**Open(/*repair=*/false), &gaps), kept);
  EXPECT_THAT(damages_, IsEmpty());
}

TEST_F(SalvageTest, CanLoseEverythingToALogWhoseFirstRecordIsDamaged) {
  Write(/*flush=*/false);
  Damage(".log", 1, /*at=*/20);
  uint64_t gaps = 0;
  EXPECT_EQ(Readable(**Open(/*repair=*/true), &gaps), 0);
  EXPECT_THAT(damages_, ElementsAre("log"));
}

// The loss is one block of 16 KiB.
TEST_F(SalvageTest, LosesOneBlockToAChangedByteOfATable) {
  Write(/*flush=*/true);
  Damage(".sst", 1);
  uint64_t gaps = 0;
  const int kept = Readable(**Open(/*repair=*/false), &gaps);
  EXPECT_THAT(damages_, ElementsAre("table"));
  EXPECT_EQ(gaps, 1u);
  EXPECT_GT(kept, kRecords - 170);
  EXPECT_LT(kept, kRecords);
  EXPECT_EQ(Readable(**Open(/*repair=*/true), &gaps), kept);
  EXPECT_EQ(gaps, 0u) << "the new database has none";
  EXPECT_TRUE(fs::exists(kept_ + "/files/CURRENT"));
  damages_.clear();
  EXPECT_EQ(Readable(**Open(/*repair=*/false), &gaps), kept);
  EXPECT_THAT(damages_, IsEmpty());
}

TEST_F(SalvageTest, ReadsWhatLiesBetweenAndBehindDamagedBlocks) {
  Write(/*flush=*/true);
  Damage(".sst", 1, /*at=*/100'000);
  Damage(".sst", 20'000, /*at=*/150'000);
  const auto database = Open(/*repair=*/false);
  ASSERT_TRUE(database.ok()) << database.status();
  uint64_t gaps = 0;
  EXPECT_GT(Readable(**database, &gaps), kRecords - 700);
  EXPECT_EQ(gaps, 2u);
  for (const int i : {0, 1050, kRecords - 1}) {
    RecordCursor record(database->get(), 0, Key(i));
    ASSERT_TRUE(record.valid()) << i;
    EXPECT_EQ(record.key(), Key(i));
  }
}

// The end of a table says how to read it, so a table with a damaged end cannot be opened.
TEST_F(SalvageTest, GoesOnWithTheOtherTablesWhenOneCannotBeOpened) {
  Write(/*flush=*/true);
  {
    const auto database = Database::Open(dir_, Options()).value();
    ASSERT_TRUE(database->db()->Put({}, database->family(0), "later", "x").ok());
    ASSERT_TRUE(database->db()->Flush({}, database->family(0)).ok());
  }
  fs::path table;
  for (const auto& entry : fs::directory_iterator(dir_)) {
    if (entry.path().extension() == ".sst" && entry.file_size() > 100'000) table = entry.path();
  }
  Damage(".sst", 10, fs::file_size(table) - 20);
  EXPECT_TRUE(absl::IsDataLoss(Open(/*repair=*/false).status()));
  EXPECT_THAT(damages_, ElementsAre("table"));
  uint64_t gaps = 0;
  EXPECT_EQ(Readable(**Open(/*repair=*/true), &gaps), 1);
  EXPECT_TRUE(fs::exists(fs::path(kept_) / "files" / table.filename()));
}

TEST_F(SalvageTest, FindsItsTablesWhenTheListOfThemIsDamaged) {
  Write(/*flush=*/true);
  std::ofstream(dir_ + "/CURRENT") << "nonsense\n";
  EXPECT_TRUE(absl::IsDataLoss(Open(/*repair=*/false).status())) << Open(false).status();
  uint64_t gaps = 0;
  EXPECT_EQ(Readable(**Open(/*repair=*/true), &gaps), kRecords);
}

// RocksDB's own repair learns of a column family from its tables only.
TEST_F(SalvageTest, FindsWhatIsInNoTableYetWhenTheListOfThemIsDamaged) {
  Write(/*flush=*/false);
  std::ofstream(dir_ + "/CURRENT") << "nonsense\n";
  uint64_t gaps = 0;
  EXPECT_EQ(Readable(**Open(/*repair=*/true), &gaps), kRecords);
  EXPECT_THAT(damages_, ElementsAre("table"));
}

TEST_F(SalvageTest, FindsItsTablesWhenWhatNamesTheListOfThemIsGone) {
  Write(/*flush=*/true);
  fs::remove(dir_ + "/CURRENT");
  EXPECT_TRUE(absl::IsDataLoss(Open(/*repair=*/false).status()));
  EXPECT_THAT(damages_, ElementsAre("table"));
  uint64_t gaps = 0;
  EXPECT_EQ(Readable(**Open(/*repair=*/true), &gaps), kRecords);
}

TEST_F(SalvageTest, KeepsOthersOutUntilTheNewDatabaseIsInPlace) {
  Write(/*flush=*/true);
  Damage(".sst", 1);
  absl::Status meanwhile;
  const base::ArmedFailpoint armed("repair.before_exchange", 1,
                                   [&] { meanwhile = Database::Open(dir_, Options()).status(); });
  EXPECT_TRUE(Open(/*repair=*/true).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(meanwhile)) << meanwhile;
  EXPECT_TRUE(Database::Open(dir_, Options()).ok()) << "it lets go at the end";
}

// The fault is in the disk or the system, not in the files.
TEST_F(SalvageTest, LeavesTheDirectoryAsItIsWhenTheTablesCannotBeListedAgain) {
  Write(/*flush=*/true);
  std::ofstream(dir_ + "/CURRENT") << "nonsense\n";
  struct rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  struct rlimit small = limit;
  small.rlim_cur = 100;
  const auto before = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = Open(/*repair=*/true, /*may_begin_anew=*/true).status();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  signal(SIGXFSZ, before);
  EXPECT_FALSE(status.ok());
  EXPECT_FALSE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(damages_, ElementsAre("table"));
  EXPECT_FALSE(fs::exists(dir_ + ".new"));
  uint64_t gaps = 0;
  EXPECT_EQ(Readable(**Open(/*repair=*/true), &gaps), kRecords);
}

TEST_F(SalvageTest, BeginsAnewOnlyWhereItMay) {
  Write(/*flush=*/true);
  std::ofstream(dir_ + "/CURRENT") << "nonsense\n";
  for (const auto& entry : fs::directory_iterator(dir_)) {
    if (entry.path().extension() == ".sst") std::ofstream(entry.path()) << "nonsense";
  }
  EXPECT_TRUE(absl::IsDataLoss(Open(/*repair=*/true, /*may_begin_anew=*/false).status()));
  EXPECT_THAT(damages_, ElementsAre("table", "files"));
  EXPECT_FALSE(mendable_);
  EXPECT_THAT(remedy_, HasSubstr("restore it from a backup"));
  EXPECT_FALSE(fs::exists(kept_)) << "all is as it was";
  EXPECT_FALSE(fs::exists(dir_ + ".new"));
  damages_.clear();
  uint64_t gaps = 0;
  EXPECT_EQ(Readable(**Open(/*repair=*/true, /*may_begin_anew=*/true), &gaps), 0);
  EXPECT_THAT(damages_, ElementsAre("table", "files"));
  EXPECT_TRUE(mendable_);
  EXPECT_TRUE(fs::exists(kept_ + "/files/CURRENT"));
}

// The state after a repair was killed between its steps.
TEST_F(SalvageTest, KeepsWhatARepairThatWasCutShortLeft) {
  Write(/*flush=*/true);
  fs::create_directory(dir_ + ".new");
  std::ofstream(dir_ + ".new/half") << "x";
  uint64_t gaps = 0;
  EXPECT_EQ(Readable(**Open(/*repair=*/true), &gaps), kRecords);
  EXPECT_TRUE(fs::exists(kept_ + "/files/half"));
  EXPECT_FALSE(fs::exists(dir_ + ".new"));
}

}  // namespace
}  // namespace muster::rocksdb
