#include "services/initiator/batch/scheduler.h"

#include <thread>

#include "gtest/gtest.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::initiator::batch {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(2);

class CancelAcksTest : public ::testing::Test {
 protected:
  static absl::Status Ok() { return absl::OkStatus(); }

  base::FakeClock clock_;
  CancelAcks acks_{&clock_};
};

TEST_F(CancelAcksTest, WaitForNobodyLongerThanUntilAllHaveAnswered) {
  const auto cancel = [this] {
    acks_.OnAcknowledged(7, "a");
    acks_.OnAcknowledged(7, "b");
    acks_.OnAcknowledged(7, "a");
    return absl::OkStatus();
  };
  EXPECT_EQ(acks_.Collect(7, {"a", "b"}, kPatience, cancel).value(), 2);
  EXPECT_EQ(acks_.Collect(7, {}, kPatience, Ok).value(), 0);
}

TEST_F(CancelAcksTest, CountThoseWhoAnswerWhileTheyAreWaitedFor) {
  std::thread later([this] {
    clock_.AwaitSleepers(1);
    acks_.OnAcknowledged(7, "b");
  });
  const auto cancel = [this] {
    acks_.OnAcknowledged(7, "a");
    return absl::OkStatus();
  };
  EXPECT_EQ(acks_.Collect(7, {"a", "b"}, kPatience, cancel).value(), 2);
  later.join();
}

TEST_F(CancelAcksTest, GiveUpOnThoseWhoSayNothing) {
  std::thread later([this] {
    clock_.AwaitSleepers(1);
    clock_.Advance(kPatience);
  });
  const auto cancel = [this] {
    acks_.OnAcknowledged(7, "a");
    acks_.OnAcknowledged(7, "nobody asked");
    acks_.OnAcknowledged(8, "b");
    return absl::OkStatus();
  };
  EXPECT_EQ(acks_.Collect(7, {"a", "b"}, kPatience, cancel).value(), 1);
  later.join();
}

TEST_F(CancelAcksTest, AreNotWaitedForWhenNothingWasCancelled) {
  const auto refuse = [] { return absl::NotFoundError("no such batch"); };
  EXPECT_TRUE(absl::IsNotFound(acks_.Collect(7, {"a"}, kPatience, refuse).status()));
}

TEST_F(CancelAcksTest, OfAnEarlierCancellationDoNotCount) {
  const auto cancel = [this] {
    acks_.OnAcknowledged(7, "a");
    return absl::OkStatus();
  };
  EXPECT_EQ(acks_.Collect(7, {"a"}, kPatience, cancel).value(), 1);
  std::thread later([this] {
    clock_.AwaitSleepers(1);
    clock_.Advance(kPatience);
  });
  EXPECT_EQ(acks_.Collect(7, {"a"}, kPatience, Ok).value(), 0);
  later.join();
}

}  // namespace
}  // namespace muster::initiator::batch
