// Tests with fake queue depths, fake heartbeats and a fake scaling agent.

#include "services/initiator/submit/admission.h"

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/proto_time.h"
#include "muster/queue/store_decorators.h"
#include "muster/rpc/status.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/client/fake_scaling_agent.h"
#include "tests/fakes/initiator/fake_processors.h"

namespace muster::initiator::submit {

namespace {

using client::testing::AgentState;
using client::testing::FakeAgent;
using ::testing::HasSubstr;

// Queues that have only a depth.
class FakeQueueDepths final : public queue::InterceptedStore {
 public:
  FakeQueueDepths() : InterceptedStore(nullptr) {}

  absl::StatusOr<queue::QueueStats> Stats(const queue::QueueId& queue) override {
    ++looks;
    if (!trouble.ok()) return trouble;
    const auto found = depths.find(queue.ToString());
    if (found == depths.end()) return absl::NotFoundError("no such queue");
    return found->second;
  }

  std::map<std::string, queue::QueueStats> depths;
  absl::Status trouble;
  int looks = 0;

 protected:
  absl::Status Before(queue::Verb, const queue::QueueId&) override { return absl::OkStatus(); }
  void After(queue::Verb, const queue::QueueId&, bool) override {}
};

// One processor takes ten seconds for an item of job "shop"; the limit is one minute of waiting
// work.
class AdmissionTest : public ::testing::Test {
 protected:
  AdmissionTest() {
    job_.name = "shop";
    job_.queue.partitions = 2;
    job_.queue.max_drain = absl::Minutes(1);
    processors_.Say("a", {.threads_max = 1, .service_time = absl::Seconds(10)});
  }

  void Wait(int64_t ready) { queues_.depths["acme/shop-in-0"].ready = ready; }

  // Adds an agent in mode `act` that expects to finish the waiting work after `drain`.
  void AgentSays(absl::Duration drain) {
    agent_.Tell([&](AgentState& state) {
      state.agent.set_mode(v1::SCALING_MODE_ACT);
      state.simulated = v1::SimulateResponse();
      *state.simulated->mutable_finish() = base::ToProto(clock_.Now() + drain);
    });
    agents_ = {agent_.address()};
  }

  absl::Status Admit() { return admission_.Admit(job_); }
  // Returns the estimate in seconds, or "none" when the batch is admitted.
  std::string Estimate() {
    const auto reason = rpc::Reason(Admit());
    return reason.has_value() ? reason->metadata.at("estimate_seconds") : "none";
  }

  base::FakeClock clock_;
  FakeQueueDepths queues_;
  FakeProcessors processors_{&clock_};
  std::unique_ptr<JobThroughput> throughput_ = processors_.Throughput();
  FakeAgent agent_;
  std::vector<std::string> agents_;
  client::ScalingLeaderClient leader_{[this] { return agents_; }, {}};
  std::map<std::string, int64_t> held_back_;  // by first partition
  Admission admission_{{&queues_, throughput_.get(), &leader_, &clock_, "acme",
                        [this](const queue::QueueId& id) { return held_back_[id.ToString()]; }}};
  job::JobDefinition job_;
};

TEST_F(AdmissionTest, RefusesWhileWhatWaitsTakesLongerThanItMay) {
  Wait(6);
  EXPECT_EQ(Admit(), absl::OkStatus());
  Wait(7);
  const absl::Status refused = Admit();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_EQ(refused.message(),
            "job 'shop': what waits already would take 1m10s, and its queue.max_drain is 1m: "
            "submit again in 10s");
  EXPECT_EQ(rpc::RetryAfter(refused), absl::Seconds(10));
  const rpc::ErrorReason reason{
      "DRAIN_TOO_LONG", {{"job", "shop"}, {"estimate_seconds", "70"}, {"limit_seconds", "60"}}};
  EXPECT_EQ(rpc::Reason(refused), reason);
  Wait(6);
  EXPECT_EQ(Admit(), absl::OkStatus());
}

TEST_F(AdmissionTest, CountsWhatIsInHandAndWhatIsToBeTriedAgainInAllPartitions) {
  queues_.depths["acme/shop-in-0"] = {.ready = 1, .in_flight = 2, .delayed = 3, .poison = 1000};
  queues_.depths["acme/shop-in-1"] = {.ready = 4};
  queues_.depths["acme/shop-in-2"] = {.ready = 1000};  // an earlier definition had more
  EXPECT_EQ(Estimate(), "100");
}

TEST_F(AdmissionTest, CountsWhatInitiatorsHoldBackFromAFullQueue) {
  Wait(1);
  held_back_["acme/bakery-in-0"] = 1000;
  EXPECT_EQ(Estimate(), "none");
  held_back_["acme/shop-in-0"] = 9;
  EXPECT_EQ(Estimate(), "100");
}

TEST_F(AdmissionTest, AsksNobodyForAJobWithoutALimit) {
  job_.queue.max_drain.reset();
  Wait(1'000'000);
  AgentSays(absl::Hours(1000));
  EXPECT_EQ(Admit(), absl::OkStatus());
  EXPECT_EQ(queues_.looks, 0);
  EXPECT_EQ(agent_.state().calls, 0);
}

TEST_F(AdmissionTest, AsksNoAgentWhileNothingWaits) {
  AgentSays(absl::Hours(1000));
  EXPECT_EQ(Admit(), absl::OkStatus()) << "no queue is there yet";
  Wait(0);
  EXPECT_EQ(Admit(), absl::OkStatus());
  EXPECT_EQ(agent_.state().calls, 0);
}

TEST_F(AdmissionTest, RefusesNothingWhileNobodyCanTell) {
  Wait(1'000'000);
  processors_.Say("a", {.threads_max = 1, .leaving = true});
  EXPECT_EQ(Admit(), absl::OkStatus()) << "no processor is there";
  job_.name = "bakery";
  queues_.depths["acme/bakery-in-0"].ready = 1'000'000;
  processors_.Say("b", {.job = "bakery", .threads_max = 1});
  EXPECT_EQ(Admit(), absl::OkStatus()) << "nobody has finished an item";
  processors_.Say("b", {.job = "bakery", .threads_max = 1, .service_time = absl::Seconds(1)});
  EXPECT_FALSE(Admit().ok());
  queues_.trouble = absl::UnavailableError("the store is away");
  EXPECT_EQ(Admit(), absl::OkStatus());
}

TEST_F(AdmissionTest, AsksToComeAgainNeitherAtOnceNorTooLate) {
  Wait(6);
  job_.queue.max_drain = absl::Seconds(59.9);
  EXPECT_EQ(rpc::RetryAfter(Admit()), absl::Seconds(1));
  Wait(1'000'000);
  EXPECT_EQ(rpc::RetryAfter(Admit()), absl::Minutes(5));
}

TEST_F(AdmissionTest, RefusesAQueueWithoutEnd) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  queues_.depths["acme/shop-in-0"].ready = most;
  queues_.depths["acme/shop-in-1"].ready = most;
  processors_.Say("a", {.threads_max = 1, .service_time = absl::Hours(24 * 7)});
  clock_.Advance(absl::Hours(1));
  processors_.Say("a", {.threads_max = 1, .service_time = absl::Hours(24 * 7)});
  EXPECT_EQ(Estimate(), "3153600000");
  EXPECT_EQ(rpc::RetryAfter(Admit()), absl::Minutes(5));
  queues_.depths["acme/shop-in-0"].ready = -1;
  queues_.depths["acme/shop-in-1"].ready = -1;
  EXPECT_EQ(Admit(), absl::OkStatus());
}

TEST_F(AdmissionTest, BelievesTheScalingAgentThatCountsWhatItWouldStart) {
  Wait(100);
  EXPECT_EQ(Estimate(), "1000");
  AgentSays(absl::Seconds(60));
  EXPECT_EQ(Admit(), absl::OkStatus());
  AgentSays(absl::Seconds(61));
  EXPECT_EQ(Estimate(), "61");
  const v1::SimulateRequest asked = agent_.state().simulate;
  EXPECT_EQ(asked.queue(), "shop-in-0");
  EXPECT_EQ(asked.items(), 1);
  EXPECT_FALSE(asked.has_sla()) << "it grows for what its rules promise";
}

TEST_F(AdmissionTest, BelievesTheScalingAgentAlsoWhileNoProcessorIsThere) {
  Wait(1);
  processors_.Say("a", {.threads_max = 1, .leaving = true});
  AgentSays(absl::Seconds(61));
  EXPECT_EQ(Estimate(), "61");
}

TEST_F(AdmissionTest, BelievesTheHeartbeatsWhereTheAgentDoesNotHelp) {
  Wait(100);
  AgentSays(absl::Seconds(5));
  ASSERT_EQ(Admit(), absl::OkStatus());
  agent_.Tell([](AgentState& state) { state.agent.set_mode(v1::SCALING_MODE_OBSERVE); });
  EXPECT_EQ(Estimate(), "1000") << "it starts nothing";
  AgentSays(absl::Seconds(5));
  agent_.Tell([](AgentState& state) { state.simulated->clear_finish(); });
  EXPECT_EQ(Estimate(), "1000") << "it sees no end";
  agent_.Tell([](AgentState& state) { state.simulated = absl::NotFoundError("no target"); });
  EXPECT_EQ(Estimate(), "1000");
  AgentSays(absl::Seconds(5));
  agent_.StepDown("");
  EXPECT_EQ(Estimate(), "1000") << "none leads";
  agent_.Die();
  EXPECT_EQ(Estimate(), "1000");
}

TEST_F(AdmissionTest, TakesAnEndThatHasPassedForNow) {
  Wait(100);
  AgentSays(-absl::Hours(1));  // the agent's clock is behind
  EXPECT_EQ(Admit(), absl::OkStatus());
}

class JobThroughputTest : public ::testing::Test {
 protected:
  double Speed(const std::string& job = "shop") { return throughput_->ItemsPerSecond(job); }

  base::FakeClock clock_;
  FakeProcessors processors_{&clock_};
  std::unique_ptr<JobThroughput> throughput_ = processors_.Throughput();
};

TEST_F(JobThroughputTest, AreThreadsByTheTimeThatAnItemTakes) {
  processors_.Say("a", {.threads_max = 4, .service_time = absl::Seconds(8)});
  EXPECT_DOUBLE_EQ(Speed(), 0.5);
}

TEST_F(JobThroughputTest, AreZeroWhereNobodyWorksForTheJobOrHasFinishedAnItem) {
  EXPECT_EQ(Speed(), 0);
  processors_.Say("a", {.threads_max = 4});
  EXPECT_EQ(Speed(), 0);
  processors_.Say("a", {.threads_max = 4, .service_time = absl::Seconds(1)});
  EXPECT_EQ(Speed("bakery"), 0);
}

TEST_F(JobThroughputTest, AreThoseOfAllProcessorsTogether) {
  processors_.Say("a", {.threads_max = 4, .service_time = absl::Seconds(8)});
  processors_.Say("b", {.threads_max = 12});
  EXPECT_DOUBLE_EQ(Speed(), 2) << "b takes as long for an item as a";
  processors_.Say("bakery",
                  {.job = "bakery", .threads_max = 100, .service_time = absl::Seconds(1)});
  EXPECT_DOUBLE_EQ(Speed(), 2);
}

// One thread finishes 20 items in 2 s, another 200 in 2 s: 55 a second for each thread.
TEST_F(JobThroughputTest, WeighFastAndSlowProcessorsByTheItemsTheyFinish) {
  processors_.Say(
      "slow", {.threads_max = 1, .items_per_second = 10, .service_time = absl::Milliseconds(100)});
  processors_.Say(
      "fast", {.threads_max = 1, .items_per_second = 100, .service_time = absl::Milliseconds(10)});
  EXPECT_DOUBLE_EQ(Speed(), 110);
}

TEST_F(JobThroughputTest, AreRememberedWhileNothingIsFinished) {
  processors_.Say("a", {.threads_max = 1, .service_time = absl::Minutes(10)});
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(bus::kHeartbeatInterval);
    processors_.Say("a", {.threads_max = 1, .threads = 1, .busy_share = 1});
  }
  EXPECT_DOUBLE_EQ(Speed(), 1 / 600.0);
}

TEST_F(JobThroughputTest, AreRememberedAcrossDaysAndForgottenWithTheNextItem) {
  processors_.Say("a", {.threads_max = 1, .service_time = absl::Minutes(10)});
  clock_.Advance(absl::Hours(24 * 365));
  processors_.Say("a", {.threads_max = 1});
  EXPECT_DOUBLE_EQ(Speed(), 1 / 600.0);
  processors_.Say("a", {.threads_max = 1, .service_time = absl::Seconds(1)});
  EXPECT_DOUBLE_EQ(Speed(), 1);
}

// A minute later the item of 4 s counts as half of one: 1.5 items in 2 s + 1 s.
TEST_F(JobThroughputTest, FollowItemsThatBecomeQuicker) {
  processors_.Say("a", {.threads_max = 1, .service_time = absl::Seconds(4)});
  clock_.Advance(absl::Minutes(1));
  processors_.Say("a", {.threads_max = 1, .service_time = absl::Seconds(1)});
  EXPECT_DOUBLE_EQ(Speed(), 0.5);
}

// Two threads that are always busy finish 1,000 items a second; their handlers take 20 % of the
// time.
TEST_F(JobThroughputTest, CountWhatAnItemCostsBesideItsHandler) {
  processors_.Say("a", {.threads_max = 4,
                        .threads = 2,
                        .busy_share = 1,
                        .items_per_second = 1000,
                        .service_time = absl::Microseconds(400)});
  EXPECT_DOUBLE_EQ(Speed(), 2000);
}

// Three of four threads are still busy with an item: one finished item says nothing about them.
TEST_F(JobThroughputTest, AreByTheHandlersTimeWhileFewItemsAreFinished) {
  processors_.Say("a", {.threads_max = 4,
                        .threads = 4,
                        .busy_share = 1,
                        .items_per_second = 0.5,
                        .service_time = absl::Seconds(2)});
  EXPECT_DOUBLE_EQ(Speed(), 2);
}

TEST_F(JobThroughputTest, DoNotTakeARateForTheirs) {
  processors_.Say("a", {.threads_max = 4,
                        .threads = 4,
                        .busy_share = 0.01,
                        .items_per_second = 20,
                        .service_time = absl::Milliseconds(100)});
  EXPECT_DOUBLE_EQ(Speed(), 40) << "of idle threads it tells what came in";
}

TEST_F(JobThroughputTest, AreNotThoseOfProcessorsThatLeaveOrHaveGone) {
  processors_.Say("a", {.threads_max = 1, .service_time = absl::Seconds(1)});
  processors_.Say("b", {.threads_max = 2, .service_time = absl::Seconds(1)});
  EXPECT_DOUBLE_EQ(Speed(), 3);
  processors_.Say("b", {.threads_max = 2, .leaving = true});
  EXPECT_DOUBLE_EQ(Speed(), 1);
  clock_.Advance(4 * bus::kHeartbeatInterval);
  EXPECT_EQ(Speed(), 0);
}

TEST_F(JobThroughputTest, AreNotThoseOfAnotherAccount) {
  processors_.Say("a", {.account = "acme2", .threads_max = 1, .service_time = absl::Seconds(1)});
  EXPECT_EQ(Speed(), 0);
  processors_.Say("b", {.threads_max = 1, .service_time = absl::Seconds(4)});
  EXPECT_DOUBLE_EQ(Speed(), 0.25);
}

TEST_F(JobThroughputTest, SurviveFiguresThatNobodyCouldMean) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double figure : {nan, infinity, -infinity, -1.0, 1e308}) {
    for (const absl::Duration service :
         {absl::InfiniteDuration(), -absl::Seconds(1), absl::Nanoseconds(1)}) {
      for (const int threads :
           {std::numeric_limits<int>::min(), 0, std::numeric_limits<int>::max()}) {
        processors_.Say("a", {.threads_max = threads,
                              .threads = threads,
                              .busy_share = figure,
                              .items_per_second = figure,
                              .service_time = service});
        EXPECT_TRUE(std::isfinite(Speed())) << figure << " " << service << " " << threads;
        EXPECT_GE(Speed(), 0);
      }
    }
  }
}

TEST_F(JobThroughputTest, KeepThoseOfTheJobsThatWereHeardOfLast) {
  processors_.Say("a", {.job = "first", .threads_max = 1, .service_time = absl::Seconds(1)});
  for (int i = 0; i < 1000; ++i) {
    clock_.Advance(absl::Milliseconds(1));
    processors_.Say(
        "b", {.job = absl::StrCat("job", i), .threads_max = 1, .service_time = absl::Seconds(1)});
  }
  processors_.Say("a", {.job = "first", .threads_max = 1});
  EXPECT_EQ(Speed("first"), 0);
  EXPECT_DOUBLE_EQ(Speed("job999"), 1);
}

}  // namespace

}  // namespace muster::initiator::submit
