// SPDX-License-Identifier: Apache-2.0
#include "muster/os/quarantine.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "nlohmann/json.hpp"

namespace muster::os {
namespace {

std::vector<nlohmann::json> LinesOf(const std::string& path) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST(QuarantineTest, MakesNoFolderForNothing) {
  const TempDir dir;
  Quarantine quarantine(dir.path());
  EXPECT_TRUE(quarantine.Keep({.part = "queue", .kind = "counters", .name = "n", .why = "w"}).ok());
  EXPECT_TRUE(quarantine.Sync().ok());
  EXPECT_EQ(quarantine.path(), "");
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(QuarantineTest, KeepsEachByteOfARecord) {
  const TempDir dir;
  Quarantine quarantine(dir.path());
  Damage damage{.part = "queue", .kind = "body", .name = "message \xff", .why = "its checksum"};
  damage.records = {{"body", std::string("\0\x01", 2), std::string("a\0\xff", 3)},
                    {"state", "k", ""}};
  ASSERT_TRUE(quarantine.Keep(damage).ok());
  ASSERT_TRUE(quarantine.Sync().ok());
  EXPECT_EQ(quarantine.path(), dir / "damaged/1");
  const auto lines = LinesOf(quarantine.path() + "/records.jsonl");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["key"], "0001");
  EXPECT_EQ(lines[0]["value"], "YQD/");
  EXPECT_EQ(lines[0]["why"], "its checksum");
  EXPECT_EQ(lines[1]["family"], "state");
}

TEST(QuarantineTest, GivesEachRepairAFolderOfItsOwn) {
  const TempDir dir;
  Quarantine first(dir.path()), second(dir.path());
  EXPECT_EQ(first.FolderOf("queue").value(), dir / "damaged/1/queue");
  EXPECT_EQ(first.FolderOf("queue").value(), dir / "damaged/1/queue");
  EXPECT_EQ(second.FolderOf("blobs").value(), dir / "damaged/2/blobs");
}

}  // namespace
}  // namespace muster::os
