// SPDX-License-Identifier: Apache-2.0
#include "muster/actuator/process/process_actuator.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/actuator/process/limits.h"
#include "tests/fakes/actuator/process/process_fixture.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::actuator::process {

namespace {

using actuator::Replica;
using actuator::ReplicaState;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

namespace fs = std::filesystem;

// Each reading of this clock takes ten seconds.
class SlowClock final : public base::Clock {
 public:
  absl::Time Now() const override { return absl::UnixEpoch() + now_; }
  absl::Duration Monotonic() const override { return now_ += absl::Seconds(10); }
  bool WaitUntil(base::CondVar*, base::Mutex*, absl::Duration) override { return true; }

 private:
  mutable absl::Duration now_;
};

class ProcessActuatorTest : public ::testing::Test {
 protected:
  void Open(Program program) {
    options_.targets = {{"work", std::move(program)}};
    options_.folder = folder_.path();
    options_.keeper = MUSTER_KEEPER;
    actuator_ = OpenAnother();
  }
  std::unique_ptr<ProcessActuator> OpenAnother() {
    auto opened = ProcessActuator::Open(options_, &clock_);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *std::move(opened);
  }
  static actuator::Order To(int replicas, int64_t token = 1) {
    actuator::Order order;
    order.target = "work";
    order.replicas = replicas;
    order.fencing_token = token;
    return order;
  }
  absl::StatusOr<actuator::Outcome> Apply(int replicas) { return actuator_->Apply(To(replicas)); }
  absl::Status LetGoOfUnknown() { return actuator_->LetGoOfUnknown(1, absl::InfiniteDuration()); }
  actuator::TargetState Look() {
    auto state = actuator_->Observe("work");
    EXPECT_TRUE(state.ok()) << state.status();
    return state.value_or(actuator::TargetState());
  }
  std::vector<Replica> Replicas() { return Look().replicas; }
  bool AwaitReady(size_t count) {
    return Eventually([&] {
      const std::vector<Replica> replicas = Replicas();
      return replicas.size() == count &&
             std::all_of(replicas.begin(), replicas.end(), [](const Replica& replica) {
               return replica.state == ReplicaState::kReady;
             });
    });
  }
  std::string PathOf(const std::string& name) { return files_ / name; }
  bool Exists(const std::string& name) { return fs::exists(PathOf(name)); }
  // Returns shell text that waits for the file, or for the end of the test.
  std::string WaitFor(const std::string& name) {
    return absl::StrCat("while [ -d ", files_.path(), " ] && [ ! -e ", PathOf(name),
                        " ]; do sleep 0.01; done; ");
  }
  void Make(const std::string& name) { std::ofstream(PathOf(name)) << "x"; }
  std::ptrdiff_t FoldersIn(const std::string& part) {
    return std::distance(fs::directory_iterator(folder_.path() + "/" + part), {});
  }
  // Waits for the ends of `count` keepers, without asking the actuator.
  bool AwaitEnds(size_t count) {
    return Eventually([&] { return folder_.TakeInventory().departed.size() == count; });
  }

  base::FakeClock clock_;
  os::TempDir files_;
  StateFolder folder_;
  Options options_;
  std::unique_ptr<ProcessActuator> actuator_;
};

TEST_F(ProcessActuatorTest, TellsPrometheusWhereEachReplicaServesItsMetrics) {
  options_.metrics_targets = PathOf("prometheus.json");
  const auto told = [this] { return Content(options_.metrics_targets); };
  Open(Script(absl::StrCat("trap 'exit 0' TERM; ", kSaysReady,
                           " 127.0.0.1:4711; while :; do sleep 0.05; done")));
  ASSERT_TRUE(Apply(1).ok());
  ASSERT_TRUE(AwaitReady(1));
  const std::string name = Replicas().front().instance;
  EXPECT_EQ(told(), absl::StrCat("[\n {\n  \"targets\": [\n   \"127.0.0.1:4711\"\n  ],\n",
                                 "  \"labels\": {\n   \"target\": \"work\",\n   \"replica\": \"",
                                 name, "\"\n  }\n }\n]\n"));
  ASSERT_TRUE(Apply(0).ok());
  EXPECT_TRUE(Eventually([&] { return Replicas().empty(); }));
  EXPECT_EQ(told(), "[]\n");
}

TEST_F(ProcessActuatorTest, NamesNoReplicaThatServesNoMetrics) {
  options_.metrics_targets = PathOf("prometheus.json");
  Open(Worker());
  ASSERT_TRUE(Apply(1).ok());
  ASSERT_TRUE(AwaitReady(1));
  EXPECT_EQ(Content(options_.metrics_targets), "[]\n");
}

TEST_F(ProcessActuatorTest, StartsNothingWhenTheLeadRanOutWhileItWaitedForTheFolder) {
  Open(Worker());
  SlowClock clock;
  const auto slow = ProcessActuator::Open(options_, &clock);
  ASSERT_TRUE(slow.ok()) << slow.status();
  actuator::Order order = To(2);
  order.not_after = clock.Monotonic() + absl::Seconds(15);
  EXPECT_EQ((*slow)->Apply(order).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(folder_.Serving("work"), 0);
  EXPECT_EQ(Look().wanted, 0);
}

TEST_F(ProcessActuatorTest, IsReadyOnlyWhileItsProgramSaysSo) {
  Open(Script(absl::StrCat(WaitFor("open"), kSaysReady, "; ", WaitFor("lost"), kSaysNotReady, "; ",
                           WaitFor("end"))));
  ASSERT_TRUE(Apply(1).ok());
  EXPECT_THAT(Replicas(), Each(Field(&Replica::state, ReplicaState::kStarting)));
  Make("open");
  EXPECT_TRUE(AwaitReady(1));
  Make("lost");
  EXPECT_TRUE(Eventually([&] { return Replicas().at(0).state == ReplicaState::kStarting; }));
}

// An agent hands its own --log-level and --log-format on.
TEST_F(ProcessActuatorTest, IsReadyWhateverItsProgramLogs) {
  const std::string ends = absl::StrCat("; ", WaitFor("end"));
  options_.targets = {
      {"json", Script(absl::StrCat("echo '{\"level\":\"info\",\"msg\":\"ready\"}' >&2; ",
                                   kSaysReady, ends))},
      {"silent", Script(absl::StrCat(kSaysReady, ends))},
      {"boaster", Script(absl::StrCat("echo \"msg=ready instance=$MUSTER_INSTANCE\" >&2; ",
                                      kSaysNotReady, "; echo > ", PathOf("said"), ends))}};
  options_.folder = folder_.path();
  options_.keeper = MUSTER_KEEPER;
  actuator_ = OpenAnother();
  actuator::Order order = To(1);
  for (const char* target : {"json", "silent", "boaster"}) {
    order.target = target;
    ASSERT_TRUE(actuator_->Apply(order).ok()) << target;
  }
  const auto state = [&](const char* target) {
    return actuator_->Observe(target)->replicas.at(0).state;
  };
  for (const char* target : {"json", "silent"}) {
    EXPECT_TRUE(Eventually([&] { return state(target) == ReplicaState::kReady; })) << target;
  }
  ASSERT_TRUE(Eventually([&] { return Exists("said"); }));
  EXPECT_EQ(state("boaster"), ReplicaState::kStarting);
}

TEST_F(ProcessActuatorTest, GivesEachReplicaAFolderAnAddressAndANameOfItsOwn) {
  Open(Script(absl::StrCat("env | grep ^MUSTER_ > ", PathOf("$MUSTER_INSTANCE"), "; ", kSaysReady,
                           "; exec sleep 1000")));
  ASSERT_TRUE(Apply(2).ok());
  ASSERT_TRUE(AwaitReady(2));
  std::set<std::string> folders;
  for (const Replica& replica : Replicas()) {
    EXPECT_EQ(replica.name, replica.instance);
    std::ifstream file(PathOf(replica.instance));
    const std::string text(std::istreambuf_iterator<char>(file), {});
    EXPECT_THAT(
        text, AllOf(HasSubstr(absl::StrCat("MUSTER_INSTANCE=", replica.instance, "\n")),
                    HasSubstr("MUSTER_LISTEN=127.0.0.1:0\n"), HasSubstr("MUSTER_DRAIN_GRACE=30s\n"),
                    HasSubstr(absl::StrCat(replica.instance, "/data\n"))));
  }
}

TEST_F(ProcessActuatorTest, TellsWhatDrainsAndStartsOthersMeanwhile) {
  Open(Script(absl::StrCat("trap '", WaitFor("drained"), "exit 0' TERM; ", kSaysReady,
                           "; while :; do sleep 0.01; done")));
  ASSERT_TRUE(Apply(2).ok());
  ASSERT_TRUE(AwaitReady(2));
  const std::vector<Replica> before = Replicas();
  ASSERT_TRUE(Apply(0).ok());
  EXPECT_THAT(Replicas(), AllOf(SizeIs(2), Each(Field(&Replica::state, ReplicaState::kDraining))));
  ASSERT_TRUE(Apply(1).ok());
  ASSERT_THAT(Replicas(), SizeIs(3));
  Make("drained");
  EXPECT_TRUE(AwaitReady(1));
  for (const Replica& replica : before) EXPECT_NE(replica.name, Replicas().at(0).name);
  EXPECT_EQ(Look().trouble, "");
  EXPECT_EQ(FoldersIn("failed"), 0);
}

TEST_F(ProcessActuatorTest, KillsWhoDoesNotEndWithinItsGrace) {
  options_.drain_grace = absl::Milliseconds(100);
  options_.kill_slack = absl::ZeroDuration();
  Open(Script(absl::StrCat("trap '' TERM; ", kSaysReady, "; ", WaitFor("never"))));
  ASSERT_TRUE(Apply(1).ok());
  ASSERT_TRUE(AwaitReady(1));
  ASSERT_TRUE(Apply(0).ok());
  ASSERT_TRUE(AwaitEnds(1));
  EXPECT_THAT(folder_.TakeInventory().departed.at(0).end.how,
              AllOf(HasSubstr("was killed by signal 9"), HasSubstr("within its grace")));
  EXPECT_THAT(Replicas(), IsEmpty());
}

TEST_F(ProcessActuatorTest, ReplacesWhatFailsLessAndLessOften) {
  Open(Script(absl::StrCat(WaitFor("fail"), "echo something is wrong >&2; exit 3")));
  ASSERT_TRUE(Apply(2).ok());
  absl::Duration waited;
  for (int failures = 1; failures <= 12; ++failures) {
    Make("fail");
    ASSERT_TRUE(AwaitEnds(2));
    ASSERT_TRUE(fs::remove(PathOf("fail")));  // the next ones are there until they are told to
    const std::string trouble = Look().trouble;
    EXPECT_THAT(trouble, AllOf(HasSubstr(absl::StrCat("failure of ", failures, " in a row")),
                               HasSubstr("exited with status 3"), HasSubstr("something is wrong"),
                               HasSubstr("the next start is in")));
    EXPECT_THAT(Apply(2)->detail, HasSubstr("something is wrong"));
    EXPECT_THAT(Replicas(), IsEmpty());
    absl::Duration wait;
    do {
      clock_.Advance(absl::Milliseconds(50));
      wait += absl::Milliseconds(50);
    } while (Replicas().empty());
    if (failures <= 9) {
      EXPECT_GT(wait, waited) << failures;
    }
    EXPECT_LE(wait, kMaxRestartWait + absl::Milliseconds(50));
    waited = wait;
  }
}

TEST_F(ProcessActuatorTest, KeepsTheFoldersOfTheLastFailuresOnly) {
  Open(Script("exit 1"));
  ASSERT_TRUE(Apply(15).ok());
  ASSERT_TRUE(AwaitEnds(15));
  Look();
  clock_.Advance(kMaxRestartWait);
  Look();
  ASSERT_TRUE(AwaitEnds(15));
  Look();
  EXPECT_EQ(FoldersIn("failed"), static_cast<std::ptrdiff_t>(kKeptFailures));
}

TEST_F(ProcessActuatorTest, SaysWhyAProgramCannotBeExecuted) {
  Open({PathOf("nothing"), {}, {}});
  absl::Status status = Apply(2).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr(PathOf("nothing")));
  EXPECT_THAT(Look().trouble, HasSubstr(PathOf("nothing")));
  EXPECT_EQ(Look().wanted, 2);
  EXPECT_EQ(Apply(2).status(), status);
  Make("nothing");  // the program is not executable
  clock_.Advance(kMaxRestartWait);
  EXPECT_EQ(Apply(2).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(FoldersIn("replicas"), 0);
}

TEST_F(ProcessActuatorTest, SaysThatThereIsNoKeeper) {
  Open(Worker());
  options_.keeper = PathOf("no-keeper");
  actuator_ = OpenAnother();
  EXPECT_THAT(std::string(Apply(1).status().message()), HasSubstr("no-keeper"));
  EXPECT_EQ(FoldersIn("replicas"), 0);
}

TEST_F(ProcessActuatorTest, RefusesMoreThanAHostCanHave) {
  Open(Worker());
  EXPECT_EQ(Apply(kMaxReplicas + 1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Look().wanted, 0);
}

TEST_F(ProcessActuatorTest, FindsTheReplicasOfTheOneBefore) {
  Open(Worker());
  ASSERT_TRUE(Apply(3).ok());
  ASSERT_TRUE(AwaitReady(3));
  std::set<std::string> names;
  for (const Replica& replica : Replicas()) names.insert(replica.name);
  actuator_ = nullptr;
  actuator_ = OpenAnother();
  EXPECT_EQ(Look().wanted, 3);
  for (const Replica& replica : Replicas()) EXPECT_EQ(names.count(replica.name), 1u);
  EXPECT_EQ(Apply(3)->before, 3);
  EXPECT_TRUE(AwaitReady(3));
  ASSERT_TRUE(Apply(1).ok());
  EXPECT_TRUE(AwaitReady(1));
}

TEST_F(ProcessActuatorTest, RefusesAnOrderThatAnotherAgentOfTheHostHasOutdone) {
  Open(Worker());
  const auto other = OpenAnother();
  ASSERT_TRUE(other->Apply(To(1, 9)).ok());
  EXPECT_EQ(actuator_->Apply(To(3, 8)).status().code(), absl::StatusCode::kFailedPrecondition);
  actuator_ = OpenAnother();
  const absl::Status refused = actuator_->Apply(To(3, 8)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("if the mesh's records began anew, make it 0 in "));
  EXPECT_EQ(folder_.Serving("work"), 1);
}

TEST_F(ProcessActuatorTest, AgentsThatShareAFolderCountEachReplicaOnce) {
  Open(Worker());
  std::vector<std::thread> agents;
  for (int i = 0; i < 4; ++i) {
    agents.emplace_back([this] {
      const auto agent = OpenAnother();
      for (const int replicas : {3, 5, 5}) EXPECT_TRUE(agent->Apply(To(replicas)).ok());
    });
  }
  for (std::thread& agent : agents) agent.join();
  ASSERT_TRUE(Apply(5).ok());
  EXPECT_EQ(folder_.Serving("work"), 5);
}

// A replica that ends between two looks at the folder is not counted, not started twice, and not
// left behind.
TEST_F(ProcessActuatorTest, CountsThoseThatEndAtOnceWhileOthersScale) {
  Open(Script(absl::StrCat("echo x > ", PathOf("$MUSTER_INSTANCE"))));
  std::thread looks([&] {
    for (int look = 0; look < 30; ++look) {
      const auto state = actuator_->Observe("work");
      EXPECT_TRUE(state.ok()) << state.status();
      const auto serving = std::count_if(
          state->replicas.begin(), state->replicas.end(),
          [](const Replica& replica) { return replica.state != ReplicaState::kDraining; });
      EXPECT_LE(serving, 3);
      clock_.Advance(kMaxRestartWait);
    }
  });
  for (int round = 0; round < 10; ++round) {
    for (const int replicas : {3, 1, 0}) {
      const auto outcome = Apply(replicas);
      EXPECT_TRUE(outcome.ok()) << outcome.status();
      EXPECT_LE(folder_.Serving("work"), replicas);
      clock_.Advance(kMaxRestartWait);
    }
  }
  looks.join();
  EXPECT_TRUE(Eventually([&] { return Replicas().empty() && FoldersIn("replicas") == 0; }));
  EXPECT_LE(FoldersIn("failed"), static_cast<std::ptrdiff_t>(kKeptFailures));
}

// The kernel sends SIGTERM to the program.
TEST_F(ProcessActuatorTest, ReplacesAReplicaWhoseKeeperWasKilledAndTheProgramDrains) {
  Open(Script(absl::StrCat("trap 'echo > ", PathOf("drained"), "; exit 0' TERM; ", kSaysReady,
                           "; while :; do sleep 0.01; done")));
  ASSERT_TRUE(Apply(1).ok());
  ASSERT_TRUE(AwaitReady(1));
  const std::string before = Replicas().at(0).name;
  os::SendSignal(folder_.TakeInventory().living.at(0).record.keeper, SIGKILL);
  ASSERT_TRUE(AwaitEnds(1));
  EXPECT_THAT(Look().trouble, HasSubstr("its keeper was killed"));
  EXPECT_TRUE(Eventually([&] { return Exists("drained"); }));
  clock_.Advance(kMaxRestartWait);
  EXPECT_TRUE(AwaitReady(1));
  EXPECT_NE(Replicas().at(0).name, before);
}

TEST_F(ProcessActuatorTest, DoesNothingWhileItCannotReadItsOrders) {
  Open(Worker());
  ASSERT_TRUE(Apply(1).ok());
  for (const char* text : {"", "{", "{\"muster_orders\": 2}", "[]",
                           "{\"muster_orders\": 1, \"highest_token\": \"x\", \"wanted\": {}}"}) {
    std::ofstream(folder_.path() + "/orders") << text;
    EXPECT_EQ(Apply(0).status().code(), absl::StatusCode::kDataLoss) << text;
    EXPECT_EQ(actuator_->Observe("work").status().code(), absl::StatusCode::kDataLoss) << text;
  }
  EXPECT_EQ(folder_.Serving("work"), 1);
}

TEST_F(ProcessActuatorTest, PassesOverAFolderThatItCannotRead) {
  Open(Worker());
  fs::create_directories(folder_.path() + "/replicas/odd");
  std::ofstream(folder_.path() + "/replicas/odd/record") << "\xff\xfe";
  ASSERT_TRUE(Apply(1).ok());
  EXPECT_TRUE(AwaitReady(1));
}

// The agent that leads may have other rules.
TEST_F(ProcessActuatorTest, LeavesTheReplicasOfATargetThatIsNoneAnyMoreUntilTheLeaderSaysSo) {
  Open(Worker());
  ASSERT_TRUE(Apply(1).ok());
  actuator_->SetTargets({});
  EXPECT_EQ(Apply(0).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(folder_.Serving("work"), 1);
  actuator_->SetTargets(options_.targets);
  EXPECT_EQ(Look().wanted, 1);
}

// Three replicas of "work" went on beside those of "work2", for as long as an agent ran.
TEST_F(ProcessActuatorTest, LetsTheReplicasGoWhoseTargetHasAnotherName) {
  options_.metrics_targets = PathOf("prometheus.json");
  Open(Script(absl::StrCat("trap '", WaitFor("drained"), "exit 0' TERM; ", kSaysReady,
                           " 127.0.0.1:4711; while :; do sleep 0.01; done")));
  ASSERT_TRUE(Apply(3).ok());
  ASSERT_TRUE(AwaitReady(3));
  actuator_->SetTargets({{"work2", Worker()}});
  actuator::Order order = To(1);
  order.target = "work2";
  ASSERT_TRUE(actuator_->Apply(order).ok());
  ASSERT_TRUE(LetGoOfUnknown().ok());
  EXPECT_EQ(folder_.Serving("work"), 0);
  EXPECT_EQ(folder_.Serving("work2"), 1);
  EXPECT_THAT(folder_.TakeInventory().living, SizeIs(4)) << "they finish what they have begun";
  Make("drained");
  EXPECT_TRUE(Eventually([&] {
    return LetGoOfUnknown().ok() && FoldersIn("replicas") == 1 &&
           Content(options_.metrics_targets) == "[]\n";
  }));
  EXPECT_EQ(FoldersIn("failed"), 0);
}

TEST_F(ProcessActuatorTest, ATargetThatReturnsBeginsWithoutReplicas) {
  Open(Worker());
  ASSERT_TRUE(Apply(2).ok());
  actuator_->SetTargets({});
  ASSERT_TRUE(LetGoOfUnknown().ok());
  actuator_->SetTargets(options_.targets);
  EXPECT_EQ(Look().wanted, 0);
  ASSERT_TRUE(Apply(1).ok());
  ASSERT_TRUE(LetGoOfUnknown().ok());
  EXPECT_TRUE(AwaitReady(1));
}

TEST_F(ProcessActuatorTest, LetsTheReplicasGoThatAnAgentBeforeHasLeftOfATargetThatIsNone) {
  Open(Worker());
  ASSERT_TRUE(Apply(2).ok());
  options_.targets = {{"work2", Worker()}};
  actuator_ = nullptr;
  actuator_ = OpenAnother();
  ASSERT_TRUE(LetGoOfUnknown().ok());
  EXPECT_EQ(folder_.Serving("work"), 0);
}

// It may not have the rules yet by which the leader keeps them, or no lead any more.
TEST_F(ProcessActuatorTest, OnlyTheLeaderLetsTheReplicasGoOfTargetsThatItDoesNotKnow) {
  Open(Worker());
  const auto follower = OpenAnother();
  follower->SetTargets({{"work2", Worker()}});
  ASSERT_TRUE(actuator_->Apply(To(2, 9)).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(follower->LetGoOfUnknown(8, absl::InfiniteDuration())));
  EXPECT_TRUE(absl::IsAborted(follower->LetGoOfUnknown(9, clock_.Monotonic())));
  EXPECT_EQ(folder_.Serving("work"), 2);
  // What the former leader still knows of the target starts nothing, and lets nothing go.
  ASSERT_TRUE(follower->LetGoOfUnknown(10, absl::InfiniteDuration()).ok());
  EXPECT_EQ(folder_.Serving("work"), 0);
  EXPECT_EQ(Look().wanted, 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(actuator_->Apply(To(2, 9)).status()));
  EXPECT_EQ(folder_.Serving("work"), 0);
}

}  // namespace

}  // namespace muster::actuator::process
