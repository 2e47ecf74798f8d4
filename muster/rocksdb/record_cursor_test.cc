// SPDX-License-Identifier: Apache-2.0

// A cursor over a table with many damaged blocks.
#include "muster/rocksdb/record_cursor.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "rocksdb/db.h"

namespace muster::rocksdb {
namespace {

namespace fs = std::filesystem;

class RecordCursorTest : public ::testing::Test {
 protected:
  static constexpr int kBlocks = 60;

  static DatabaseOptions Options() {
    DatabaseOptions options;
    options.families = {{"records", FamilyUse::kBodies}};
    return options;
  }

  // A value as large as a block, so that each has a block to itself.
  void Write(const std::vector<std::string>& keys) {
    std::mt19937_64 noise(1);
    const auto database = Database::Open(dir_, Options()).value();
    for (const std::string& key : keys) {
      std::string value = key;
      while (value.size() < 17'000) value.push_back(static_cast<char>(noise()));
      ASSERT_TRUE(database->db()->Put({}, database->family(0), key, value).ok());
    }
    ASSERT_TRUE(database->db()->Flush({}, database->family(0)).ok());
    keys_ = keys;
    std::sort(keys_.begin(), keys_.end());
  }

  // Changes a byte in the value of each of these keys, which are numbered in key order.
  void Damage(const std::set<int>& damaged) {
    fs::path table;
    for (const auto& entry : fs::directory_iterator(dir_)) {
      if (entry.path().extension() == ".sst") table = entry.path();
    }
    std::ifstream in(table, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(in)), {});
    in.close();
    for (const int i : damaged) {
      // The second occurrence of the text is in the value.
      const size_t at = bytes.find(keys_[static_cast<size_t>(i)]);
      ASSERT_NE(at, std::string::npos);
      bytes[at + 8000] = static_cast<char>(bytes[at + 8000] ^ 1);
    }
    std::ofstream(table, std::ios::binary) << bytes;
  }

  void ExpectAllBut(const std::set<int>& damaged) {
    const auto database = Database::Open(dir_, Options()).value();
    std::vector<std::string> expected, read;
    for (int i = 0; i < static_cast<int>(keys_.size()); ++i) {
      if (damaged.count(i) == 0) expected.push_back(keys_[static_cast<size_t>(i)]);
    }
    RecordCursor record(database.get(), 0);
    for (; record.valid(); record.Next()) read.emplace_back(record.key());
    EXPECT_TRUE(record.status().ok()) << record.status();
    EXPECT_EQ(read, expected) << ::testing::PrintToString(damaged);
  }

  const os::TempDir root_;
  const std::string dir_ = root_ / "database";
  std::vector<std::string> keys_;  // in order
};

std::vector<std::string> Numbered(absl::string_view prefix, int count) {
  std::vector<std::string> keys;
  for (int i = 0; i < count; ++i) keys.push_back(absl::StrFormat("%s%05d", prefix, i));
  return keys;
}

TEST_F(RecordCursorTest, ReadsWhatLiesBetweenManyDamagedBlocks) {
  Write(Numbered("key ", kBlocks));
  const std::set<int> damaged = {0, 1, 3, 4, 5, 7, 10, 12, 14, 15, 30, 32, 33, 57, 59};
  Damage(damaged);
  ExpectAllBut(damaged);
}

TEST_F(RecordCursorTest, ReadsWhatLiesBetweenBlocksWhoseKeysAreFarApart) {
  std::vector<std::string> keys;
  for (int i = 0; i < kBlocks; ++i) {
    keys.push_back(absl::StrCat(i % 7 == 0 ? "" : "a", std::string(i % 5, 'b'), "/", i * i * i));
  }
  Write(keys);
  std::set<int> damaged;
  for (int i = 1; i < kBlocks; i += 1 + i % 3) damaged.insert(i);
  Damage(damaged);
  ExpectAllBut(damaged);
}

// Request ids look like this: a job's name and a path.
TEST_F(RecordCursorTest, TellsKeysApartThatStartAlikeAtLength) {
  Write(Numbered("retail:/data/incoming/2026/11/21/eu-central/store-", kBlocks));
  const std::set<int> damaged = {2, 20, 21, 40, 42};
  Damage(damaged);
  ExpectAllBut(damaged);
}

TEST_F(RecordCursorTest, CountsAStretchOnce) {
  Write(Numbered("key ", kBlocks));
  Damage({5, 6, 7, 9});
  const auto database = Database::Open(dir_, Options()).value();
  RecordCursor record(database.get(), 0);
  while (record.valid()) record.Next();
  EXPECT_EQ(record.gaps(), 2u);
}

}  // namespace
}  // namespace muster::rocksdb
