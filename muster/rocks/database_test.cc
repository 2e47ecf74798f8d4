#include "muster/rocks/database.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/temp_dir.h"
#include "muster/rocks/status.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"

namespace muster::rocks {
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
    rocksdb::WriteBatch batch;
    batch.Put(database->family(0), key, value);
    ASSERT_TRUE(database->Write(&batch, Durability::kPower).ok());
  }

  static absl::StatusOr<std::string> Get(Database* database, const std::string& key) {
    std::string value;
    const rocksdb::Status status =
        database->db()->Get(rocksdb::ReadOptions(), database->family(0), key, &value);
    if (!status.ok()) return ToStatus(status, key);
    return value;
  }

  const base::TempDir root_;
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
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(second.message(), HasSubstr(dir_ + " is already open in this process"));
}

constexpr char kOwnerDirVariable[] = "MUSTER_OWNER_DIR";

// The other process of the test below: owns the directory, says so on descriptor 4, and stays until
// its side of descriptor 3 is closed.
TEST_F(DatabaseTest, OwnsTheDirectoryForAnotherProcess) {
  const char* dir = getenv(kOwnerDirVariable);
  if (dir == nullptr) GTEST_SKIP() << "runs only as the other process";
  dir_ = dir;
  auto database = Open();
  char byte = database.ok() ? '+' : '-';
  if (write(4, &byte, 1) != 1) _exit(1);
  if (read(3, &byte, 1) != 0) _exit(1);
}

// This program again, running only the test above: a process with threads (RocksDB's) must not go
// on after a mere fork.
pid_t StartOwner(const std::string& dir, int hang_up, int report) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, hang_up, 3);
  posix_spawn_file_actions_adddup2(&actions, report, 4);
  setenv(kOwnerDirVariable, dir.c_str(), 1);
  char self[] = "/proc/self/exe", filter[] = "--gtest_filter=*OwnsTheDirectoryForAnotherProcess";
  char* argv[] = {self, filter, nullptr};
  pid_t owner = -1;
  EXPECT_EQ(posix_spawn(&owner, self, &actions, nullptr, argv, environ), 0);
  unsetenv(kOwnerDirVariable);
  posix_spawn_file_actions_destroy(&actions);
  return owner;
}

TEST_F(DatabaseTest, RefusesADirectoryThatAnotherProcessUses) {
  // Descriptors from 10 on, so that none is in the way of 3 and 4.
  int pipes[2][2];
  for (auto& ends : pipes) {
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    for (int& end : ends) {
      const int moved = fcntl(end, F_DUPFD_CLOEXEC, 10);
      close(end);
      end = moved;
    }
  }
  const pid_t owner = StartOwner(dir_, pipes[0][0], pipes[1][1]);
  char byte = 0;
  ASSERT_EQ(read(pipes[1][0], &byte, 1), 1);
  ASSERT_EQ(byte, '+');
  const absl::Status status = Open().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(),
              HasSubstr("is used by another process, process " + std::to_string(owner)));
  for (const auto& ends : pipes) {
    close(ends[0]);
    close(ends[1]);
  }
  waitpid(owner, nullptr, 0);
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
  rocksdb::WriteBatch batch;
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
  const auto code = [](const rocksdb::Status& status) { return ToStatus(status, "x").code(); };
  EXPECT_EQ(code(rocksdb::Status::OK()), absl::StatusCode::kOk);
  EXPECT_EQ(code(rocksdb::Status::NotFound()), absl::StatusCode::kNotFound);
  EXPECT_EQ(code(rocksdb::Status::Corruption("c")), absl::StatusCode::kDataLoss);
  EXPECT_EQ(code(rocksdb::Status::IOError("c")), absl::StatusCode::kUnavailable);
  EXPECT_EQ(code(rocksdb::Status::NoSpace()), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ToStatus(rocksdb::Status::NotFound("gone"), "get k").message(),
            "get k: NotFound: gone");
}

}  // namespace
}  // namespace muster::rocks
