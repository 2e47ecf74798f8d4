// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/protocol/error.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::queue_gateway::protocol {
namespace {

TEST(ErrorTest, SaysWithWhichBoundsAParameterMustKeep) {
  EXPECT_THAT(OutOfRange("numofmessages", "33", 1, 32).details,
              testing::ElementsAre(testing::Pair("QueryParameterName", "numofmessages"),
                                   testing::Pair("QueryParameterValue", "33"),
                                   testing::Pair("MinimumAllowed", "1"),
                                   testing::Pair("MaximumAllowed", "32")));
}

TEST(ErrorTest, TranslatesWhatTheStoreAnswers) {
  EXPECT_EQ(FromStore(absl::NotFoundError("")).code, ErrorCode::kQueueNotFound);
  EXPECT_EQ(FromStore(absl::AlreadyExistsError("")).code, ErrorCode::kQueueAlreadyExists);
  EXPECT_EQ(FromStore(absl::ResourceExhaustedError("")).code, ErrorCode::kServerBusy);
  EXPECT_EQ(FromStore(absl::UnavailableError("")).code, ErrorCode::kOperationTimedOut);
  EXPECT_EQ(FromStore(absl::DataLossError("")).code, ErrorCode::kInternalError);
}

}  // namespace
}  // namespace muster::queue_gateway::protocol
