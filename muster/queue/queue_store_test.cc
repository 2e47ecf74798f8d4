// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/queue_store.h"

#include "gtest/gtest.h"
#include "muster/queue/limits.h"

namespace muster::queue {
namespace {

TEST(LeaseMetadataTest, ReadsWhatItWrote) {
  for (const absl::Duration visibility : {kMinReceiveVisibility, absl::Milliseconds(100),
                                          absl::Seconds(30), absl::Minutes(90), kMaxVisibility}) {
    const Metadata metadata = WithVisibility({{"owner", "billing"}}, visibility);
    EXPECT_EQ(VisibilityOf(metadata), visibility);
    EXPECT_EQ(metadata.at("owner"), "billing");
    EXPECT_TRUE(ValidateMetadata(metadata).ok());
  }
}

TEST(LeaseMetadataTest, KeepsTheFormInWhichQueuesHaveIt) {
  EXPECT_EQ(WithVisibility({}, absl::Seconds(90)), (Metadata{{"muster-visibility", "1m30s"}}));
  EXPECT_EQ(WithVisibility({{"muster-visibility", "1m30s"}}, std::nullopt), Metadata());
}

// Clients send names as their programs have them, or as HTTP does: some in lower case, others with
// capitals.
TEST(LeaseMetadataTest, HasItsNameInAnyCase) {
  const Metadata metadata = {{"Muster-Visibility", "90s"}};
  EXPECT_EQ(VisibilityOf(metadata), absl::Seconds(90));
  EXPECT_EQ(WithVisibility(metadata, absl::Seconds(5)), (Metadata{{"muster-visibility", "5s"}}));
  EXPECT_EQ(WithVisibility(metadata, std::nullopt), Metadata());
  EXPECT_TRUE(absl::IsInvalidArgument(ValidateMetadata({{"MUSTER-VISIBILITY", "soon"}})));
}

TEST(LeaseMetadataTest, TakesNothingElseForAVisibility) {
  EXPECT_EQ(VisibilityOf({}), std::nullopt);
  for (const char* text : {"", "soon", "30", "-1s", "0", "0s", "inf", "nan", "1ns", "8000h"}) {
    const Metadata metadata = {{kVisibilityName, text}};
    EXPECT_EQ(VisibilityOf(metadata), std::nullopt) << text;
    EXPECT_TRUE(absl::IsInvalidArgument(ValidateMetadata(metadata))) << text;
  }
}

}  // namespace
}  // namespace muster::queue
