// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/limits.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::queue {
namespace {

using ::testing::HasSubstr;

bool IsInvalid(const absl::Status& status) {
  return status.code() == absl::StatusCode::kInvalidArgument;
}

NewMessage MessageWith(absl::Duration delay, absl::Duration ttl) {
  NewMessage message;
  message.delay = delay;
  message.ttl = ttl;
  return message;
}

TEST(QueueIdTest, ShowsAccountAndName) {
  EXPECT_EQ((QueueId{"acme", "in-0"}).ToString(), "acme/in-0");
}

TEST(LimitsTest, AcceptsSafeQueueNamesOnly) {
  for (const char* good : {"abc", "in-0", "0-9", "a1b2c3"}) {
    EXPECT_TRUE(ValidateQueueId({"acme", good}).ok()) << good;
  }
  for (const char* bad : {"", "ab", "-abc", "abc-", "a--b", "Abc", "a/b", "a_b", "a b", "ünï"}) {
    EXPECT_TRUE(IsInvalid(ValidateQueueId({"acme", bad}))) << bad;
  }
  EXPECT_TRUE(ValidateQueueId({"acme", std::string(63, 'a')}).ok());
  EXPECT_TRUE(IsInvalid(ValidateQueueId({"acme", std::string(64, 'a')})));
}

TEST(LimitsTest, AcceptsAccountsOfOneCharacter) {
  EXPECT_TRUE(ValidateQueueId({"a", "abc"}).ok());
  EXPECT_THAT(ValidateQueueId({"", "abc"}).message(), HasSubstr("account ''"));
  EXPECT_THAT(ValidateQueueId({"A", "abc"}).message(), HasSubstr("account 'A'"));
}

TEST(LimitsTest, BoundsMetadataNamesAndValuesTogether) {
  EXPECT_TRUE(ValidateMetadata({{"n", std::string(kMaxMetadataBytes - 1, 'v')}}).ok());
  EXPECT_TRUE(IsInvalid(ValidateMetadata({{"n", std::string(kMaxMetadataBytes, 'v')}})));
  EXPECT_TRUE(IsInvalid(ValidateMetadata({{"", "v"}})));
}

TEST(LimitsTest, BoundsTheBodyAndTheDedupId) {
  NewMessage message;
  message.body.assign(kMaxBodyBytes, 'b');
  message.dedup_id.assign(kMaxDedupIdBytes, 'd');
  EXPECT_TRUE(ValidateNewMessage(message).ok());
  message.dedup_id += 'd';
  EXPECT_TRUE(IsInvalid(ValidateNewMessage(message)));
  message.dedup_id.clear();
  message.body += 'b';
  EXPECT_TRUE(IsInvalid(ValidateNewMessage(message)));
}

TEST(LimitsTest, WantsADelayBelowTheTtl) {
  EXPECT_TRUE(ValidateNewMessage(MessageWith(absl::Seconds(1), absl::Seconds(2))).ok());
  EXPECT_TRUE(ValidateNewMessage(MessageWith(kMaxDelay, kNeverExpires)).ok());
  EXPECT_TRUE(IsInvalid(ValidateNewMessage(MessageWith(absl::Seconds(2), absl::Seconds(2)))));
  EXPECT_TRUE(IsInvalid(ValidateNewMessage(MessageWith(-absl::Seconds(1), absl::Seconds(2)))));
  EXPECT_TRUE(
      IsInvalid(ValidateNewMessage(MessageWith(kMaxDelay + absl::Seconds(1), kNeverExpires))));
  EXPECT_TRUE(IsInvalid(ValidateNewMessage(MessageWith({}, absl::ZeroDuration()))));
  EXPECT_TRUE(IsInvalid(ValidateNewMessage(MessageWith({}, -absl::Seconds(1)))));
}

TEST(LimitsTest, BoundsAPutByNumberAndBytes) {
  std::vector<NewMessage> messages(kMaxPutMessages);
  EXPECT_TRUE(ValidatePut(messages).ok());
  messages.emplace_back();
  EXPECT_TRUE(IsInvalid(ValidatePut(messages)));
  NewMessage large;
  large.body.assign(kMaxBodyBytes, 'b');
  EXPECT_TRUE(ValidatePut(std::vector<NewMessage>(kMaxPutBytes / kMaxBodyBytes, large)).ok());
  EXPECT_TRUE(
      IsInvalid(ValidatePut(std::vector<NewMessage>(kMaxPutBytes / kMaxBodyBytes + 1, large))));
}

TEST(LimitsTest, BoundsAReceive) {
  const Traits traits;
  EXPECT_TRUE(ValidateReceive({32, kMaxVisibility}, traits).ok());
  EXPECT_TRUE(ValidateReceive({1, kMinReceiveVisibility}, traits).ok());
  EXPECT_TRUE(IsInvalid(ValidateReceive({0, absl::Seconds(1)}, traits)));
  EXPECT_TRUE(IsInvalid(ValidateReceive({33, absl::Seconds(1)}, traits)));
  EXPECT_TRUE(IsInvalid(ValidateReceive({1, absl::ZeroDuration()}, traits)));
  EXPECT_TRUE(IsInvalid(ValidateReceive({1, kMaxVisibility + absl::Seconds(1)}, traits)));
}

TEST(LimitsTest, BoundsAnUpdate) {
  UpdateRequest request;
  EXPECT_TRUE(ValidateUpdate(request).ok());
  request.refund_attempt = true;
  EXPECT_TRUE(IsInvalid(ValidateUpdate(request)));
  request.attempt_ended = true;
  EXPECT_TRUE(ValidateUpdate(request).ok());
  request.visibility = kMaxVisibility + absl::Seconds(1);
  EXPECT_TRUE(IsInvalid(ValidateUpdate(request)));
  request.visibility = -absl::Seconds(1);
  EXPECT_TRUE(IsInvalid(ValidateUpdate(request)));
  request.visibility = absl::ZeroDuration();
  request.body = std::string(kMaxBodyBytes + 1, 'b');
  EXPECT_TRUE(IsInvalid(ValidateUpdate(request)));
}

TEST(LimitsTest, BoundsEveryBatchAndPage) {
  EXPECT_TRUE(ValidateSettle(kMaxSettle).ok());
  EXPECT_TRUE(IsInvalid(ValidateSettle(kMaxSettle + 1)));
  EXPECT_TRUE(ValidateListPoison(kMaxListPoison).ok());
  EXPECT_TRUE(IsInvalid(ValidateListPoison(kMaxListPoison + 1)));
  EXPECT_TRUE(IsInvalid(ValidateListPoison(0)));
  EXPECT_TRUE(ValidateFindPoison(kMaxFindPoison).ok());
  EXPECT_TRUE(IsInvalid(ValidateFindPoison(kMaxFindPoison + 1)));
  ListQueuesRequest list;
  EXPECT_TRUE(ValidateListQueues(list).ok());
  list.max_results = kMaxListQueues + 1;
  EXPECT_TRUE(IsInvalid(ValidateListQueues(list)));
  list.max_results = 0;
  EXPECT_TRUE(IsInvalid(ValidateListQueues(list)));
}

TEST(LimitsTest, CutsAReasonBetweenTwoCharacters) {
  EXPECT_EQ(CutReason("short"), "short");
  EXPECT_EQ(CutReason(std::string(kMaxReasonBytes + 5, 'x')).size(), kMaxReasonBytes);
  // "ä" has two bytes; its first is the last that fits.
  const std::string reason = std::string(kMaxReasonBytes - 1, 'x') + "ä";
  EXPECT_EQ(CutReason(reason), std::string(kMaxReasonBytes - 1, 'x'));
}

}  // namespace
}  // namespace muster::queue
