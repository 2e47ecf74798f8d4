// SPDX-License-Identifier: Apache-2.0
#include "muster/actuator/threads/threads_actuator.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/conformance/actuator/actuator_conformance.h"
#include "tests/fakes/actuator/threads/scripted_processor.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::actuator::conformance {
namespace {

class ThreadsStage final : public Stage {
 public:
  Actuator* actuator() override { return &actuator_; }
  std::string target() override { return "billing"; }
  std::string other_target() override { return "mail"; }
  // The processors know their orders before Apply returns.
  bool Await(const std::string& target, int replicas) override { return Told(target) == replicas; }
  int Told(const std::string& target) override { return processors_.AtWork(target); }

 private:
  actuator::threads::ScriptedProcessors processors_{5, {"billing", "mail"}};
  actuator::threads::ThreadsActuator actuator_{
      {{{"billing", "billing"}, {"mail", "mail"}}, processors_.directory()}, base::RealClock()};
};

constexpr Traits kThreads{.changes = true, .has_replicas = true, .chooses = true, .makes = false};

}  // namespace

INSTANTIATE_TEST_SUITE_P(Threads, ActuatorConformance, ::testing::Values(Platform(kThreads, [] {
                           return std::make_unique<ThreadsStage>();
                         })));

}  // namespace muster::actuator::conformance

namespace muster::actuator::threads {
namespace {

using actuator::Replica;
using actuator::ReplicaState;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ThreadsActuatorTest : public ::testing::Test {
 protected:
  ThreadsActuator Make(absl::Duration call_limit = absl::Minutes(2)) {
    return ThreadsActuator(
        {{{"work", "job"}, {"all", ""}}, processors_.directory(), {}, call_limit}, &clock_);
  }
  static actuator::Order To(int replicas, int tasks = 0) {
    actuator::Order order;
    order.target = "work";
    order.replicas = replicas;
    order.tasks = tasks;
    return order;
  }
  static std::vector<ReplicaState> States(ThreadsActuator& actuator) {
    std::vector<ReplicaState> states;
    const actuator::TargetState state = *actuator.Observe("work");
    for (const Replica& replica : state.replicas) states.push_back(replica.state);
    return states;
  }

  base::FakeClock clock_;
  ScriptedProcessors processors_{3, {"job", "other"}};
};

TEST_F(ThreadsActuatorTest, TellsHowManyThereAreWhenMoreAreOrdered) {
  ThreadsActuator actuator = Make();
  const auto outcome = actuator.Apply(To(10));
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->before, 0);
  EXPECT_EQ(outcome->after, 3);
  EXPECT_THAT(outcome->detail, HasSubstr("10 were ordered, and this actuator makes none"));
  EXPECT_EQ(actuator.Observe("work")->wanted, 3);
}

TEST_F(ThreadsActuatorTest, SetsTheTasksOfThoseAtWorkOnly) {
  ThreadsActuator actuator = Make();
  ASSERT_TRUE(actuator.Apply(To(2)).ok());
  ASSERT_TRUE(actuator.Apply(To(2, 8)).ok());
  for (int i = 0; i < 3; ++i) {
    const bool at_work = processors_[i].phase("job") == v1::LISTENER_PHASE_LISTENING;
    EXPECT_EQ(processors_[i].tasks("job"), at_work ? 8 : 0);
    EXPECT_EQ(processors_[i].tasks("other"), 0);
  }
  ASSERT_TRUE(actuator.Apply(To(3, 5)).ok());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(processors_[i].tasks("job"), 5);
}

TEST_F(ThreadsActuatorTest, TellsAllJobsOfATargetThatNamesNone) {
  ThreadsActuator actuator = Make();
  actuator::Order order = To(3);
  order.target = "all";
  ASSERT_TRUE(actuator.Apply(order).ok());
  EXPECT_EQ(processors_.AtWork("job"), 3);
  EXPECT_EQ(processors_.AtWork("other"), 3);
}

TEST_F(ThreadsActuatorTest, ShowsWhatEachProcessorDoes) {
  processors_[0].SetPhase("job", v1::LISTENER_PHASE_LISTENING);
  processors_[2].SetPhase("job", v1::LISTENER_PHASE_DRAINING);
  ThreadsActuator actuator = Make();
  EXPECT_THAT(States(actuator),
              ElementsAre(ReplicaState::kReady, ReplicaState::kParked, ReplicaState::kDraining));
  EXPECT_EQ(actuator.Observe("work")->wanted, 1);
}

TEST_F(ThreadsActuatorTest, TellsNobodyWhenTheLeadRanOutWhileItLooked) {
  const ProcessorDirectory directory = [this] {
    clock_.Advance(absl::Seconds(2));
    return processors_.directory()();
  };
  ThreadsActuator actuator({{{"work", "job"}}, directory}, &clock_);
  actuator::Order order = To(2);
  order.not_after = clock_.Monotonic() + absl::Seconds(2);
  EXPECT_EQ(actuator.Apply(order).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(processors_.AtWork("job"), 0);
}

TEST_F(ThreadsActuatorTest, ParksNobodyWhenTheLeadRanOutWhileItSetTasks) {
  for (int i = 0; i < 2; ++i) processors_[i].SetPhase("job", v1::LISTENER_PHASE_LISTENING);
  processors_[0].OnSetTasks([this] { clock_.Advance(absl::Seconds(2)); });
  ThreadsActuator actuator = Make();
  actuator::Order order = To(1, 8);
  order.not_after = clock_.Monotonic() + absl::Seconds(2);
  EXPECT_EQ(actuator.Apply(order).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(processors_.AtWork("job"), 2);
}

// Each query costs the queue store calls.
TEST_F(ThreadsActuatorTest, AsksAProcessorOnceInAWhileOnly) {
  ThreadsActuator actuator = Make();
  for (int i = 0; i < 5; ++i) States(actuator);
  ASSERT_TRUE(actuator.Apply(To(2)).ok());
  EXPECT_EQ(processors_[0].queries(), 1);
  processors_[0].SetPhase("job", v1::LISTENER_PHASE_DRAINING);
  clock_.Advance(kBelievedFor);
  EXPECT_EQ(States(actuator)[0], ReplicaState::kDraining);
  EXPECT_EQ(processors_[0].queries(), 2);
}

TEST_F(ThreadsActuatorTest, OneThatHangsAndOneThatIsGoneHoldNobodyUp) {
  for (int i = 0; i < 3; ++i) processors_[i].SetPhase("job", v1::LISTENER_PHASE_LISTENING);
  ThreadsActuator actuator = Make(absl::Seconds(1));
  ASSERT_EQ(actuator.Observe("work")->wanted, 3);
  processors_[0].Hang(true);
  processors_[1].Die();
  const auto outcome = actuator.Apply(To(0));
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->after, 2);
  EXPECT_THAT(outcome->detail,
              AllOf(HasSubstr("p0 at "), HasSubstr("DEADLINE_EXCEEDED"), HasSubstr("p1 at "),
                    HasSubstr("UNAVAILABLE"), Not(HasSubstr("p2 at "))));
  EXPECT_EQ(processors_[2].phase("job"), v1::LISTENER_PHASE_PAUSED);
  EXPECT_THAT(States(actuator),
              ElementsAre(ReplicaState::kStarting, ReplicaState::kStarting, ReplicaState::kParked));
  EXPECT_THAT(actuator.Observe("work")->trouble, HasSubstr("p1 at "));
  processors_[0].Hang(false);
  // The processor may or may not carry out an order that it received while it hung: the actuator
  // asks again, and repeats the order if necessary.
  clock_.Advance(kHangBelievedFor);
  actuator.Apply(To(0)).IgnoreError();
  EXPECT_EQ(processors_[0].phase("job"), v1::LISTENER_PHASE_PAUSED);
}

// Asked again with each order, it would use up the time of each.
TEST_F(ThreadsActuatorTest, OneThatHangsIsAskedOnceInAWhileOnly) {
  processors_[0].Hang(true);
  ThreadsActuator actuator = Make(absl::Seconds(1));
  EXPECT_EQ(States(actuator)[0], ReplicaState::kStarting);
  processors_[0].Hang(false);
  EXPECT_EQ(States(actuator)[0], ReplicaState::kStarting);
  EXPECT_THAT(actuator.Observe("work")->trouble, HasSubstr("p0 at "));
  clock_.Advance(kHangBelievedFor);
  EXPECT_EQ(States(actuator)[0], ReplicaState::kParked);
  EXPECT_EQ(actuator.Observe("work")->trouble, "");
}

// Told again with each order that parks it, it would stop the scaling of all others.
TEST_F(ThreadsActuatorTest, OneThatIsKnownToHangIsParkedOnceItAnswers) {
  for (int i = 0; i < 2; ++i) processors_[i].SetPhase("job", v1::LISTENER_PHASE_LISTENING);
  processors_[0].Hang(true);
  ThreadsActuator actuator = Make(absl::Seconds(1));
  EXPECT_EQ(States(actuator)[0], ReplicaState::kStarting);
  processors_[0].Hang(false);
  const auto outcome = actuator.Apply(To(0));
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->after, 1);
  EXPECT_THAT(outcome->detail, HasSubstr("p0 at "));
  EXPECT_EQ(processors_[0].phase("job"), v1::LISTENER_PHASE_LISTENING) << "it was told";
  EXPECT_EQ(processors_[1].phase("job"), v1::LISTENER_PHASE_PAUSED);
  EXPECT_TRUE(absl::IsUnavailable(actuator.Apply(To(0)).status()));
  clock_.Advance(kHangBelievedFor);
  ASSERT_TRUE(actuator.Apply(To(0)).ok());
  EXPECT_EQ(processors_[0].phase("job"), v1::LISTENER_PHASE_PAUSED);
}

TEST_F(ThreadsActuatorTest, SaysThatNobodyCouldBeTold) {
  for (int i = 0; i < 3; ++i) {
    processors_[i].SetPhase("job", v1::LISTENER_PHASE_LISTENING);
    processors_[i].Die();
  }
  ThreadsActuator actuator = Make(absl::Seconds(1));
  EXPECT_TRUE(absl::IsUnavailable(actuator.Apply(To(1)).status()));
}

TEST_F(ThreadsActuatorTest, ParksTheNewestAndLetsTheOldestGoFirst) {
  ThreadsActuator actuator = Make();
  ASSERT_TRUE(actuator.Apply(To(1)).ok());
  EXPECT_EQ(processors_[0].phase("job"), v1::LISTENER_PHASE_LISTENING);
  ASSERT_TRUE(actuator.Apply(To(3)).ok());
  ASSERT_TRUE(actuator.Apply(To(2)).ok());
  EXPECT_EQ(processors_[2].phase("job"), v1::LISTENER_PHASE_PAUSED);
}

TEST_F(ThreadsActuatorTest, KeepsNoConnectionToOneThatIsGone) {
  std::vector<LiveProcessor> live = processors_.directory()();
  ThreadsActuator actuator({{{"work", "job"}, {"all", ""}}, [&live] { return live; }}, &clock_);
  live[2].jobs = {"other"};
  ASSERT_TRUE(actuator.Observe("all").ok());
  ASSERT_TRUE(actuator.Observe("work").ok());
  EXPECT_EQ(actuator.connections(), 3u) << "each works for some target";
  live.erase(live.begin());
  ASSERT_TRUE(actuator.Observe("work").ok());
  EXPECT_EQ(actuator.connections(), 2u);
}

TEST(ProcessorDirectoryTest, TakesAProcessorFromItsHeartbeat) {
  v1::Heartbeat heartbeat;
  heartbeat.mutable_instance()->set_instance("p");
  heartbeat.mutable_instance()->set_address("host:1");
  heartbeat.mutable_instance()->mutable_started()->set_seconds(5);
  heartbeat.add_jobs()->set_job("billing");
  const LiveProcessor live = FromHeartbeat(heartbeat);
  EXPECT_EQ(live.instance, "p");
  EXPECT_EQ(live.address, "host:1");
  EXPECT_EQ(live.started, absl::FromUnixSeconds(5));
  EXPECT_THAT(live.jobs, ElementsAre("billing"));
}

TEST(ProcessorDirectoryTest, LeavesOutJobsForWhichAProcessorCannotListen) {
  v1::Heartbeat heartbeat;
  for (const char* job : {"billing", "rating", "shipping"}) heartbeat.add_jobs()->set_job(job);
  heartbeat.mutable_jobs(0)->set_trouble("its handler fails");
  heartbeat.mutable_jobs(0)->set_threads_max(4);
  heartbeat.mutable_jobs(1)->set_trouble("no program 'rate' in PATH");
  EXPECT_THAT(FromHeartbeat(heartbeat).jobs, ElementsAre("billing", "shipping"));
}

}  // namespace
}  // namespace muster::actuator::threads
