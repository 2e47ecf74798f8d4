// What an open makes of a write-ahead log that a crash cut short, and of one that was damaged.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/rocksdb/database.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"

namespace muster::rocksdb {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// RocksDB's log is a sequence of such blocks; a longer record is cut into fragments.
constexpr size_t kLogBlockBytes = 32 << 10;

// Writes a log of numbered records, and opens copies of it that something was done to.
class LogDamageTest : public ::testing::Test {
 protected:
  static absl::StatusOr<std::unique_ptr<Database>> Open(const std::string& dir) {
    DatabaseOptions options;
    options.families = {{"records"}};
    return Database::Open(dir, options);
  }

  // Where the log ends after each of `values`, which get the keys "0", "1" …
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

// What was acknowledged after the damage must not be dropped in silence.
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
