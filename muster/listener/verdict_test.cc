// SPDX-License-Identifier: Apache-2.0
#include "muster/listener/verdict.h"

#include <limits>
#include <utility>

#include "gtest/gtest.h"
#include "muster/queue/limits.h"

namespace muster::listener {
namespace {

using Action = Verdict::Action;
using Kind = Settlement::Kind;

constexpr VerdictRules kRules{.max_attempts = 3, .has_output_queue = true};

Verdict JudgeKind(Kind kind, int attempts, bool begun = true) {
  Settlement settlement;
  settlement.kind = kind;
  settlement.why = "it rained";
  return Judge(std::move(settlement), attempts, begun, kRules, 0.5);
}

TEST(VerdictTest, DeletesWhatWentWell) {
  EXPECT_EQ(JudgeKind(Kind::kOk, 1).action, Action::kDelete);
}

TEST(VerdictTest, TreatsAnUnsetOutcomeAsARetry) {
  const Verdict verdict = JudgeKind(Kind::kUnset, 1);
  EXPECT_EQ(verdict.action, Action::kGiveBack);
  EXPECT_TRUE(verdict.attempt_ended);
  EXPECT_FALSE(verdict.refund_attempt);
  EXPECT_EQ(verdict.delay, kRules.minimum_retry_delay);
}

TEST(VerdictTest, GivesUpAfterTheLastAttemptAndSaysWhy) {
  const Verdict verdict = JudgeKind(Kind::kRetry, 3);
  EXPECT_EQ(verdict.action, Action::kDeadLetter);
  EXPECT_EQ(verdict.why, "attempt 3 of 3 failed: it rained");
}

TEST(VerdictTest, BlamesAMissingOutcomeOnlyWhenThereWasNone) {
  Settlement settlement;
  EXPECT_EQ(Judge(settlement, 3, true, kRules, 0.5).why,
            "attempt 3 of 3 failed: the handler gave no outcome");
  settlement.kind = Kind::kRetry;
  EXPECT_EQ(Judge(settlement, 3, true, kRules, 0.5).why, "attempt 3 of 3 failed");
  EXPECT_EQ(Judge(settlement, 1, true, kRules, 0.5).why, "");
}

TEST(VerdictTest, DoesNotGiveUpForAnAttemptThatNeverBegan) {
  EXPECT_EQ(JudgeKind(Kind::kRetry, 3, false).action, Action::kGiveBack);
}

TEST(VerdictTest, ChargesNothingForDeferAndRelease) {
  for (const Kind kind : {Kind::kDefer, Kind::kRelease}) {
    const Verdict verdict = JudgeKind(kind, 3);
    EXPECT_EQ(verdict.action, Action::kGiveBack);
    EXPECT_TRUE(verdict.attempt_ended);
    EXPECT_TRUE(verdict.refund_attempt);
  }
  EXPECT_EQ(JudgeKind(Kind::kRelease, 1).delay, absl::ZeroDuration());
}

TEST(VerdictTest, KeepsTheMarkOfASuspectThatNeverBegan) {
  EXPECT_FALSE(JudgeKind(Kind::kRelease, 1, false).attempt_ended);
}

TEST(VerdictTest, SaysWhatIsWantedForAMessageThatIsForOthers) {
  Settlement settlement;
  settlement.kind = Kind::kDefer;
  settlement.wanted = "v1";
  const Verdict verdict = Judge(settlement, 1, true, kRules, 0.5);
  EXPECT_EQ(verdict.action, Verdict::Action::kGiveBack);
  EXPECT_EQ(verdict.wanted, "v1");
  EXPECT_TRUE(verdict.refund_attempt);
}

TEST(VerdictTest, KeepsAMessageForOthersAwayForLongerEachTime) {
  EXPECT_EQ(DelayForOthers(1, 0.5), absl::Milliseconds(250));
  EXPECT_EQ(DelayForOthers(2, 0.5), absl::Milliseconds(500));
  EXPECT_EQ(DelayForOthers(7, 0.5), absl::Seconds(16));
  for (const int dequeues : {8, 63, 64, 65, 1 << 30, std::numeric_limits<int>::max()}) {
    EXPECT_EQ(DelayForOthers(dequeues, 0.5), absl::Seconds(25)) << dequeues;
  }
  EXPECT_EQ(DelayForOthers(0, 0.5), absl::Milliseconds(250)) << "of a put's own receipt";
}

TEST(VerdictTest, ShakesTheLongestDelayForOthersTooSoThatNobodyKeepsStep) {
  EXPECT_EQ(DelayForOthers(100, 0), absl::Seconds(20));
  EXPECT_LT(DelayForOthers(100, 0.999), absl::Seconds(30));
  EXPECT_GT(DelayForOthers(100, 0.999), absl::Seconds(29));
}

TEST(VerdictTest, EndsTheLeaseOfAMessageForOthersThatNeverBegan) {
  Settlement settlement;
  settlement.kind = Kind::kDefer;
  settlement.wanted = "v1";
  const Verdict verdict = Judge(settlement, 1, false, kRules, 0.5);
  EXPECT_EQ(verdict.action, Action::kGiveBack);
  EXPECT_TRUE(verdict.attempt_ended);
  EXPECT_FALSE(verdict.refund_attempt);
}

TEST(VerdictTest, NeverDefersWithoutADelay) {
  EXPECT_EQ(JudgeKind(Kind::kDefer, 1).delay, kRules.minimum_retry_delay);
}

TEST(VerdictTest, DoublesTheRetryDelayUpToTheMaximum) {
  EXPECT_EQ(RetryDelay(kRules, 1, 0.5), absl::Milliseconds(100));
  EXPECT_EQ(RetryDelay(kRules, 3, 0.5), absl::Milliseconds(400));
  EXPECT_EQ(RetryDelay(kRules, 1, 0), absl::Milliseconds(80));
  EXPECT_EQ(RetryDelay(kRules, 40, 0.5), absl::Minutes(1));
  EXPECT_EQ(RetryDelay(kRules, std::numeric_limits<int>::max(), 0.5), absl::Minutes(1));
}

TEST(VerdictTest, GivesUpWhoseOutputNoQueueTakes) {
  Settlement settlement;
  settlement.kind = Kind::kOk;
  settlement.outputs.emplace_back().body.assign(queue::kMaxBodyBytes + 1, 'x');
  EXPECT_EQ(Judge(settlement, 1, true, kRules, 0).action, Action::kDeadLetter);
  settlement.outputs[0].body = "x";
  EXPECT_EQ(Judge(settlement, 1, true, {.has_output_queue = false}, 0).action, Action::kDeadLetter);
}

TEST(VerdictTest, TellsTheKindsOfEndsApart) {
  using queue::DeadLetterKind;
  EXPECT_EQ(JudgeKind(Kind::kRetry, 3).kind, DeadLetterKind::kAttempts);
  EXPECT_EQ(JudgeKind(Kind::kDead, 1).kind, DeadLetterKind::kRefused);
  Settlement without_queue;
  without_queue.kind = Kind::kOk;
  without_queue.outputs.emplace_back();
  EXPECT_EQ(Judge(std::move(without_queue), 1, true, {.has_output_queue = false}, 0).kind,
            DeadLetterKind::kOutput);
  queue::Message spent;
  spent.attempts = 3;
  EXPECT_EQ(JudgeSpent(spent).kind, DeadLetterKind::kAttempts);
  spent.interrupted = true;
  EXPECT_EQ(JudgeSpent(spent).kind, DeadLetterKind::kCrash);
}

TEST(VerdictTest, CallsAMessageSpentByItsAttemptsNotByItsDequeueCount) {
  queue::Message message;
  message.dequeue_count = 1000;
  message.attempts = 2;
  EXPECT_FALSE(IsSpent(message, kRules));
  message.attempts = 3;
  EXPECT_TRUE(IsSpent(message, kRules));
}

}  // namespace
}  // namespace muster::listener
