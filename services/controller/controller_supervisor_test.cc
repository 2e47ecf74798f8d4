// SPDX-License-Identifier: Apache-2.0
#include "services/controller/controller_supervisor.h"

#include <chrono>
#include <future>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/queue/store_decorators.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/controller/controller_fixture.h"

namespace muster::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ControllerSupervisorTest : public ControllerTest {
 protected:
  // Returns the log lines about job "shop", in order.
  std::vector<std::string> Told() const {
    std::vector<std::string> told;
    for (const std::string& line : log_.lines()) {
      if (absl::StrContains(line, "job=shop")) told.push_back(line);
    }
    return told;
  }

  const base::LogCapture log_;
};

TEST_F(ControllerSupervisorTest, TellsThatItGoesOnWhenAStoreDidNotWork) {
  OpenBatch(1);
  PutQuietly({Result(0)});
  report_->FailNext({.status = absl::InternalError("the connection was closed")});
  ControllerSupervisor counting(item::kLocalAccount, Instantly(), host_->events(), dependencies());
  ASSERT_TRUE(counting.Begin("shop").ok());
  while (Told().empty()) base::LetOthersRun();
  // The lease of the result in progress lapses, too.
  while (GetProgress().items() == 0) {
    clock_.AwaitSleepers(1);
    clock_.Advance(absl::Seconds(1));
  }
  counting.Stop();
  EXPECT_THAT(Told(),
              ElementsAre(testing::AllOf(HasSubstr("level=error"), HasSubstr("it is tried again"),
                                         HasSubstr("the connection was closed")),
                          HasSubstr("are counted again")));
  EXPECT_EQ(GetProgress().items(), 1);
}

// The doctor called such a controller ready.
TEST_F(ControllerSupervisorTest, SaysWhyResultsAreNotCountedUntilTheyAreAgain) {
  OpenBatch(1);
  PutQuietly({Result(0)});
  for (int i = 0; i < 2; ++i) report_->FailNext({.status = absl::InternalError("it is gone")});
  ControllerSupervisor counting(item::kLocalAccount, Instantly(), host_->events(), dependencies());
  ASSERT_TRUE(counting.Begin("shop").ok());
  while (counting.Troubles(10).empty()) base::LetOthersRun();
  EXPECT_EQ(counting.Troubles(10).begin()->first, "shop");
  EXPECT_EQ(counting.Troubles(10).begin()->second.message(), "it is gone");
  EXPECT_TRUE(counting.Troubles(0).empty());
  for (;;) {
    const size_t troubles = counting.Troubles(10).size();
    if (GetProgress().items() > 0) break;
    EXPECT_EQ(troubles, 1U) << "another try is no proof";
    clock_.AwaitSleepers(1);
    clock_.Advance(absl::Seconds(1));
  }
  while (!counting.Troubles(10).empty()) base::LetOthersRun();
  counting.Stop();
  // The log said that before each try.
  EXPECT_THAT(Told(), ElementsAre(HasSubstr("was cut short"), HasSubstr("was cut short"),
                                  HasSubstr("are counted again")));
}

// A store that does not answer for the queue of job "slow" until it is told to.
class SlowForOneJob final : public queue::InterceptedStore {
 public:
  using InterceptedStore::InterceptedStore;

  void AwaitAsked() { asked_.get_future().wait(); }
  void Answer() { answers_.set_value(); }

 protected:
  absl::Status Before(queue::Verb verb, const queue::QueueId& queue) override {
    if (verb == queue::Verb::kAdministration && queue == item::OutputQueue("local", "slow", 0)) {
      asked_.set_value();
      answers_.get_future().wait();
    }
    return absl::OkStatus();
  }

 private:
  std::promise<void> asked_, answers_;
};

// While a server was slow to answer for the queue of one job, batches of other jobs took 5 to 10
// seconds instead of a quarter.
TEST_F(ControllerSupervisorTest, BeginsAJobWhileTheQueueOfAnotherIsSlow) {
  SlowForOneJob store(queues_.get());
  Dependencies slow = dependencies();
  slow.queues = &store;
  ControllerSupervisor counting(item::kLocalAccount, Instantly(), host_->events(), slow);
  auto begun = std::async(std::launch::async, [&] { return counting.Begin("slow", 3); });
  store.AwaitAsked();
  OpenBatch(1);
  EXPECT_TRUE(counting.Begin("shop", kBatch).ok());
  EXPECT_TRUE(counting.CheckCompletion(kBatch).ok());
  store.Answer();
  EXPECT_TRUE(begun.get().ok());
}

TEST_F(ControllerSupervisorTest, StopsOnlyWhenNothingBeginsAnyMore) {
  SlowForOneJob store(queues_.get());
  Dependencies slow = dependencies();
  slow.queues = &store;
  ControllerSupervisor counting(item::kLocalAccount, Instantly(), host_->events(), slow);
  auto begun = std::async(std::launch::async, [&] { return counting.Begin("slow"); });
  auto again = std::async(std::launch::async, [&] { return counting.Begin("slow"); });
  store.AwaitAsked();
  auto stopped = std::async(std::launch::async, [&] { counting.Stop(); });
  while (!absl::IsUnavailable(counting.Begin("other"))) base::LetOthersRun();
  EXPECT_EQ(stopped.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  store.Answer();
  begun.get().IgnoreError();
  again.get().IgnoreError();
  stopped.get();
}

// The threads of jobs that were deleted had stayed as long as the controller.
TEST_F(ControllerSupervisorTest, EndsWithTheQueueOfADeletedJobAndBeginsAnewWhenTheJobIsBack) {
  ControllerSupervisor counting(item::kLocalAccount, Instantly(), host_->events(), dependencies(),
                                [](const std::string&) { return false; });
  ASSERT_TRUE(counting.Begin("shop").ok());
  ASSERT_TRUE(queues_->DeleteQueue(output_).ok());
  Trigger();
  while (Told().empty()) {
    clock_.Advance(absl::Milliseconds(100));
    base::LetOthersRun();
  }
  EXPECT_THAT(Told(), ElementsAre(HasSubstr("was deleted")));
  EXPECT_TRUE(absl::IsNotFound(queues_->GetMetadata(output_).status()));
  ASSERT_TRUE(counting.Begin("shop").ok());
  OpenBatch(1);
  Put({Result(0)});
  while (GetProgress().items() == 0) base::LetOthersRun();
}

TEST_F(ControllerSupervisorTest, MakesTheQueueAnewThatAJobHasLost) {
  ControllerSupervisor counting(item::kLocalAccount, Instantly(), host_->events(), dependencies(),
                                [](const std::string&) { return true; });
  ASSERT_TRUE(counting.Begin("shop").ok());
  ASSERT_TRUE(queues_->DeleteQueue(output_).ok());
  Trigger();
  while (Told().empty()) {
    clock_.Advance(absl::Milliseconds(100));
    base::LetOthersRun();
  }
  EXPECT_THAT(Told(), ElementsAre(HasSubstr("are counted again")));
  EXPECT_TRUE(queues_->GetMetadata(output_).ok());
}

}  // namespace
}  // namespace muster::controller
