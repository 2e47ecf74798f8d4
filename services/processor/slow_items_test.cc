// SPDX-License-Identifier: Apache-2.0

// Warnings of items that are with their handler for long: when they come, what they say, and that
// they end with the call.
#include "services/processor/slow_items.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/base/log_capture.h"

namespace muster::processor {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

job::JobDefinition JobWith(job::HandlerSpec handler) {
  job::JobDefinition job;
  job.handler = std::move(handler);
  return job;
}

TEST(ItemTimeTest, WarnsAtHalfOfTheDeadline) {
  job::CommandHandlerSpec command;
  EXPECT_EQ(ItemTimeOf(JobWith(command)).deadline, absl::Seconds(60));
  EXPECT_EQ(ItemTimeOf(JobWith(command)).warn_after, absl::Seconds(30));
  job::GrpcHandlerSpec grpc;
  grpc.deadline = absl::Minutes(10);
  EXPECT_EQ(ItemTimeOf(JobWith(grpc)).warn_after, absl::Minutes(5));
  EXPECT_TRUE(ItemTimeOf(JobWith(grpc)).is_ended);
}

TEST(ItemTimeTest, WarnsSoonerWhereTheJobPromisesMore) {
  job::JobDefinition job = JobWith(job::CommandHandlerSpec());
  job.sla_max = absl::Seconds(10);
  EXPECT_EQ(ItemTimeOf(job).warn_after, absl::Seconds(5));
  EXPECT_EQ(ItemTimeOf(job).deadline, absl::Seconds(60)) << "a promise kills no item";
  job.sla_max = absl::Hours(1);
  EXPECT_EQ(ItemTimeOf(job).warn_after, absl::Seconds(30));
}

TEST(ItemTimeTest, WarnsOfALinkedHandlerWithoutADeadline) {
  job::LinkedHandlerSpec linked;
  EXPECT_EQ(ItemTimeOf(JobWith(linked)).warn_after, kWarnUnlessPromised);
  EXPECT_EQ(ItemTimeOf(JobWith(linked)).deadline, absl::InfiniteDuration());
  EXPECT_FALSE(ItemTimeOf(JobWith(linked)).is_ended);
  linked.deadline = absl::Seconds(8);
  EXPECT_EQ(ItemTimeOf(JobWith(linked)).warn_after, absl::Seconds(4));
}

class SlowItemsTest : public ::testing::Test {
 protected:
  SlowItem Item(const std::string& name) const {
    return {
        "billing", name, "python3 bill.py", {absl::Seconds(30), absl::Seconds(60), true}, health_};
  }

  // Advances once the thread sleeps, and waits until it has noted what is due.
  void AdvanceAndAwaitTrouble(absl::Duration by, const std::string& trouble) {
    clock_.AwaitSleepers(1);
    clock_.Advance(by);
    while (health_->why().find(trouble) == std::string::npos) base::LetOthersRun();
  }

  base::FakeClock clock_;
  base::LogCapture log_;
  const std::shared_ptr<handler::HealthTroubles> health_ =
      std::make_shared<handler::HealthTroubles>();
};

TEST_F(SlowItemsTest, NamesTheItemAndTheHandlerBeforeTheKill) {
  std::optional<SlowItems> items(std::in_place, &clock_);
  {
    const SlowItems::Call call(&*items, Item("1/7"));
    AdvanceAndAwaitTrouble(absl::Seconds(30), "1/7");
    EXPECT_EQ(health_->why(),
              "item 1/7 has been with its handler (python3 bill.py) for 30s; it is ended, and "
              "charged an attempt, 1m after the handler takes it")
        << "a program that still starts has not taken it";
  }
  EXPECT_EQ(health_->why(), "") << "the call is over";
  items.reset();  // the thread has logged what it took
  EXPECT_THAT(log_.lines(), Contains(AllOf(HasSubstr("level=warning"), HasSubstr("job=billing"),
                                           HasSubstr("item=1/7"), HasSubstr("python3 bill.py"))));
}

TEST_F(SlowItemsTest, WarnsAgainAfterEachDoublingOfTheTime) {
  SlowItems items(&clock_);
  const SlowItems::Call call(&items, Item("1/7"));
  AdvanceAndAwaitTrouble(absl::Seconds(30), "for 30s");
  clock_.AwaitSleepers(1);
  EXPECT_EQ(clock_.NextDeadline() - clock_.Monotonic(), absl::Seconds(30));
  AdvanceAndAwaitTrouble(absl::Seconds(30), "for 1m");
  clock_.AwaitSleepers(1);
  EXPECT_EQ(clock_.NextDeadline() - clock_.Monotonic(), absl::Minutes(1));
}

// The thread wakes a little after the time: nobody reads nanoseconds.
TEST_F(SlowItemsTest, SaysTheTimeInMilliseconds) {
  SlowItems items(&clock_);
  const SlowItems::Call call(&items, Item("1/7"));
  AdvanceAndAwaitTrouble(absl::Seconds(30) + absl::Nanoseconds(4'700'123), "for 30.004s;");
}

TEST_F(SlowItemsTest, SaysNothingOfACallThatEndsInTime) {
  SlowItems items(&clock_);
  { const SlowItems::Call call(&items, Item("1/6")); }
  const SlowItems::Call slow(&items, Item("1/7"));
  AdvanceAndAwaitTrouble(absl::Seconds(30), "1/7");
  EXPECT_THAT(log_.lines(), Not(Contains(HasSubstr("1/6"))));
}

TEST_F(SlowItemsTest, SaysThatNothingCanEndALinkedHandler) {
  SlowItems items(&clock_);
  SlowItem linked = Item("1/7");
  linked.time.is_ended = false;
  const SlowItems::Call call(&items, linked);
  AdvanceAndAwaitTrouble(absl::Seconds(30), "nothing can end a linked handler");
}

}  // namespace
}  // namespace muster::processor
