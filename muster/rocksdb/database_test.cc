#include "muster/rocksdb/database.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/busy.h"
#include "muster/os/temp_dir.h"
#include "muster/rocksdb/status.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "tests/fakes/base/victim.h"

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

// The file is lost; tables, or changes in a log, are there.
TEST_F(DatabaseTest, CreatesNothingOverFilesThatNothingNames) {
  { Put(Open()->get(), "k", "v"); }
  std::filesystem::remove(dir_ + "/CURRENT");
  for (const bool read_only : {false, true}) {
    const absl::Status status = Open(read_only).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(dir_ + " has lost its file CURRENT"));
  }
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
  EXPECT_EQ(code(::rocksdb::Status::Corruption("c")), absl::StatusCode::kDataLoss);
  EXPECT_EQ(code(::rocksdb::Status::IOError("c")), absl::StatusCode::kUnavailable);
  EXPECT_EQ(code(::rocksdb::Status::NoSpace()), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ToStatus(::rocksdb::Status::NotFound("gone"), "get k").message(),
            "get k: NotFound: gone");
}

}  // namespace
}  // namespace muster::rocksdb
