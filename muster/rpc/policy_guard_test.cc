// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/policy_guard.h"

#include <sys/resource.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/rpc/limits.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/log_capture.h"

namespace muster::rpc {
namespace {

using ::testing::HasSubstr;

class PolicyGuardTest : public ::testing::Test {
 protected:
  // Writes the file and gives it a distinct modification time: file systems store time in steps.
  void Write(const std::string& text) {
    std::ofstream(path_) << text;
    std::filesystem::last_write_time(
        path_, std::filesystem::file_time_type::clock::now() + std::chrono::hours(++writes_));
  }
  static std::string AllowOnly(const std::string& name) {
    return "roles:\n  - name: r\n    members: [\"cn:" + name + "\"]\n    methods: [\"*\"]\n";
  }
  bool Allows(const std::string& name) {
    Caller caller;
    caller.common_name = name;
    return guard_->Check(caller, "a.B/C").ok();
  }

  int writes_ = 0;
  const os::TempDir folder_;
  const std::string path_ = folder_ / "policy.yaml";
  base::FakeClock clock_;
  base::LogCapture log_;
  std::shared_ptr<PolicyGuard> guard_;
};

TEST_F(PolicyGuardTest, FollowsItsFile) {
  Write(AllowOnly("ann"));
  guard_ = *PolicyGuard::Open(path_, &clock_);
  EXPECT_TRUE(Allows("ann"));
  EXPECT_FALSE(Allows("bob"));
  Write(AllowOnly("bob"));
  EXPECT_FALSE(Allows("bob"));  // the guard has not read the file again yet
  clock_.Advance(kPolicyRefresh);
  EXPECT_TRUE(Allows("bob"));
  EXPECT_FALSE(Allows("ann"));
}

TEST_F(PolicyGuardTest, GoesOnWithWhatAFileSaidBeforeItBecameWrong) {
  Write(AllowOnly("ann"));
  guard_ = *PolicyGuard::Open(path_, &clock_);
  Write("roles: [\n");
  clock_.Advance(kPolicyRefresh);
  EXPECT_TRUE(Allows("ann"));
  std::filesystem::remove(path_);
  clock_.Advance(kPolicyRefresh);
  EXPECT_TRUE(Allows("ann"));
  Write(AllowOnly("bob"));
  clock_.Advance(kPolicyRefresh);
  EXPECT_FALSE(Allows("ann"));
}

// Where one look at the changed file had found no file descriptor left, who was taken out stayed
// allowed until the next change.
TEST_F(PolicyGuardTest, ReadsAChangedFileAgainThatCouldNotBeRead) {
  Write(AllowOnly("ann"));
  guard_ = *PolicyGuard::Open(path_, &clock_);
  Write(AllowOnly("bob"));
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{3, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(kPolicyRefresh);
    EXPECT_TRUE(Allows("ann"));
  }
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  clock_.Advance(kPolicyRefresh);
  EXPECT_FALSE(Allows("ann"));
  EXPECT_TRUE(Allows("bob"));
  EXPECT_THAT(log_.lines(),
              ::testing::ElementsAre(HasSubstr("cannot read"), HasSubstr("is in force")));
}

}  // namespace
}  // namespace muster::rpc
