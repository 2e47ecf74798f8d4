// SPDX-License-Identifier: Apache-2.0

// Tests with fake queue depths, fake heartbeats and a fake scaling agent.

#include "services/initiator/submit/admission.h"

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

}  // namespace

}  // namespace muster::initiator::submit
