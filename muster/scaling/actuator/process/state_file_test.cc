#include "muster/scaling/actuator/process/state_file.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/scaling/actuator/process/limits.h"

namespace muster::scaling::actuator::process {
namespace {

class StateFileTest : public ::testing::Test {
 protected:
  os::TempDir folder_;
  const std::string path_ = folder_ / "file";
};

TEST_F(StateFileTest, ReplacesWhatWasThere) {
  for (const std::string& text :
       {std::string("long text"), std::string(), std::string("x\0y", 3)}) {
    ASSERT_TRUE(WriteStateFile(path_, text).ok());
    EXPECT_EQ(*ReadStateFile(path_), text);
  }
}

TEST_F(StateFileTest, TakesTheLeavingsOfAWriterThatDiedForNothing) {
  std::ofstream(path_ + ".new") << "half of";
  EXPECT_TRUE(absl::IsNotFound(ReadStateFile(path_).status()));
  ASSERT_TRUE(WriteStateFile(path_, "x").ok());
  EXPECT_EQ(*ReadStateFile(path_), "x");
}

TEST_F(StateFileTest, ReadsNoFileThatIsTooLong) {
  std::ofstream(path_) << std::string(kMaxStateFileBytes + 1, 'x');
  EXPECT_TRUE(absl::IsDataLoss(ReadStateFile(path_).status()));
}

TEST_F(StateFileTest, LeavesTheFileAsItWasWhenItCannotBeWritten) {
  ASSERT_TRUE(WriteStateFile(path_, "x").ok());
  std::filesystem::create_directory(path_ + ".new");
  EXPECT_FALSE(WriteStateFile(path_, "y").ok());
  EXPECT_EQ(*ReadStateFile(path_), "x");
}

}  // namespace
}  // namespace muster::scaling::actuator::process
