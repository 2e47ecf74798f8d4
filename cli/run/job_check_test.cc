// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <sstream>
#include <string>

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

TEST(JobCheckTest, SaysWhereAHandlerIsNamedThatIsNotThere) {
  const os::TempDir dir;
  const std::string file = dir / "job.yaml";
  std::ofstream(file) << kJob;
  handler::HandlerRegistry handlers;
  handlers.Register({"retail", "1", nullptr});
  base::FakeClock clock;
  std::ostringstream out, err;
  Environment environment;
  environment.handlers = &handlers;
  environment.clock = &clock;
  environment.out = &out;
  environment.err = &err;
  const std::string complaint = absl::StrCat(
      "muster: ", file, ":4:11: handler.linked: this program has no handler 'retial'; ",
      "it has: retail; did you mean 'retail'?\n");
  const char* const check[] = {"muster", "job", "check", file.c_str()};
  EXPECT_EQ(RunCommandLine(4, check, environment), kError);
  EXPECT_EQ(err.str(), complaint);
  err.str("");
  const char* const run[] = {"muster", "run", file.c_str(), "--input", "none.csv"};
  EXPECT_EQ(RunCommandLine(5, run, environment), kError);
  EXPECT_EQ(err.str(), complaint);
}

TEST(JobCheckTest, SaysThatTheJobFileOfARunLooksLikeItsInput) {
  const os::TempDir dir;
  const std::string input = dir / "in.CSV";
  std::ofstream(input) << "day,price\n2011-12-09,1.25\n";
  const handler::HandlerRegistry handlers;
  base::FakeClock clock;
  std::ostringstream out, err;
  Environment environment;
  environment.handlers = &handlers;
  environment.clock = &clock;
  environment.out = &out;
  environment.err = &err;
  const char* const run[] = {"muster", "run", input.c_str(), "--input", "job.yaml"};
  EXPECT_EQ(RunCommandLine(5, run, environment), kError);
  EXPECT_THAT(err.str(), EndsWith(absl::StrCat("; it looks like an input, which goes behind "
                                               "--input: muster run JOB --input ",
                                               input, "\n")));
}

constexpr char kProgram[] =
    "name: tally\n"
    "input: {format: lines}\n"
    "handler: {deadline: 5s,\n"
    "          command: [python3, missing.py]}\n"
    "groups: [{name: all, keys: [k], measures: {n: int}}]\n";

TEST(JobCheckTest, SaysWhereAProgramIsNamedThatIsNotThere) {
  const os::TempDir dir;
  const std::string file = dir / "job.yaml";
  std::ofstream(file) << kProgram;
  std::ofstream(dir / "in.txt") << "1\n";
  const handler::HandlerRegistry handlers;
  base::FakeClock clock;
  std::ostringstream out, err;
  Environment environment;
  environment.handlers = &handlers;
  environment.clock = &clock;
  environment.out = &out;
  environment.err = &err;
  const std::string place = absl::StrCat("muster: ", file, ":4:20: handler.command: no script /");
  const char* const check[] = {"muster", "job", "check", file.c_str()};
  EXPECT_EQ(RunCommandLine(4, check, environment), kError);
  EXPECT_THAT(err.str(), StartsWith(place));
  err.str("");
  const std::string input = dir / "in.txt", data = dir / "data";
  const char* const run[] = {"muster",      "run",        file.c_str(), "--input",
                             input.c_str(), "--data-dir", data.c_str()};
  EXPECT_EQ(RunCommandLine(7, run, environment), kError);
  EXPECT_THAT(err.str(), StartsWith(place));
}

}  // namespace
}  // namespace muster::cli
