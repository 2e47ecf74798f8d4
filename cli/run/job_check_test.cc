// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/app.h"
#include "cli/output/environment.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::cli {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

constexpr char kJob[] =
    "name: retail\n"
    "input: {format: csv, columns: {price: decimal}}\n"
    "handler:\n"
    "  linked: retial\n"
    "groups: [{name: by_day, keys: [day], measures: {revenue: decimal(2)}}]\n";

class JobCheckTest : public ::testing::Test {
 protected:
  JobCheckTest() {
    environment_.handlers = &handlers_;
    environment_.clock = &clock_;
    environment_.out = &out_;
    environment_.err = &err_;
  }

  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name) << text;
    return dir_ / name;
  }
  // Runs `muster` with `arguments`, expects that it fails, and returns what it complains of.
  std::string Complaint(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "muster");
    std::vector<const char*> argv;
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    err_.str("");
    EXPECT_EQ(RunCommandLine(static_cast<int>(argv.size()), argv.data(), environment_), kError);
    return err_.str();
  }

  const os::TempDir dir_;
  handler::HandlerRegistry handlers_;
  base::FakeClock clock_;
  std::ostringstream out_, err_;
  Environment environment_;
};

TEST_F(JobCheckTest, SaysWhereAHandlerIsNamedThatIsNotThere) {
  handlers_.Register({"retail", "1", nullptr});
  const std::string file = Write("job.yaml", kJob);
  const std::string complaint = absl::StrCat(
      "muster: ", file, ":4:11: handler.linked: this program has no handler 'retial'; ",
      "it has: retail; did you mean 'retail'?\n");
  EXPECT_EQ(Complaint({"job", "check", file}), complaint);
  EXPECT_EQ(Complaint({"run", file, "--input", "none.csv"}), complaint);
}

TEST_F(JobCheckTest, SaysThatTheJobFileOfARunLooksLikeItsInput) {
  const std::string input = Write("in.CSV", "day,price\n2011-12-09,1.25\n");
  EXPECT_THAT(Complaint({"run", input, "--input", "job.yaml"}),
              EndsWith(absl::StrCat("; it looks like an input, which goes behind "
                                    "--input: muster run JOB --input ",
                                    input, "\n")));
}

constexpr char kProgram[] =
    "name: tally\n"
    "input: {format: lines}\n"
    "handler: {deadline: 5s,\n"
    "          command: [python3, missing.py]}\n"
    "groups: [{name: all, keys: [k], measures: {n: int}}]\n";

TEST_F(JobCheckTest, SaysWhereAProgramIsNamedThatIsNotThere) {
  const std::string file = Write("job.yaml", kProgram), input = Write("in.txt", "1\n");
  const std::string place = absl::StrCat("muster: ", file, ":4:20: handler.command: no script /");
  EXPECT_THAT(Complaint({"job", "check", file}), StartsWith(place));
  EXPECT_THAT(Complaint({"run", file, "--input", input, "--data-dir", dir_ / "data"}),
              StartsWith(place));
}

}  // namespace
}  // namespace muster::cli
