// SPDX-License-Identifier: Apache-2.0
#include "muster/release/global_flag.h"

#include <stop_token>
#include <thread>

#include "gtest/gtest.h"
#include "muster/release/polling_release.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::release {
namespace {

class GlobalFlagTest : public ::testing::Test {
 protected:
  sync::testing::MemorySyncStore store_;
  GlobalFlag flag_{&store_, "go"};
};

TEST_F(GlobalFlagTest, IsSetAsLongAsItsRecordExists) {
  EXPECT_FALSE(flag_.Get().value());
  ASSERT_TRUE(flag_.Set().ok());
  EXPECT_TRUE(flag_.Get().value());
  ASSERT_TRUE(flag_.Unset().ok());
  EXPECT_FALSE(flag_.Get().value());
}

TEST_F(GlobalFlagTest, DoesNotCareWhatTheRecordHolds) {
  store_.Overwrite("flag/go", "false");
  EXPECT_TRUE(flag_.Get().value());
}

TEST_F(GlobalFlagTest, SettingAndUnsettingTwiceIsFine) {
  ASSERT_TRUE(flag_.Unset().ok());
  ASSERT_TRUE(flag_.Set().ok());
  ASSERT_TRUE(flag_.Set().ok());
  ASSERT_TRUE(flag_.Unset().ok());
  ASSERT_TRUE(flag_.Unset().ok());
  EXPECT_FALSE(flag_.Get().value());
}

TEST_F(GlobalFlagTest, OneFlagIsNotAnother) {
  ASSERT_TRUE(flag_.Set().ok());
  EXPECT_FALSE(GlobalFlag(&store_, "other").Get().value());
}

TEST_F(GlobalFlagTest, RaisesEveryOtherError) {
  store_.FailNextGet(absl::UnavailableError("no route"));
  EXPECT_EQ(flag_.Get().status().code(), absl::StatusCode::kUnavailable);
  store_.FailNextWrite(absl::DataLossError("bad"));
  EXPECT_EQ(flag_.Set().code(), absl::StatusCode::kDataLoss);
  store_.FailNextGet(absl::UnavailableError("no route"));
  EXPECT_EQ(flag_.Unset().code(), absl::StatusCode::kUnavailable);
}

class PollingReleaseTest : public GlobalFlagTest {
 protected:
  base::FakeClock clock_;
  PollingRelease release_{&flag_, kPollingInterval, &clock_};
};

TEST_F(PollingReleaseTest, GoesWithTheFirstPollAfterTheFlagIsSet) {
  absl::Status waited = absl::UnknownError("it has not returned");
  std::thread worker([&] { waited = release_.Wait({}); });
  clock_.AwaitSleepers(1);
  EXPECT_EQ(clock_.NextDeadline() - clock_.Monotonic(), absl::Milliseconds(2500));
  ASSERT_TRUE(flag_.Set().ok());
  clock_.Advance(kPollingInterval);
  worker.join();
  EXPECT_TRUE(waited.ok()) << waited;
}

TEST_F(PollingReleaseTest, WhoStartsLateGoesAtOnce) {
  ASSERT_TRUE(flag_.Set().ok());
  EXPECT_TRUE(release_.Wait({}).ok());
}

TEST_F(PollingReleaseTest, EndsWhenItIsStoppedOrTheFlagCannotBeRead) {
  std::stop_source stop;
  absl::Status waited;
  std::thread worker([&] { waited = release_.Wait(stop.get_token()); });
  clock_.AwaitSleepers(1);
  stop.request_stop();
  worker.join();
  EXPECT_EQ(waited.code(), absl::StatusCode::kCancelled);
  store_.FailNextGet(absl::DataLossError("bad"));
  EXPECT_EQ(release_.Wait({}).code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace muster::release
