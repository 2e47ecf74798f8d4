// SPDX-License-Identifier: Apache-2.0

// muster job, on a mesh.
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/cli/client_fixture.h"

namespace muster::cli {
namespace {

using ::testing::HasSubstr;

class JobCommandTest : public ClientTest {
 protected:
  // Answers the file's name.
  std::string Write(const std::string& definition) {
    const std::string path = dir_ / "job.yaml";
    std::ofstream(path) << definition;
    return path;
  }
};

TEST_F(JobCommandTest, AppliesShowsAndDeletesJobs) {
  EXPECT_EQ(RunOnServer({"job", "apply", Write("shop: 1")}).out,
            "job shop is at revision fffffff\n");
  EXPECT_EQ(RunOnServer({"job", "apply", Write("shop: 1")}).out,
            "job shop is at revision fffffff, as before\n");
  EXPECT_EQ(RunOnServer({"job", "apply", Write("bakery: 1"), "-o", "json"}).out,
            "{\"job\":\"bakery\",\"revision\":\"fffffffff\",\"updated\":"
            "\"2011-12-09T12:50:00.000Z\",\"groups\":[\"by_day\"],\"revised\":true}\n");
  EXPECT_EQ(RunOnServer({"job", "list"}).out,
            "JOB     REVISION   UPDATED                   GROUPS\n"
            "bakery  fffffffff  2011-12-09T12:50:00.000Z  by_day\n"
            "shop    fffffff    2011-12-09T12:50:00.000Z  by_day\n");
  EXPECT_EQ(RunOnServer({"job", "get", "shop"}).out, "shop: 1\n");
  EXPECT_EQ(RunOnServer({"job", "delete", "shop"}).code, kOk);
  EXPECT_EQ(RunOnServer({"job", "get", "shop"}).code, kError);
}

TEST_F(JobCommandTest, AppliesOnlyOverTheRevisionThatIsExpected) {
  EXPECT_EQ(RunOnServer({"job", "apply", Write("shop: 1"), "--expect", "f"}).code, kError);
  EXPECT_EQ(RunOnServer({"job", "apply", Write("shop: 1"), "--new"}).code, kOk);
  EXPECT_EQ(RunOnServer({"job", "apply", Write("shop: 11"), "--new"}).code, kError);
  EXPECT_EQ(RunOnServer({"job", "apply", Write("shop: 11"), "--expect", "fffffff"}).code, kOk);
}

TEST_F(JobCommandTest, NamesTheFileWithEachMistake) {
  const std::string file = Write("nothing");
  const Done applied = RunOnServer({"job", "apply", file});
  EXPECT_EQ(applied.code, kError);
  EXPECT_EQ(applied.err,
            absl::StrCat("muster: ", file, ":1:1: no name\n", file, ":2:3: no columns\n"));
  const Done checked = RunOnServer({"job", "check", file});
  EXPECT_EQ(checked.code, kError);
  EXPECT_EQ(checked.err, absl::StrCat("muster: ", file, ":1:1: no name\n"));
}

TEST_F(JobCommandTest, ChecksAFileThere) {
  const std::string file = Write("shop: 1");
  EXPECT_EQ(RunOnServer({"job", "check", file}).out,
            absl::StrCat(file, ": job shop is fine (revision fffffff)\n"));
  EXPECT_EQ(RunOnServer({"job", "check", file, "-o", "json"}).out,
            absl::StrCat("{\"file\":\"", file, "\",\"job\":\"shop\",\"revision\":\"fffffff\"}\n"));
  EXPECT_EQ(RunOnServer({"job", "check", file, "-o", "yaml"}).out,
            absl::StrCat("file: \"", file, "\"\njob: shop\nrevision: fffffff\n"));
}

TEST_F(JobCommandTest, NeedsAServer) {
  const Done done = Run({"job", "list"});
  EXPECT_EQ(done.code, kError);
  EXPECT_EQ(done.err,
            "muster: jobs are kept by a server: name one with --server HOST:PORT or MUSTER_SERVER; "
            "`muster up --data-dir DIR` is one, also of what `muster run` has left in DIR\n");
}

}  // namespace
}  // namespace muster::cli
