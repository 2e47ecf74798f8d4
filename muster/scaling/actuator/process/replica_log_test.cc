#include "muster/scaling/actuator/process/replica_log.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/scaling/actuator/process/limits.h"

namespace muster::scaling::actuator::process {
namespace {

class ReplicaLogTest : public ::testing::Test {
 protected:
  std::string Kept(const std::string& name) {
    std::ifstream file(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  os::TempDir folder_;
  ReplicaLog log_{folder_ / "log", "p-1"};
};

TEST_F(ReplicaLogTest, IsReadyWhenThisInstanceSaidSoLast) {
  for (const auto& [line, ready] : std::vector<std::pair<std::string, bool>>{
           {"time=1 level=info msg=listening instance=p-1 at=127.0.0.1:7", false},
           {"time=1 level=info msg=ready instance=p-10", false},
           {"time=1 level=info msg=x line=\"a msg=ready  instance=p-1\"", false},
           {"time=1 level=info msg=ready instance=p-1", true},
           {"time=1 level=info msg=\"not ready\" instance=p-10", true},
           {"time=1 level=info msg=\"not ready\" instance=p-1", false},
           {"time=1 level=info msg=ready instance=p-1 more=1", true},
       }) {
    log_.Append(line + "\n");
    EXPECT_EQ(log_.is_ready(), ready) << line;
  }
}

TEST_F(ReplicaLogTest, ReadsALineThatComesInPieces) {
  for (const char c : std::string("t=1 msg=ready instance=p-1")) {
    log_.Append({&c, 1});
    EXPECT_FALSE(log_.is_ready());
  }
  log_.Append("\n");
  EXPECT_TRUE(log_.is_ready());
  EXPECT_EQ(Kept("log"), "t=1 msg=ready instance=p-1\n");
}

TEST_F(ReplicaLogTest, TellsTheLastLinesEvenWithoutALineFeed) {
  log_.Append("one\n\ntwo\nthree\n  \nfour");
  EXPECT_EQ(log_.LastLines(), "two | three | four");
}

TEST_F(ReplicaLogTest, KeepsTwoFilesAtMost) {
  const std::string chunk(size_t{1} << 20, 'x');
  for (size_t bytes = 0; bytes < 5 * kMaxLogBytes; bytes += chunk.size()) log_.Append(chunk);
  log_.Append("\nlast");
  EXPECT_LE(std::filesystem::file_size(folder_ / "log"), kMaxLogBytes);
  EXPECT_EQ(std::filesystem::file_size(folder_ / "log.1"), kMaxLogBytes);
  EXPECT_LE(log_.LastLines().size(), kLastLines * (kLastLineBytes + 3));
}

TEST(ReplicaLogWithoutAFileTest, HearsAllTheSame) {
  ReplicaLog log("/no/such/folder/log", "p-1");
  log.Append("t=1 msg=ready instance=p-1\n");
  EXPECT_TRUE(log.is_ready());
}

}  // namespace
}  // namespace muster::scaling::actuator::process
