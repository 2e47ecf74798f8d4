// SPDX-License-Identifier: Apache-2.0

// Batches that are refused because too much work is waiting.
#include <optional>
#include <string>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/v1/batch.pb.h"
#include "tests/mesh/batch_service_fixture.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// An item takes ten seconds; the limit is a minute of waiting work.
class DrainLimitTest : public BatchServiceTest {
 protected:
  DrainLimitTest() {
    std::string text = kJob;
    text.replace(text.find("{partitions: 2}"), 15, "{partitions: 2, max_drain: 1m}");
    EXPECT_TRUE(jobs_.Apply(text, std::nullopt).ok());
    processors_.Say(
        "slow",
        {.account = kAccount, .job = "count", .threads_max = 1, .service_time = absl::Seconds(10)});
  }

  // All 50 items of a batch wait when it returns.
  uint64_t FillQueue() {
    const auto submitted = Submit("first", Input(1000));
    EXPECT_TRUE(submitted.ok()) << submitted.status();
    AwaitQueued(submitted->batch(), 50);
    return submitted->batch();
  }
};

TEST_F(DrainLimitTest, RefusesANewBatchWhileWhatWaitsTakesTooLong) {
  FillQueue();
  const absl::Status refused = Submit("second", Input(100)).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("would take 8m20s, and its queue.max_drain is 1m: submit again in 5m"));
  EXPECT_EQ(rpc::RetryAfter(refused), absl::Minutes(5));
  const rpc::ErrorReason reason{
      "DRAIN_TOO_LONG", {{"job", "count"}, {"estimate_seconds", "500"}, {"limit_seconds", "60"}}};
  EXPECT_EQ(rpc::Reason(refused), reason);
  EXPECT_EQ(ledger_->ListOpen()->size(), 1);
}

TEST_F(DrainLimitTest, NeverRefusesABatchThatItHasTakenIn) {
  const std::string text = Input(100);
  {
    Upload cut_off(stub_.get());
    cut_off.SendHeader(Header("half"));
    EXPECT_EQ(cut_off.Hear().accepted().durable_offset(), 0);
  }
  const uint64_t first = FillQueue();
  const auto again = Submit("first", Input(1000));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->batch(), first);
  const auto resumed = Submit("half", text);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(ledger_->ListOpen()->size(), 2);
}

TEST_F(DrainLimitTest, TakesABatchInOnceTheQueueIsDrained) {
  const uint64_t first = FillQueue();
  ASSERT_TRUE(absl::IsResourceExhausted(Submit("second", Input(100)).status()));
  StartProcessor();
  ASSERT_TRUE(Watch(first).ok());
  // Results are counted before the last items leave the queue.
  absl::StatusOr<v1::BatchStatus> second;
  do {
    second = Submit("second", Input(100));
  } while (absl::IsResourceExhausted(second.status()));
  ASSERT_TRUE(second.ok()) << second.status();
  const auto last = Watch(second->batch());
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->aggregated(), 100);
}

TEST_F(DrainLimitTest, LetsOthersSubmitWhileItEstimates) {
  EXPECT_TRUE(
      jobs_.Apply(absl::StrReplaceAll(kJob, {{"name: count", "name: other"}}), std::nullopt).ok());
  // The first answer of the mesh about "count" comes while a batch of "other" is accepted.
  on_admit_ = [this] {
    v1::SubmitHeader other = Header("meanwhile");
    other.set_job("other");
    Upload upload(stub_.get());
    upload.SendHeader(other);
    EXPECT_EQ(upload.Hear().accepted().batch(), 1);
  };
  const auto submitted = Submit("first", Input(10));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_EQ(submitted->batch(), 2);
}

TEST_F(DrainLimitTest, MakesOneBatchOfTwoRequestsThatAreEstimatedTogether) {
  on_admit_ = [this] {
    on_admit_ = nullptr;
    EXPECT_TRUE(Submit("same", Input(10)).ok());
  };
  const auto submitted = Submit("same", Input(10));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_EQ(submitted->batch(), 1);
  EXPECT_EQ(ledger_->ListOpen()->size(), 1);
}

}  // namespace
}  // namespace muster
