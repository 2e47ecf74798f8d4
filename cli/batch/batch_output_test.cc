// SPDX-License-Identifier: Apache-2.0

// Where the records of a batch may be written: nowhere that loses something else.
#include "cli/batch/batch_output.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"

namespace muster::cli {
namespace {

using ::testing::HasSubstr;

class OutputFileTest : public ::testing::Test {
 protected:
  OutputFileTest() { std::ofstream(input_) << "Amount\n1\n"; }

  std::string In(const std::string& name) const { return dir_.path() + "/" + name; }
  std::string WhyNot(const std::string& path) const {
    return std::string(CheckOutputFile(path, {input_}, In("data")).message());
  }

  const os::TempDir dir_;
  const std::string input_ = In("in.csv");
};

TEST_F(OutputFileTest, MayBeNewOrReplaceAnEarlierOne) {
  EXPECT_EQ(WhyNot(In("out.csv")), "");
  std::ofstream(In("out.csv")) << "of an earlier run";
  std::ofstream(In("out.csv.part")) << "of a run that was killed";
  EXPECT_EQ(WhyNot(In("out.csv")), "");
}

TEST_F(OutputFileTest, DoesNotReplaceTheInputHoweverItIsCalled) {
  EXPECT_EQ(WhyNot(input_), "--output-file would overwrite " + input_ + ", which is read");
  EXPECT_THAT(WhyNot(In("./in.csv")), HasSubstr("would overwrite"));
  std::filesystem::create_symlink(input_, In("link.csv"));
  EXPECT_THAT(WhyNot(In("link.csv")), HasSubstr("would overwrite"));
  std::filesystem::create_symlink(input_, In("out.csv.part"));
  EXPECT_THAT(WhyNot(In("out.csv")), HasSubstr("would overwrite")) << "it is written there first";
}

// The records replaced report.db, and with it what all batches had counted.
TEST_F(OutputFileTest, DoesNotLieInTheDataDirectory) {
  std::filesystem::create_directories(In("data/blobs"));
  EXPECT_EQ(WhyNot(In("data/report.db")),
            "--output-file lies in the data directory " + In("data") + ", which is muster's own");
  EXPECT_THAT(WhyNot(In("data/blobs/new.csv")), HasSubstr("muster's own"));
  std::filesystem::create_directory_symlink(In("data"), In("link"));
  EXPECT_THAT(WhyNot(In("link/report.db")), HasSubstr("muster's own"));
  EXPECT_EQ(WhyNot(In("data.csv")), "");
}

// A batch was worked through first.
TEST_F(OutputFileTest, NeedsItsFolder) {
  EXPECT_THAT(WhyNot(In("none/out.csv")), HasSubstr("there is no folder " + In("none")));
  EXPECT_EQ(WhyNot("out.csv"), "");
}

TEST_F(OutputFileTest, DoesNotReplaceADeviceOrAFolder) {
  EXPECT_THAT(WhyNot("/dev/null"), HasSubstr("would replace /dev/null, which is no regular file"));
  EXPECT_THAT(WhyNot(dir_.path()), HasSubstr("which is no regular file"));
}

}  // namespace
}  // namespace muster::cli
