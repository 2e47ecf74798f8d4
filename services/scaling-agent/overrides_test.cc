// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/overrides.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/scaling-agent/limits.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::scaling_agent {
namespace {

using ::testing::HasSubstr;

class OverridesTest : public ::testing::Test {
 protected:
  Override Of(const std::string& target, int replicas, absl::Duration hold = absl::Hours(1)) const {
    return {target, replicas, clock_.Now() + hold, "ops"};
  }
  // Returns the number of replicas of the override, or "-" where there is none.
  static std::string Held(const Overrides& overrides, const std::string& target = "billing") {
    const auto held = overrides.Of(target);
    return held.has_value() ? absl::StrCat(held->replicas) : "-";
  }

  base::FakeClock clock_;
  sync::testing::MemorySyncStore store_;
  Overrides overrides_{&store_, &clock_};
};

TEST_F(OverridesTest, HoldUntilTheyExpire) {
  ASSERT_TRUE(overrides_.Set(Of("billing", 7)).ok());
  EXPECT_EQ(Held(overrides_), "7");
  EXPECT_EQ(Held(overrides_, "rating"), "-");
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(Held(overrides_), "-");
}

TEST_F(OverridesTest, OutliveTheAgent) {
  ASSERT_TRUE(overrides_.Set(Of("billing", 7)).ok());
  Overrides next(&store_, &clock_);
  EXPECT_FALSE(next.is_known());
  EXPECT_EQ(Held(next), "-");
  ASSERT_TRUE(next.Refresh().ok());
  EXPECT_TRUE(next.is_known());
  EXPECT_EQ(Held(next), "7");
  EXPECT_EQ(next.Of("billing")->by, "ops");
}

TEST_F(OverridesTest, AreReplacedAndCleared) {
  ASSERT_TRUE(overrides_.Set(Of("billing", 7)).ok());
  ASSERT_TRUE(overrides_.Set(Of("rating", 1)).ok());
  ASSERT_TRUE(overrides_.Set(Of("billing", 8)).ok());
  EXPECT_EQ(Held(overrides_), "8");
  ASSERT_TRUE(overrides_.Clear("billing").ok());
  ASSERT_TRUE(overrides_.Clear("billing").ok());
  EXPECT_EQ(Held(overrides_), "-");
  EXPECT_EQ(Held(overrides_, "rating"), "1");
}

TEST_F(OverridesTest, WhatAnotherAgentWroteMeanwhileIsKept) {
  Overrides other(&store_, &clock_);
  ASSERT_TRUE(overrides_.Refresh().ok());
  ASSERT_TRUE(other.Set(Of("rating", 1)).ok());
  store_.LoseNextWrites(2);
  ASSERT_TRUE(overrides_.Set(Of("billing", 7)).ok());
  EXPECT_EQ(Held(overrides_, "rating"), "1");
}

TEST_F(OverridesTest, GiveUpWhereOthersAreAlwaysFirst) {
  store_.LoseNextWrites(kMaxOverrideTries);
  EXPECT_TRUE(absl::IsAborted(overrides_.Set(Of("billing", 7))));
  EXPECT_EQ(Held(overrides_), "-");
}

TEST_F(OverridesTest, WhatTheStoreDoesNotTakeIsNotInForce) {
  store_.FailNextWrite(absl::UnavailableError("down"));
  EXPECT_TRUE(absl::IsUnavailable(overrides_.Set(Of("billing", 7))));
  EXPECT_EQ(Held(overrides_), "-");
}

TEST_F(OverridesTest, WhatIsKnownStaysWhileTheStoreIsAway) {
  ASSERT_TRUE(overrides_.Set(Of("billing", 7)).ok());
  store_.FailNextGet(absl::UnavailableError("down"));
  EXPECT_FALSE(overrides_.Refresh().ok());
  EXPECT_EQ(Held(overrides_), "7");
  overrides_.Forget();
  EXPECT_FALSE(overrides_.is_known());
  EXPECT_EQ(Held(overrides_), "-");
}

TEST_F(OverridesTest, TheRecordForgetsWhatHasExpired) {
  ASSERT_TRUE(overrides_.Set(Of("billing", 7, absl::Seconds(1))).ok());
  clock_.Advance(absl::Seconds(1));
  ASSERT_TRUE(overrides_.Set(Of("rating", 1)).ok());
  EXPECT_THAT(store_.Get(kOverridesKey)->data, ::testing::Not(HasSubstr("billing")));
}

TEST_F(OverridesTest, AreWrittenAsEver) {
  const std::string text = Encode({{"billing", 7, absl::FromUnixSeconds(1321009200), "ops"}});
  EXPECT_EQ(text, R"({"version":1,"overrides":[{"target":"billing","replicas":7,)"
                  R"("until_ns":1321009200000000000,"by":"ops"}]})");
  EXPECT_EQ(DecodeOverrides(text)->front(),
            (Override{"billing", 7, absl::FromUnixSeconds(1321009200), "ops"}));
}

TEST_F(OverridesTest, ARecordThatIsNoneIsAnError) {
  for (const std::string text :
       {"", "nonsense", "{}", R"({"version":1,"overrides":[{"target":"x"}]})",
        R"({"version":1,"overrides":7})"}) {
    store_.Overwrite(kOverridesKey, text);
    EXPECT_TRUE(absl::IsDataLoss(overrides_.Refresh())) << text;
  }
  store_.Overwrite(kOverridesKey, R"({"version":2,"overrides":[]})");
  EXPECT_TRUE(absl::IsFailedPrecondition(overrides_.Refresh()));
  EXPECT_FALSE(overrides_.is_known());
}

}  // namespace
}  // namespace muster::scaling_agent
