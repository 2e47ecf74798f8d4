// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/agent.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "muster/bus/local/local_buses.h"
#include "muster/item/queue_names.h"
#include "muster/os/temp_dir.h"
#include "services/scaling-agent/queue_watch.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/scaling-agent/agent_fixture.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::scaling_agent {
namespace {

// An agent with its threads, whose clock the test moves.
class AgentTest : public ::testing::Test {
 protected:
  AgentTest() {
    queues_.Create("in-0");
    WriteRules("p");
  }
  void WriteRules(const std::string& workload, const std::string& queue = "in",
                  const std::string& mode = "act") {
    std::ofstream(dir_ / "rules.yaml")
        << "mode: " << mode << "\ntargets: {billing: {kind: process, name: " << workload
        << ", queues: [" << queue << "]}}\n";
  }
  std::unique_ptr<Agent> MakeAgent() {
    auto rules =
        scaling::rules::RulesWatch::Open(dir_ / "rules.yaml", absl::ZeroDuration(), &clock_);
    EXPECT_TRUE(rules.ok()) << rules.status();
    AgentOptions options;
    options.election = {"a", "a:7703"};
    options.loop.account = kTestAccount;
    AgentDependencies deps;
    deps.queues = queues_.store();
    deps.sync = &sync_;
    deps.bus = &bus_;
    deps.actuator = &actuator_;
    deps.clock = &clock_;
    deps.roster = [] { return std::vector<bus::RosterEntry>(); };
    deps.jobs = [this] {
      base::MutexLock lock(&mu_);
      ++reads_of_jobs_;
      return jobs_;
    };
    deps.use_targets = [this](const scaling::rules::Rules& in_force,
                              const std::vector<std::string>& jobs) {
      was_looked_at_ = was_looked_at_ || actuator_.barrier()->IsWaitedAt();
      base::MutexLock lock(&mu_);
      workload_ = in_force.targets.front().name;
      job_ = JobOf(in_force.targets.front().queues.front(), jobs);
    };
    deps.let_go_of_unknown = [this](const HeldToken& lead) {
      base::MutexLock lock(&mu_);
      let_go_.emplace_back(lead.token, workload_);
      return absl::OkStatus();
    };
    return std::make_unique<Agent>(std::move(options), std::move(deps), *std::move(rules));
  }
  template <typename Done>
  void AdvanceUntil(Done done) {
    while (!done()) {
      clock_.Advance(absl::Milliseconds(10));
      base::LetOthersRun();
    }
  }
  // Returns the workload of the target, as the actuator knows it.
  std::string workload() {
    base::MutexLock lock(&mu_);
    return workload_;
  }

  // How often the agent let go of unknown targets, while it knew the target as this workload.
  std::ptrdiff_t TimesLetGo(const std::string& workload) {
    base::MutexLock lock(&mu_);
    return std::count(let_go_.begin(), let_go_.end(), std::pair(int64_t{1}, workload));
  }

  base::FakeClock clock_;
  const os::TempDir dir_;
  TestQueues queues_{&clock_};
  sync::testing::MemorySyncStore sync_;
  bus::local::LocalTriggerBus bus_;
  FakeActuator actuator_;
  std::atomic<bool> was_looked_at_ = false;  // a loop acted while its target changed
  base::Mutex mu_;
  std::string workload_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> jobs_ ABSL_GUARDED_BY(mu_);  // that are applied
  int reads_of_jobs_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<std::pair<int64_t, std::string>> let_go_ ABSL_GUARDED_BY(mu_);
  std::optional<std::string> job_ ABSL_GUARDED_BY(mu_);  // of the target, as the actuator knows it
};

// Otherwise the loop's next order would be for another workload.
TEST_F(AgentTest, ATargetBecomesAnotherOnlyAfterItsLoopHasEnded) {
  actuator_.barrier()->Shut();
  const std::unique_ptr<Agent> agent = MakeAgent();
  ASSERT_TRUE(agent->Start().ok());
  AdvanceUntil([&] { return actuator_.barrier()->IsWaitedAt(); });
  const int64_t revision = agent->rules().revision;
  WriteRules("q");
  AdvanceUntil([&] { return agent->rules().revision != revision; });
  // The sleepers are the threads of the election, the records and the queues; the loop makes no
  // more decisions, and waits for its actuator.
  clock_.AwaitSleepers(3);
  EXPECT_EQ(workload(), "p");
  actuator_.barrier()->Open();
  AdvanceUntil([&] { return workload() == "q"; });
  EXPECT_FALSE(was_looked_at_);
  agent->Stop();
}

// Its queue's name does not tell the job, so that replicas would work for all jobs.
TEST_F(AgentTest, ATargetLearnsOfAJobThatIsAppliedAfterTheRules) {
  WriteRules("p", item::InputQueue(kTestAccount, "my_job", 0).name);
  const std::unique_ptr<Agent> agent = MakeAgent();
  ASSERT_TRUE(agent->Start().ok());
  AdvanceUntil([&] {
    base::MutexLock lock(&mu_);
    return reads_of_jobs_ > 1;
  });
  {
    base::MutexLock lock(&mu_);
    EXPECT_EQ(job_, std::nullopt);
    jobs_ = {"my_job"};
  }
  AdvanceUntil([&] {
    base::MutexLock lock(&mu_);
    return job_ == "my_job";
  });
  agent->Stop();
}

// A target that was renamed left its replicas running for as long as an agent ran.
TEST_F(AgentTest, LetsGoOfTargetsThatAreNoneAnyMoreAgainAndAgainWhileItLeads) {
  const std::unique_ptr<Agent> agent = MakeAgent();
  ASSERT_TRUE(agent->Start().ok());
  AdvanceUntil([&] { return TimesLetGo("p") > 1; });
  WriteRules("q");
  AdvanceUntil([&] { return TimesLetGo("q") > 1; });
  agent->Stop();
  base::MutexLock lock(&mu_);
  for (const auto& [token, workload] : let_go_) EXPECT_EQ(token, 1);
}

TEST_F(AgentTest, LetsNothingGoOfUnknownTargetsWhileItOnlyObserves) {
  WriteRules("p", "in", "observe");
  const std::unique_ptr<Agent> agent = MakeAgent();
  ASSERT_TRUE(agent->Start().ok());
  AdvanceUntil([&] { return agent->leads(); });
  for (int look = 0; look < 300; ++look) {
    clock_.Advance(absl::Milliseconds(10));
    base::LetOthersRun();
  }
  EXPECT_EQ(TimesLetGo("p"), 0);
  WriteRules("q");
  AdvanceUntil([&] { return TimesLetGo("q") > 0; });
  EXPECT_EQ(TimesLetGo("p"), 0);
  agent->Stop();
}

}  // namespace
}  // namespace muster::scaling_agent
