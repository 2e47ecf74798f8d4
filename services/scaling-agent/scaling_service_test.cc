// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/scaling_service.h"

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/bus/local/local_buses.h"
#include "muster/bus/trigger_bus.h"
#include "muster/os/temp_dir.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"
#include "services/scaling-agent/limits.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/scaling-agent/agent_fixture.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::scaling_agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kRules[] =
    "targets:\n"
    "  billing: {kind: process, name: p, queues: [in], sla: {max: 60s}, min: 1, max: 10}\n"
    "  rating: {kind: process, name: r, queues: [other-0]}\n";

// An agent with its threads, served on loopback.
class ScalingServiceTest : public ::testing::Test {
 protected:
  static constexpr absl::Duration kLong = absl::Minutes(2);

  // One more agent on the same stores.
  struct Served {
    std::unique_ptr<bus::Roster> roster;
    std::unique_ptr<FakeActuator> actuator;
    std::unique_ptr<Agent> agent;
    std::unique_ptr<ScalingService> service;
    std::unique_ptr<rpc::Server> server;
    std::unique_ptr<v1::ScalingService::Stub> stub;

    ~Served() {
      if (service != nullptr) service->StopWatches();
      if (agent != nullptr) agent->Stop();
    }
  };

  ScalingServiceTest() {
    WriteRules(kRules);
    queues_.Create("in-0");
  }

  void WriteRules(const std::string& text) { std::ofstream(dir_ / "rules.yaml") << text; }

  std::unique_ptr<Served> Serve(const std::string& name) {
    auto served = std::make_unique<Served>();
    auto rules =
        scaling::rules::RulesWatch::Open(dir_ / "rules.yaml", absl::ZeroDuration(), clock_);
    EXPECT_TRUE(rules.ok()) << rules.status();
    AgentOptions options;
    options.election = {name, name + ":7703"};
    options.loop.account = kTestAccount;
    served->roster = std::make_unique<bus::Roster>(clock_);
    served->actuator = std::make_unique<FakeActuator>();
    AgentDependencies deps;
    deps.queues = queues_.store();
    deps.sync = &sync_;
    deps.bus = &bus_;
    deps.actuator = served->actuator.get();
    deps.clock = clock_;
    deps.roster = [roster = served->roster.get()] { return roster->List(v1::ROLE_PROCESSOR); };
    served->agent = std::make_unique<Agent>(std::move(options), std::move(deps), *std::move(rules));
    EXPECT_TRUE(served->agent->Start().ok());
    served->service = std::make_unique<ScalingService>(served->agent.get(), clock_);
    rpc::ServerOptions server;
    server.addresses = {"localhost:0"};
    auto started = rpc::Server::Start(
        server, {{v1::ScalingService::service_full_name(), served->service.get()}});
    EXPECT_TRUE(started.ok()) << started.status();
    served->server = *std::move(started);
    served->stub = v1::ScalingService::NewStub(
        *rpc::OpenChannel(served->server->addresses().front(), rpc::ChannelOptions()));
    return served;
  }

  template <typename Request, typename Response>
  using Method = grpc::Status (v1::ScalingService::Stub::*)(grpc::ClientContext*, const Request&,
                                                            Response*);
  template <typename Request, typename Response>
  static absl::StatusOr<Response> Call(const Served& served, Method<Request, Response> method,
                                       const Request& request) {
    rpc::CallContext context(kLong);
    Response response;
    const absl::Status called =
        rpc::FromGrpc((served.stub.get()->*method)(&context, request, &response));
    if (!called.ok()) return called;
    return response;
  }
  static v1::GetAgentResponse About(const Served& served) {
    return *Call(served, &v1::ScalingService::Stub::GetAgent, v1::GetAgentRequest());
  }
  static absl::StatusOr<v1::ListTargetsResponse> Targets(const Served& served,
                                                         const std::string& target = "") {
    v1::ListTargetsRequest request;
    request.set_target(target);
    return Call(served, &v1::ScalingService::Stub::ListTargets, request);
  }
  static absl::StatusOr<v1::ListDecisionsResponse> Decisions(const Served& served,
                                                             const std::string& target,
                                                             int page_size = 0) {
    v1::ListDecisionsRequest request;
    request.set_target(target);
    request.set_page_size(page_size);
    return Call(served, &v1::ScalingService::Stub::ListDecisions, request);
  }
  static absl::StatusOr<v1::SetOverrideResponse> SetOverride(const Served& served,
                                                             const std::string& target,
                                                             int replicas, int64_t hold_seconds) {
    v1::SetOverrideRequest request;
    request.set_target(target);
    request.set_replicas(replicas);
    request.mutable_hold()->set_seconds(hold_seconds);
    return Call(served, &v1::ScalingService::Stub::SetOverride, request);
  }

  // Decisions of one target as they come.
  class Watch {
   public:
    Watch(const Served& served, const std::string& target) : context_(kLong) {
      v1::WatchDecisionsRequest request;
      request.set_target(target);
      reader_ = served.stub->WatchDecisions(&context_, request);
      reader_->WaitForInitialMetadata();
    }
    // Returns the first decision that fits; fails the test when the stream ends.
    template <typename Fits>
    v1::ScalingDecision Await(Fits fits) {
      v1::WatchDecisionsResponse next;
      while (reader_->Read(&next)) {
        if (fits(next.decision())) return next.decision();
      }
      ADD_FAILURE() << "the stream ended: " << reader_->Finish().error_message();
      return {};
    }
    absl::Status End() {
      v1::WatchDecisionsResponse next;
      while (reader_->Read(&next)) continue;
      return rpc::FromGrpc(reader_->Finish());
    }

   private:
    rpc::CallContext context_;
    std::unique_ptr<grpc::ClientReader<v1::WatchDecisionsResponse>> reader_;
  };

  // Waits for an agent to lead, and for its first decision for billing.
  static void AwaitDecision(const Served& served) {
    while (true) {
      const auto decisions = Decisions(served, "billing");
      if (decisions.ok() && decisions->decisions_size() > 0) return;
      ASSERT_TRUE(decisions.ok() || absl::IsFailedPrecondition(decisions.status()))
          << decisions.status();
      base::LetOthersRun();
    }
  }

  base::Clock* const clock_ = base::RealClock();
  const os::TempDir dir_;
  TestQueues queues_{clock_};
  sync::testing::MemorySyncStore sync_;
  bus::local::LocalTriggerBus bus_;
};

TEST_F(ScalingServiceTest, TellsOfTheAgentItsTargetsAndItsRules) {
  const auto served = Serve("a");
  AwaitDecision(*served);
  const v1::GetAgentResponse about = About(*served);
  EXPECT_TRUE(about.leads());
  EXPECT_EQ(about.leader(), "a:7703");
  EXPECT_EQ(about.fencing_token(), 1);
  EXPECT_EQ(about.actuator(), "process");
  EXPECT_EQ(about.mode(), v1::SCALING_MODE_ACT);
  const auto targets = Targets(*served);
  ASSERT_TRUE(targets.ok()) << targets.status();
  ASSERT_EQ(targets->targets_size(), 2);
  EXPECT_EQ(targets->targets(0).target(), "billing");
  EXPECT_EQ(targets->targets(1).target(), "rating");
  EXPECT_EQ(Targets(*served, "rating")->targets_size(), 1);
  EXPECT_TRUE(absl::IsNotFound(Targets(*served, "nobody").status()));
  const auto rules = Call(*served, &v1::ScalingService::Stub::GetRules, v1::GetRulesRequest());
  EXPECT_EQ(rules->text(), kRules);
}

TEST_F(ScalingServiceTest, ATriggerIsFollowedByADecisionAndAnOrder) {
  const auto served = Serve("a");
  AwaitDecision(*served);
  Watch watch(*served, "billing");
  queues_.Put("in-0", 5);
  ASSERT_TRUE(bus_.Publish(bus::WorkDetected("initiator", kTestAccount, "in-0", 5)).ok());
  ASSERT_TRUE(SetOverride(*served, "billing", 4, 3600).ok());
  const v1::ScalingDecision done = watch.Await([](const v1::ScalingDecision& decision) {
    return decision.binding() == "override" && decision.action().has_answered();
  });
  EXPECT_EQ(done.action().state(), v1::ScalingAction::STATE_DONE);
  EXPECT_THAT(served->actuator->ordered(), Contains(4));

  v1::GetDecisionRequest request;
  request.set_decision(done.id());
  const auto whole = Call(*served, &v1::ScalingService::Stub::GetDecision, request);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->inputs().min(), 1);
  EXPECT_EQ(whole->inputs().max(), 10);
  EXPECT_EQ(whole->candidates().rbegin()->by(), "override");
  EXPECT_EQ(whole->candidates().rbegin()->replicas(), 4);
  ASSERT_EQ(whole->inputs().queues_size(), 1);
  EXPECT_EQ(whole->inputs().queues(0).queue(), "in");
  request.set_decision("billing-12345");
  EXPECT_TRUE(
      absl::IsNotFound(Call(*served, &v1::ScalingService::Stub::GetDecision, request).status()));
}

TEST_F(ScalingServiceTest, RefusesOverridesThatCannotBe) {
  const auto served = Serve("a");
  AwaitDecision(*served);
  EXPECT_TRUE(absl::IsInvalidArgument(SetOverride(*served, "billing", -1, 60).status()));
  for (const int64_t hold : {int64_t{0}, int64_t{-1}, int64_t{30 * 24 * 3600 + 1}, INT64_MAX}) {
    const absl::Status status = SetOverride(*served, "billing", 2, hold).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << hold << ": " << status;
    EXPECT_EQ(rpc::Violations(status).front().field, "hold");
  }
  EXPECT_TRUE(absl::IsNotFound(SetOverride(*served, "nobody", 2, 60).status()));
  for (const int replicas : {0, 11, INT32_MAX}) {
    const absl::Status status = SetOverride(*served, "billing", replicas, 60).status();
    EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
    EXPECT_THAT(status.ToString(), HasSubstr("1 to 10"));
  }
  EXPECT_FALSE(Targets(*served, "billing")->targets(0).has_override());
}

TEST_F(ScalingServiceTest, AnOverrideIsShownAndCleared) {
  const auto served = Serve("a");
  AwaitDecision(*served);
  Watch watch(*served, "billing");
  const auto set = SetOverride(*served, "billing", 4, 3600);
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->override().replicas(), 4);
  EXPECT_EQ(set->override().by(), "") << "a caller on loopback shows no certificate";
  EXPECT_EQ(Targets(*served, "billing")->targets(0).override().replicas(), 4);
  v1::ClearOverrideRequest clear;
  clear.set_target("billing");
  ASSERT_TRUE(Call(*served, &v1::ScalingService::Stub::ClearOverride, clear).ok());
  ASSERT_TRUE(Call(*served, &v1::ScalingService::Stub::ClearOverride, clear).ok());
  EXPECT_FALSE(Targets(*served, "billing")->targets(0).has_override());
  clear.set_target("nobody");
  EXPECT_TRUE(
      absl::IsNotFound(Call(*served, &v1::ScalingService::Stub::ClearOverride, clear).status()));
}

TEST_F(ScalingServiceTest, RefusesPagesThatCannotBe) {
  const auto served = Serve("a");
  AwaitDecision(*served);
  EXPECT_TRUE(absl::IsInvalidArgument(Decisions(*served, "", -1).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Decisions(*served, "", 1001).status()));
  EXPECT_TRUE(absl::IsNotFound(Decisions(*served, "nobody").status()));
  EXPECT_EQ(Decisions(*served, "billing", 1)->decisions_size(), 1);
}

int64_t NumberOf(absl::string_view decision) {
  int64_t number = 0;
  EXPECT_TRUE(absl::ConsumePrefix(&decision, "billing-")) << decision;
  EXPECT_TRUE(absl::SimpleAtoi(decision, &number)) << decision;
  return number;
}

TEST_F(ScalingServiceTest, WhoDoesNotLeadSaysWhoDoesAndTakesOver) {
  auto leader = Serve("a");
  AwaitDecision(*leader);
  const auto other = Serve("b");
  while (About(*other).leader().empty()) base::LetOthersRun();
  const absl::Status refused = Targets(*other).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(rpc::Reason(refused), (rpc::ErrorReason{"NOT_LEADER", {{"leader", "a:7703"}}}));
  Watch watch(*leader, "");
  const std::string last = Decisions(*leader, "billing")->decisions(0).id();
  leader->agent->Stop();
  EXPECT_TRUE(absl::IsUnavailable(watch.End()));
  EXPECT_TRUE(absl::IsFailedPrecondition(Targets(*leader).status()));
  AwaitDecision(*other);
  EXPECT_EQ(About(*other).fencing_token(), 2);
  // Of a range of its own, beyond all that the leader before it may have given.
  const int64_t first = NumberOf(Decisions(*other, "billing")->decisions().rbegin()->id());
  EXPECT_GT(first, NumberOf(last));
  EXPECT_EQ(first % kDecisionIdRange, 1);
}

TEST_F(ScalingServiceTest, TargetsComeAndGoWithTheRules) {
  const auto served = Serve("a");
  AwaitDecision(*served);
  WriteRules("targets: {billing: {kind: process, name: p, queues: [in], max: 3}}\n");
  while (Targets(*served)->targets_size() != 1) base::LetOthersRun();
  EXPECT_TRUE(absl::IsNotFound(Decisions(*served, "rating").status()));
  WriteRules("targets: {}\n");
  while (About(*served).rules_refusals() == 0) base::LetOthersRun();
  EXPECT_EQ(Targets(*served)->targets_size(), 1);
  EXPECT_THAT(About(*served).rules_refusal(), HasSubstr("rules.yaml:1:"));
  EXPECT_TRUE(absl::IsOutOfRange(SetOverride(*served, "billing", 4, 60).status()));
}

TEST_F(ScalingServiceTest, WhatIsKnownOfATargetIsFoundByItsNameOrAQueue) {
  const auto served = Serve("a");
  AwaitDecision(*served);
  EXPECT_EQ(served->agent->Known("billing", "")->options.sla, absl::Minutes(1));
  EXPECT_EQ(served->agent->Known("", "in-0")->options.sla, absl::Minutes(1));
  EXPECT_TRUE(absl::IsNotFound(served->agent->Known("", "nothing").status()));
  EXPECT_TRUE(absl::IsNotFound(served->agent->Known("nobody", "").status()));
}

TEST_F(ScalingServiceTest, SaysWhatWouldBecomeOfMoreWork) {
  const auto served = Serve("a");
  AwaitDecision(*served);
  const auto simulate = [&served](const v1::SimulateRequest& request) {
    return Call(*served, &v1::ScalingService::Stub::Simulate, request);
  };
  v1::SimulateRequest request;
  request.set_queue("in-0");
  request.set_items(60);
  EXPECT_TRUE(absl::IsUnavailable(simulate(request).status()));  // no replica has worked yet
  request.set_items_per_second(1);
  const auto answer = simulate(request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->target(), "billing");
  EXPECT_GT(answer->replicas(), 1);
  EXPECT_EQ(answer->max(), 10);
  EXPECT_TRUE(answer->feasible()) << answer->explanation();
  request.set_items(100'000);
  EXPECT_FALSE(simulate(request)->feasible());
  request.set_items(0);
  EXPECT_TRUE(absl::IsInvalidArgument(simulate(request).status()));
  request.set_queue("nobodys");
  EXPECT_TRUE(absl::IsNotFound(simulate(request).status()));
}

}  // namespace
}  // namespace muster::scaling_agent
