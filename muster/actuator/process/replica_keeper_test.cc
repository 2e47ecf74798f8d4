// SPDX-License-Identifier: Apache-2.0

// Agents run as separate programs, and die.

#include "muster/actuator/process/replica_keeper.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/actuator/process/limits.h"
#include "muster/actuator/process/state_folder.h"
#include "muster/os/child_process.h"
#include "muster/os/temp_dir.h"
#include "tests/fakes/actuator/process/process_fixture.h"

namespace muster::actuator::process {

namespace {

class ReplicaLogTest : public ::testing::Test {
 protected:
  std::string Kept(const std::string& name) {
    std::ifstream file(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  os::TempDir folder_;
  ReplicaLog log_{folder_ / "log"};
};

TEST_F(ReplicaLogTest, KeepsWhatComes) {
  for (const char c : std::string("t=1 msg=ready")) log_.Append({&c, 1});
  log_.Append("\nt=2 msg=more\n");
  EXPECT_EQ(Kept("log"), "t=1 msg=ready\nt=2 msg=more\n");
}

TEST_F(ReplicaLogTest, TellsTheLastLinesEvenWithoutALineFeed) {
  log_.Append("one\n\ntwo\nthree\n  \nfour");
  EXPECT_EQ(log_.LastLines(), "two | three | four");
}

TEST_F(ReplicaLogTest, KeepsTwoFilesAtMost) {
  const std::string chunk(size_t{1} << 20, 'x');
  for (size_t bytes = 0; bytes < 5 * kMaxLogBytes; bytes += chunk.size()) log_.Append(chunk);
  log_.Append("\nlast");
  EXPECT_LE(std::filesystem::file_size(folder_ / "log"), kMaxLogBytes);
  EXPECT_EQ(std::filesystem::file_size(folder_ / "log.1"), kMaxLogBytes);
  EXPECT_LE(log_.LastLines().size(), kLastLines * (kLastLineBytes + 3));
}

TEST(ReplicaLogWithoutAFileTest, HearsAllTheSame) {
  ReplicaLog log("/no/such/folder/log");
  log.Append("why it ends\n");
  EXPECT_EQ(log.LastLines(), "why it ends");
}

using os::ChildProcess;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AgentDeathTest : public ::testing::Test {
 protected:
  // Starts an agent with `replicas` ready replicas.
  void StartAgent(const std::string& unattended_limit, int replicas) {
    const Program worker = Worker();
    os::ProcessSpec program;
    program.path = MUSTER_ACTUATE;
    program.argv = {"agent", folder_.path(), MUSTER_KEEPER, "30s", unattended_limit, worker.path};
    program.argv.insert(program.argv.end(), worker.arguments.begin(), worker.arguments.end());
    auto started = ChildProcess::Start(program);
    ASSERT_TRUE(started.ok()) << started.status();
    agent_ = *std::move(started);
    const std::string order = absl::StrCat("1 ", replicas, "\n");
    ASSERT_EQ(write(agent_->input(), order.data(), order.size()),
              static_cast<ssize_t>(order.size()));
    ASSERT_TRUE(Eventually([&] {
      int ready = 0;
      for (const LivingReplica& living : folder_.TakeInventory().living) {
        ready += living.state == actuator::ReplicaState::kReady ? 1 : 0;
      }
      return ready == replicas;
    }));
  }
  std::set<std::string> Living() {
    std::set<std::string> names;
    for (const LivingReplica& living : folder_.TakeInventory().living) {
      names.insert(living.record.instance);
    }
    return names;
  }
  std::unique_ptr<ProcessActuator> Return(absl::Duration unattended_limit) {
    Options options;
    options.targets = {{"work", Worker()}};
    options.folder = folder_.path();
    options.keeper = MUSTER_KEEPER;
    options.unattended_limit = unattended_limit;
    auto opened = ProcessActuator::Open(options, base::RealClock());
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *std::move(opened);
  }

  StateFolder folder_;
  std::unique_ptr<ChildProcess> agent_;  // Kill() is SIGKILL
};

TEST_F(AgentDeathTest, ReplicasOutliveAnAgentThatIsKilledAndTheNextOneAdoptsThem) {
  StartAgent("1h", 3);
  const std::set<std::string> before = Living();
  agent_->Kill();
  EXPECT_EQ(Living(), before);
  const auto next = Return(absl::Hours(1));
  const auto state = next->Observe("work");
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->wanted, 3);
  std::set<std::string> adopted;
  for (const actuator::Replica& replica : state->replicas) {
    EXPECT_EQ(replica.state, actuator::ReplicaState::kReady);
    adopted.insert(replica.name);
  }
  EXPECT_EQ(adopted, before);
  actuator::Order none;
  none.target = "work";
  none.fencing_token = 2;
  ASSERT_TRUE(next->Apply(none).ok());
  EXPECT_TRUE(Eventually([&] { return Living().empty(); }));
}

TEST_F(AgentDeathTest, NoReplicaIsLeftWhenNoAgentComesBack) {
  StartAgent("200ms", 3);
  agent_->Kill();
  EXPECT_TRUE(Eventually([&] { return Living().empty(); }));
  for (const DepartedReplica& departed : folder_.TakeInventory().departed) {
    EXPECT_EQ(departed.departure, Departure::kUnattended);
    EXPECT_THAT(departed.end.how, HasSubstr("exited with status 0"));
  }
}

TEST_F(AgentDeathTest, WhatWentForLackOfAnAgentIsNotWantedAnyMore) {
  StartAgent("200ms", 3);
  agent_->Kill();
  ASSERT_TRUE(Eventually([&] { return Living().empty(); }));
  const auto next = Return(absl::Hours(1));
  const auto state = next->Observe("work");
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->wanted, 0);
  EXPECT_THAT(state->replicas, IsEmpty());
  EXPECT_EQ(state->trouble, "");
}

TEST_F(AgentDeathTest, OneAgentOfSeveralIsEnough) {
  const auto other = Return(absl::Hours(1));
  StartAgent("200ms", 2);
  agent_->Kill();
  // When StartAgent returns, a new keeper has looked for agents, and so have the older keepers.
  StartAgent("200ms", 3);
  EXPECT_EQ(Living().size(), 3u);
  EXPECT_EQ(other->Observe("work")->wanted, 3);
}

TEST(AgentPresenceTest, LastsAsLongAsAnyAgent) {
  const os::TempDir folder;
  const std::string path = folder / "agents";
  auto first = AnnounceAgent(path);
  auto second = AnnounceAgent(path);
  ASSERT_TRUE(first.ok() && second.ok());
  const os::FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(HasAgent(file.get()));
  first->Close();
  EXPECT_TRUE(HasAgent(file.get()));
  second->Close();
  EXPECT_FALSE(HasAgent(file.get()));
}

TEST(AgentPresenceTest, KeepsOthersOutOfAFolderForALimitedTime) {
  const os::TempDir folder;
  auto lock = LockFolder(folder / "lock", absl::ZeroDuration());
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_TRUE(absl::IsUnavailable(LockFolder(folder / "lock", absl::ZeroDuration()).status()));
  lock->Close();
  EXPECT_TRUE(LockFolder(folder / "lock", absl::ZeroDuration()).ok());
}

TEST(KeeperOrderTest, ComesBackFromItsCommandLine) {
  const KeeperOrder order{
      "/state/replicas/processor-1",   "work", "/state/agents", absl::Seconds(40), absl::Minutes(1),
      {"program", "--flag", "", "a b"}};
  const std::vector<std::string> arguments = ToArguments(order);
  EXPECT_EQ(arguments[1], "processor-1");
  const auto back = FromArguments(arguments);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(ToArguments(*back), arguments);
  EXPECT_EQ(back->unattended_limit, absl::Minutes(1));
  EXPECT_EQ(back->program, order.program);
}

TEST(KeeperOrderTest, RefusesACommandLineThatIsNone) {
  EXPECT_TRUE(absl::IsInvalidArgument(FromArguments({}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      FromArguments({"/f", "f", "work", "/agents", "30s", "60s"}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      FromArguments({"/f", "f", "work", "/agents", "soon", "60s", "program"}).status()));
}

TEST(KeeperAnswerTest, CarriesAStatus) {
  EXPECT_TRUE(ParseAnswer("started").ok());
  EXPECT_EQ(ParseAnswer("7 no program x"), absl::PermissionDeniedError("no program x"));
  for (const char* line : {"", "0 fine", "what", "-"}) {
    EXPECT_TRUE(absl::IsUnavailable(ParseAnswer(line))) << line;
  }
}

}  // namespace

}  // namespace muster::actuator::process
