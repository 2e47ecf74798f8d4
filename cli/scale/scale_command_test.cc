// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <thread>
#include <vector>

#include "cli/output/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/cli/scaling_command_fixture.h"

namespace muster::cli {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(ScalingCommandTest, ShowsWhereEachTargetStands) {
  const Done done = RunOnServer({"scale", "status"});
  EXPECT_EQ(done.code, kOk) << done.err;
  EXPECT_EQ(done.out,
            "TARGET   HAVE  WANT  STARTING  STANDBY  OLDEST DEADLINE  FEASIBLE               "
            "   RATE  BINDING  TROUBLE\n"
            "billing     1     3         2        4  in 4 min 30 s    no: 53 s late, needs 5"
            "  40.0/s  max      -\n");
}

TEST_F(ScalingCommandTest, ShowsWhatIsNotKnownYetAndWhatIsHeldByHand) {
  one_.Tell([&](AgentState& state) {
    v1::ScalingTarget& target = state.targets[0];
    target.clear_decision();
    target.clear_oldest_deadline();
    target.set_items_per_second(0);
    target.set_trouble("no statistics of billing-in-0");
    target.mutable_override()->set_replicas(7);
    *target.mutable_override()->mutable_until() = base::ToProto(clock_.Now() + absl::Minutes(30));
  });
  EXPECT_THAT(RunOnServer({"scale", "status", "billing"}).out,
              HasSubstr("billing     1     -         2        4  -                -         "
                        "not known  override to 7, ends in 30 min  no statistics of"));
}

TEST_F(ScalingCommandTest, ShowsTargetsForPrograms) {
  const auto json = nlohmann::json::parse(RunOnServer({"scale", "status", "-o", "json"}).out);
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json[0]["target"], "billing");
  EXPECT_EQ(json[0]["sla_seconds"], 300);
  EXPECT_EQ(json[0]["replicas"]["starting"], 2);
  EXPECT_EQ(json[0]["decision"]["needs"], 5);
  EXPECT_EQ(json[0]["decision"]["action"]["state"], "done");
  EXPECT_EQ(json[0]["oldest_deadline"], Rfc3339(clock_.Now() + absl::Seconds(270)));
  EXPECT_TRUE(json[0]["override"].is_null());
  EXPECT_TRUE(json[0]["cold_start_seconds"].is_null());
  EXPECT_THAT(RunOnServer({"scale", "status", "-o", "csv"}).out,
              HasSubstr("billing,1,3,2,4,in 4 min 30 s,\"no: 53 s late, needs 5\",40.0/s,max,-"));
}

TEST_F(ScalingCommandTest, FailsForATargetThatIsNot) {
  const Done done = RunOnServer({"scale", "status", "nobody"});
  EXPECT_EQ(done.code, kError);
  EXPECT_EQ(done.err, "muster: the rules have no target 'nobody'\n");
}

TEST_F(ScalingCommandTest, ListsDecisionsNewestFirst) {
  const Done done = RunOnServer({"scale", "decisions"});
  EXPECT_EQ(done.code, kOk) << done.err;
  EXPECT_THAT(done.out, StartsWith("DECISION   TARGET   DECIDED"));
  EXPECT_LT(done.out.find("billing-2"), done.out.find("billing-1"));
  EXPECT_THAT(done.out, HasSubstr("done    Grow from 1 to 3 replicas.\n"));
  EXPECT_THAT(RunOnServer({"scale", "decisions", "--limit", "1"}).out, Not(HasSubstr("billing-1")));
  EXPECT_EQ(RunOnServer({"scale", "decisions", "--target", "nobody"}).code, kError);
  for (const char* limit : {"0", "1001", "many"}) {
    EXPECT_EQ(RunOnServer({"scale", "decisions", "--limit", limit}).code, kUsage);
  }
  const auto json = nlohmann::json::parse(RunOnServer({"scale", "decisions", "-o", "json"}).out);
  EXPECT_EQ(json[0]["decision"], "billing-2");
  EXPECT_EQ(json[0]["late_by_seconds"], 53);
  EXPECT_EQ(json[1]["feasible"], true);
}

TEST_F(ScalingCommandTest, ExplainsTheLastDecisionOrTheOneThatIsNamed) {
  const Done done = RunOnServer({"scale", "explain"});
  EXPECT_EQ(done.code, kOk) << done.err;
  const std::string decided = Rfc3339(clock_.Now() + absl::Seconds(2));
  EXPECT_EQ(done.out,
            absl::StrCat("decision: billing-2\ntarget: billing\ndecided: ", decided,
                         "\nGrow from 1 to 3 replicas.\n\n"
                         "replicas: 1 ready, 0 starting, 0 draining, 0 standby; 0 dequeue tasks "
                         "each\nbounds: 0 to 3 (default)\n"
                         "speed: 40.0/s a replica, 0 s an item, cold start 0 s\n"
                         "load: cpu 50 %, throttled 0 %\n"
                         "queue billing-in-0: 30,000 ready, 0 in flight, the oldest 0 s old; read "
                         "now\nweighed: work 5, max 3\n"
                         "binding: max; the work alone asks for 5\n"
                         "feasible: no: 53 s late, needs 5; due ",
                         Rfc3339(clock_.Now() + absl::Minutes(5)),
                         "\naction: done, from 1 to 3: started 2 processes\n"));
  EXPECT_THAT(RunOnServer({"scale", "explain", "billing-1"}).out,
              StartsWith("decision: billing-1\n"));
  EXPECT_THAT(RunOnServer({"scale", "explain", "--target", "billing"}).out,
              StartsWith("decision: billing-2\n"));
  EXPECT_EQ(RunOnServer({"scale", "explain", "billing-9"}).code, kError);
  EXPECT_EQ(RunOnServer({"scale", "explain", "billing-1", "--target", "billing"}).code, kUsage);
  const auto json =
      nlohmann::json::parse(RunOnServer({"scale", "explain", "billing-2", "-o", "json"}).out);
  EXPECT_EQ(json["inputs"]["queues"][0]["ready"], 30'000);
  EXPECT_TRUE(json["inputs"]["budget_cap"].is_null());
  EXPECT_EQ(json["candidates"][1]["by"], "max");
  EXPECT_EQ(json["action"]["detail"], "started 2 processes");
}

TEST_F(ScalingCommandTest, ExplainsAChoiceThatNothingBoundOnce) {
  v1::GetDecisionResponse made;
  *made.mutable_decision() = Decision(3);
  for (const char* by : {"work", "nothing", "nothing"}) {
    made.add_candidates()->set_by(by);
    made.mutable_candidates()->rbegin()->set_replicas(1);
  }
  one_.Tell([&](AgentState& state) { state.decisions.push_back(made); });
  EXPECT_THAT(RunOnServer({"scale", "explain", "billing-3"}).out,
              HasSubstr("\nweighed: work 1, chosen 1\n"));
}

// The lead moves from one agent to the other during a watch.
TEST_F(ScalingCommandTest, WatchesDecisionsWhoeverLeads) {
  Done done;
  std::thread watcher([&] {
    done = RunOnServer({"scale", "decisions", "--watch", "--limit", "1"});
  });
  one_.AwaitCalls(2);  // one to watch, one to list the decisions so far
  Decide(one_, 3);
  one_.AwaitTold();
  // The other agent knows the same decisions, and one more that the watch has not shown yet.
  for (const int number : {1, 2, 3, 4}) Decide(two_, number);
  two_.Tell([](AgentState& state) { state.agent.set_leads(true); });
  one_.StepDown(two_.address());
  two_.AwaitCalls(2);
  Decide(two_, 5);
  two_.AwaitTold();
  two_.Tell([](AgentState& state) { state.trouble = absl::PermissionDeniedError("go away"); });
  watcher.join();
  EXPECT_EQ(done.code, kError);
  EXPECT_EQ(done.err, "muster: go away\n");
  std::string told;
  for (const int number : {2, 3, 4, 5}) {
    absl::StrAppend(&told, Rfc3339(clock_.Now() + absl::Seconds(number)), "  billing-", number,
                    "  1 to ", number + 1, "  done  Grow from 1 to ", number + 1, " replicas.\n");
  }
  EXPECT_EQ(done.out, told);
}

TEST_F(ScalingCommandTest, MissesNothingThatIsDecidedBeforeTheWatchBegins) {
  one_.Tell([](AgentState& state) { state.holds_watches = true; });
  Done done;
  std::thread watcher([&] { done = RunOnServer({"scale", "decisions", "--watch"}); });
  one_.AwaitCalls(1);
  // This takes long enough for a watcher to list decisions too early, before its watch begins.
  EXPECT_EQ(RunOnServer({"scale", "decisions"}).code, kOk);
  Decide(one_, 3);
  one_.Tell([](AgentState& state) { state.holds_watches = false; });
  one_.AwaitCalls(3);
  Decide(one_, 4);
  one_.AwaitTold();
  one_.Tell([](AgentState& state) { state.trouble = absl::PermissionDeniedError("go away"); });
  watcher.join();
  for (const char* decision : {"billing-1", "billing-2", "billing-3", "billing-4"}) {
    const size_t told = done.out.find(decision);
    EXPECT_NE(told, std::string::npos) << decision << " in " << done.out;
    EXPECT_EQ(done.out.find(decision, told + 1), std::string::npos) << decision << " came twice";
  }
}

TEST_F(ScalingCommandTest, LeavesAnAgentThatDoesNotBeginToTell) {
  one_.Tell([](AgentState& state) { state.holds_watches = true; });
  Done done;
  std::thread watcher([&] {
    done = RunOnServer({"scale", "decisions", "--watch", "--timeout", "1s"});
  });
  one_.AwaitCalls(1);
  two_.Tell([](AgentState& state) { state.agent.set_leads(true); });
  one_.StepDown(two_.address());
  two_.AwaitCalls(2);
  two_.Tell([](AgentState& state) { state.trouble = absl::PermissionDeniedError("go away"); });
  watcher.join();
  EXPECT_EQ(done.code, kError);
  one_.Tell([](AgentState& state) { state.holds_watches = false; });
}

TEST_F(ScalingCommandTest, WatchesForPrograms) {
  Done done;
  std::thread watcher([&] {
    done = RunOnServer({"scale", "decisions", "--watch", "--target", "billing", "-o", "json"});
  });
  one_.AwaitCalls(2);
  Decide(one_, 3);
  one_.AwaitTold();
  one_.Tell([](AgentState& state) { state.trouble = absl::PermissionDeniedError("go away"); });
  watcher.join();
  std::istringstream lines(done.out);
  std::vector<std::string> decisions;
  for (std::string line; std::getline(lines, line);) {
    decisions.push_back(nlohmann::json::parse(line)["decision"]);
  }
  EXPECT_THAT(decisions, ::testing::ElementsAre("billing-1", "billing-2", "billing-3"));
  EXPECT_EQ(RunOnServer({"scale", "decisions", "--watch", "--target", "nobody"}).code, kError);
  EXPECT_EQ(RunOnServer({"scale", "decisions", "--watch", "-o", "csv"}).code, kError);
}

TEST_F(ScalingCommandTest, HoldsATargetByHandForAWhileAndLetsItGo) {
  const Done held = RunOnServer({"scale", "override", "billing", "7", "--for", "30m"});
  EXPECT_EQ(held.code, kOk) << held.err;
  EXPECT_EQ(held.out, "billing: held at 7 replicas until 1970-01-12T14:16:40.000Z\n");
  EXPECT_EQ(one_.state().set_override.replicas(), 7);
  EXPECT_EQ(one_.state().set_override.hold().seconds(), 1800);
  EXPECT_EQ(RunOnServer({"scale", "override", "billing", "0", "--for", "1h", "-o", "json"}).out,
            "{\"target\":\"billing\",\"override\":{\"replicas\":0,\"until\":"
            "\"1970-01-12T14:46:40.000Z\",\"by\":\"\"}}\n");
  EXPECT_EQ(RunOnServer({"scale", "override", "billing", "--clear"}).out,
            "billing: the policy decides\n");
  EXPECT_EQ(one_.state().clear_override.target(), "billing");
  EXPECT_EQ(RunOnServer({"scale", "override", "nobody", "--clear"}).code, kError);
}

TEST_F(ScalingCommandTest, HoldsNothingUnlessToldForHowLong) {
  for (const std::vector<std::string>& rest :
       std::vector<std::vector<std::string>>{{},
                                             {"7"},
                                             {"--for", "30m"},
                                             {"7", "--for", "soon"},
                                             {"-1", "--for", "30m"},
                                             {"7", "--for", "30m", "--clear"},
                                             {"--clear", "--for", "30m"}}) {
    std::vector<std::string> arguments = {"scale", "override", "billing"};
    arguments.insert(arguments.end(), rest.begin(), rest.end());
    EXPECT_EQ(RunOnServer(arguments).code, kUsage) << ::testing::PrintToString(rest);
  }
  EXPECT_EQ(one_.state().calls, 0);
}

TEST_F(ScalingCommandTest, ShowsTheRulesInForce) {
  one_.Tell([](AgentState& state) {
    state.rules.set_text("mode: act\n");
    state.rules.set_revision(3);
  });
  EXPECT_EQ(RunOnServer({"scale", "rules", "show"}).out, "# revision 3\nmode: act\n");
  EXPECT_EQ(RunOnServer({"scale", "rules", "show", "-o", "json"}).out,
            "{\"revision\":3,\"text\":\"mode: act\\n\"}\n");
  EXPECT_EQ(RunOnServer({"scale", "rules", "show", "--at", "2026-11-30T08:00:00Z"}).code, kUsage);
}

TEST_F(ScalingCommandTest, SimulatesWork) {
  v1::SimulateResponse answer;
  answer.set_feasible(true);
  *answer.mutable_finish() = base::ToProto(clock_.Now() + absl::Seconds(270));
  *answer.mutable_deadline() = base::ToProto(clock_.Now() + absl::Seconds(300));
  answer.mutable_late_by();
  answer.set_replicas_now(1);
  answer.set_replicas(3);
  answer.set_needs(3);
  answer.set_max(40);
  answer.set_replica_seconds(810);
  answer.set_explanation("Done in 4 min 30 s.");
  one_.Tell([&](AgentState& state) { state.simulated = answer; });
  const Done done = RunOnServer(
      {"scale", "simulate", "billing", "--items", "30000", "--sla", "5m", "--rate", "40"});
  EXPECT_EQ(done.code, kOk) << done.err;
  EXPECT_EQ(done.out,
            absl::StrCat("target: billing\nitems: 30,000\nfeasible: yes\nfinish: ",
                         Rfc3339(clock_.Now() + absl::Seconds(270)),
                         " (in 4 min 30 s)\ndeadline: ", Rfc3339(clock_.Now() + absl::Seconds(300)),
                         " (in 5 min)\nreplicas: 1 now, 3 for this, at most 40\n"
                         "replica time: 13 min 30 s\n\nDone in 4 min 30 s.\n"));
  const v1::SimulateRequest asked = one_.state().simulate;
  EXPECT_EQ(asked.target(), "billing");
  EXPECT_EQ(asked.items(), 30'000);
  EXPECT_EQ(asked.sla().seconds(), 300);
  EXPECT_EQ(asked.items_per_second(), 40);
  EXPECT_EQ(RunOnServer({"scale", "simulate", "billing", "--items", "0"}).code, kUsage);
  EXPECT_EQ(RunOnServer({"scale", "simulate", "billing"}).code, kUsage);
}

TEST_F(ScalingCommandTest, AsksTheOneThatLeads) {
  one_.StepDown("");
  two_.Tell([&](AgentState& state) {
    state.agent.set_leads(true);
    state.targets = {Billing()};
  });
  EXPECT_THAT(RunOnServer({"scale", "status"}).out, HasSubstr("billing"));
  two_.StepDown("");
  const Done done = RunOnServer({"scale", "status"});
  EXPECT_EQ(done.code, kUnreachable);
  EXPECT_THAT(done.err, HasSubstr("no scaling agent that is known leads"));
}

TEST_F(ScalingCommandTest, NeedsAScalingAgent) {
  mesh_.others[0].set_leaving(true);
  mesh_.others[1].mutable_info()->clear_address();
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"scale", "status"},
                                             {"scale", "explain"},
                                             {"scale", "rules", "show"},
                                             {"scale", "override", "billing", "--clear"}}) {
    const Done done = RunOnServer(arguments);
    EXPECT_EQ(done.code, kUnreachable);
    EXPECT_THAT(done.err, EndsWith(": it has heard of no scaling agent; start one with "
                                   "muster-scaling-agent --rules FILE\n"));
  }
  const Done nowhere = Run({"scale", "status"});
  EXPECT_EQ(nowhere.code, kError);
  EXPECT_THAT(nowhere.err, HasSubstr("the scaling agent is found by a server: name one with"));
}

TEST_F(ScalingCommandTest, SaysThatTheOneThatLeadsDoesNotAnswer) {
  one_.Die();
  const Done done = RunOnServer({"scale", "status"});
  EXPECT_EQ(done.code, kUnreachable);
  EXPECT_THAT(done.err, StartsWith(absl::StrCat("muster: scaling agent ", one_.address(), ": ")));
}

}  // namespace
}  // namespace muster::cli
