#include "muster/listener/claim_sizer.h"

#include "gtest/gtest.h"

namespace muster::listener {
namespace {

TEST(ClaimSizerTest, ClaimsOneWhileNothingIsKnown) {
  EXPECT_EQ(ClaimSizer(absl::Milliseconds(100)).Claim(32), 1);
}

TEST(ClaimSizerTest, DoublesUpToTheBatchSizeWhileWorkIsQuick) {
  ClaimSizer sizer(absl::Milliseconds(100));
  for (const int expected : {1, 2, 4, 8, 16, 32, 32}) {
    ASSERT_EQ(sizer.Claim(32), expected);
    sizer.Observe(expected, absl::Microseconds(10) * expected);
  }
}

TEST(ClaimSizerTest, ClaimsOnlyWhatItWillStartWithinTheHorizon) {
  ClaimSizer sizer(absl::Milliseconds(100));
  sizer.Observe(32, absl::Milliseconds(640));  // 20 ms each
  EXPECT_EQ(sizer.Claim(32), 5);
}

TEST(ClaimSizerTest, ClaimsOneOfWhatTakesLongerThanTheHorizon) {
  ClaimSizer sizer(absl::Milliseconds(100));
  sizer.Observe(1, absl::Hours(1));
  EXPECT_EQ(sizer.Claim(32), 1);
}

TEST(ClaimSizerTest, FollowsAChangeOfPaceWithinAFewBatches) {
  ClaimSizer sizer(absl::Milliseconds(100));
  sizer.Observe(32, absl::ZeroDuration());
  EXPECT_EQ(sizer.Claim(32), 32);
  for (int batch = 0; batch < 8; ++batch) sizer.Observe(32, absl::Seconds(32));
  EXPECT_EQ(sizer.Claim(32), 1);
}

}  // namespace
}  // namespace muster::listener
