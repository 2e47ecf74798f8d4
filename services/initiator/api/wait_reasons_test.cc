// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/api/wait_reasons.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/proto_time.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::initiator::api {
namespace {

using ::testing::HasSubstr;

// A mesh of an account "acme" with the job "shop", and batch 7 of it, of which nothing is counted.
class WaitReasonsTest : public ::testing::Test {
 protected:
  WaitReasonsTest() {
    status_.batch.number = 7;
    status_.batch.job = "shop";
    status_.batch.state = ledger::BatchState::kSealed;
    status_.batch.items = 10;
    status_.batch.enqueued_items = 10;
    status_.batch.created = clock_.Now();
  }

  // A processor that has version `version` of the job's handler; empty: none.
  bus::RosterEntry& Add(const std::string& instance, const std::string& version) {
    bus::RosterEntry entry;
    v1::InstanceInfo* const info = entry.heartbeat.mutable_instance();
    info->set_instance(instance);
    if (!version.empty()) {
      v1::HandlerVersion* const handler = info->add_handlers();
      handler->set_job("shop");
      handler->set_version(version);
    }
    entry.heartbeat.add_jobs()->set_job("shop");
    processors_.push_back(entry);
    return processors_.back();
  }
  v1::ScalingTarget& AddTarget() {
    v1::ScalingTarget target;
    target.set_target("tills");
    target.add_queues("shop-in");
    targets_.push_back(target);
    return targets_.back();
  }
  // What is said once heartbeats have come again.
  std::string Why() {
    clock_.Advance(absl::Seconds(5));
    batch::BatchStatus status = status_;
    reasons_.Explain(&status);
    return std::string(status.problem.message());
  }

  base::FakeClock clock_;
  std::vector<bus::RosterEntry> processors_;
  std::vector<bus::RosterEntry> controllers_;
  std::vector<v1::ScalingTarget> targets_;
  bool has_controller_ = true;
  int asked_ = 0;
  int asked_for_held_ = 0;
  int asked_for_handler_ = 0;
  HandlerKind handler_;
  item::HeldSummary held_;
  batch::BatchStatus status_;
  WaitReasons reasons_{{[this] { return processors_; }, [this] { return has_controller_; },
                        [this] {
                          ++asked_;
                          return targets_;
                        },
                        [this](const std::string& job) {
                          ++asked_for_held_;
                          return job == "shop" ? held_ : item::HeldSummary();
                        },
                        [this](const std::string& job) {
                          ++asked_for_handler_;
                          return job == "shop" ? handler_ : HandlerKind();
                        },
                        [this] { return controllers_; }},
                       "acme",
                       &clock_};
};

TEST_F(WaitReasonsTest, SaysNothingOfABatchThatAProcessorCanWorkOn) {
  Add("p-1", "2").heartbeat.mutable_jobs(0)->set_trouble("its program is gone");
  Add("p-2", "2");
  EXPECT_EQ(Why(), "");
  EXPECT_EQ(asked_, 0) << "no agent is asked without need";
}

TEST_F(WaitReasonsTest, SaysSinceWhenNothingWasCounted) {
  EXPECT_EQ(Why(),
            "no processor has the handler of job shop: start a processor with it (nothing was "
            "counted since 2011-11-11T00:00:00Z)");
  status_.counted.last_counted = clock_.Now();
  EXPECT_THAT(Why(), HasSubstr("(nothing was counted since 2011-11-11T00:00:05Z)"));
}

TEST_F(WaitReasonsTest, SaysThatTheVersionWhichTheBatchIsBoundToIsGone) {
  status_.batch.handler_version = "1";
  Add("p-1", "2");
  Add("p-2", "3");
  EXPECT_THAT(Why(), HasSubstr("no processor has version 1 of the handler of job shop, but 2, 3: "
                               "start a processor with it"));
}

TEST_F(WaitReasonsTest, SaysWhichHandlerServerIsToBeStarted) {
  handler_ = {.is_of_job_file = true, .server = "bills:7800", .version = "2"};
  EXPECT_THAT(Why(), HasSubstr("no processor has the handler of job shop: start a processor, and a "
                               "handler server of version 2 at bills:7800, which it calls ("));
  status_.batch.handler_version = "1";
  Add("p-1", "2");
  EXPECT_THAT(Why(),
              HasSubstr("no processor has version 1 of the handler of job shop, but 2: apply "
                        "the job with version 1 again and start a handler server of that "
                        "version at bills:7800, which processors call, or cancel the batch "
                        "and submit it anew ("));
  handler_.server.clear();  // a program
  EXPECT_THAT(Why(), HasSubstr("but 2: apply the job with version 1 again, or cancel the batch and "
                               "submit it anew ("));
  status_.batch.handler_version = "2";
  EXPECT_EQ(Why(), "");
}

TEST_F(WaitReasonsTest, AsksForTheHandlerOnceInFiveSecondsForAnyNumberOfBatches) {
  EXPECT_NE(Why(), "");
  for (int i = 0; i < 3; ++i) {
    batch::BatchStatus other = status_;
    reasons_.Explain(&other);
    EXPECT_FALSE(other.problem.ok());
  }
  EXPECT_EQ(asked_for_handler_, 1);
}

TEST_F(WaitReasonsTest, SaysWhatKeepsAllProcessorsFromWorking) {
  Add("p-1", "2").heartbeat.mutable_jobs(0)->set_trouble("its workers are paused");
  Add("p-2", "").heartbeat.mutable_jobs(0)->set_trouble("no program 'rate' in PATH");
  EXPECT_THAT(Why(),
              HasSubstr("no processor can work on it: p-1 and 1 more: its workers are paused"));
}

// A record killed the program until it was given up: while the item behind it was worked through
// for 45 seconds, the batch said that no processor can work on it.
TEST_F(WaitReasonsTest, SaysOfAProcessorWhoseProgramFailsWithItemsThatItWorksOnThem) {
  Add("p-1", "2").heartbeat.mutable_jobs(0)->set_trouble("its workers are paused");
  const std::string failed = "its last items failed: the handler's program exited with status 3";
  Add("p-2", "2").heartbeat.mutable_jobs(0)->set_trouble(failed);
  EXPECT_THAT(Why(), ::testing::StartsWith("processor p-2 works on it, but " + failed + " ("));
}

TEST_F(WaitReasonsTest, SaysForWhichReleaseParkedProcessorsWait) {
  Add("p-1", "2").heartbeat.mutable_standby()->set_release("month-end");
  EXPECT_THAT(Why(), HasSubstr("p-1: is parked, `muster release month-end` lets it go"));
  *processors_[0].heartbeat.mutable_standby()->mutable_left() = base::ToProto(clock_.Now());
  EXPECT_EQ(Why(), "");
}

TEST_F(WaitReasonsTest, SaysThatTheStoreThrottlesProcessorsThatFinishNothing) {
  v1::JobLoad* const load = Add("p-1", "2").heartbeat.mutable_jobs(0);
  load->set_throttled(3);
  EXPECT_THAT(Why(), HasSubstr("p-1: is throttled by the queue's store"));
  processors_[0].heartbeat.mutable_jobs(0)->set_items_per_second(5);
  EXPECT_EQ(Why(), "");
}

TEST_F(WaitReasonsTest, SaysWhatTheScalingAgentDoesAboutIt) {
  v1::ScalingTarget& target = AddTarget();
  EXPECT_THAT(Why(), HasSubstr("job shop; scaling target tills starts none: `muster scale explain "
                               "--target tills` says why"));
  target.mutable_decision()->set_replicas(2);
  EXPECT_THAT(Why(), HasSubstr("job shop; scaling target tills starts 2 ("));
  target.set_trouble("pod a cannot start: Unschedulable");
  EXPECT_THAT(Why(), HasSubstr("tills starts 2, but pod a cannot start: Unschedulable ("));
  target.mutable_replicas()->set_ready(1);
  EXPECT_THAT(Why(), HasSubstr("no replica of scaling target tills has it"));
  target.set_queues(0, "other-in");
  EXPECT_THAT(Why(), HasSubstr(": start a processor with it"));
}

TEST_F(WaitReasonsTest, SaysThatKeysAreHeldBehindDeadLettersAndWhatToDo) {
  Add("p-1", "2");
  held_ = {1, {{"acme", "shop-in-2"}}};
  EXPECT_EQ(
      Why(),
      "1 key is held behind dead letters in acme/shop-in-2: `muster queue held QUEUE` shows "
      "them, `muster queue release --all QUEUE` lets them go on, `muster queue redrive --held "
      "QUEUE` tries the dead letters again (nothing was counted since 2011-11-11T00:00:00Z)");
  held_ = {40, {{"acme", "shop-in-0"}, {"acme", "shop-in-2"}, {"acme", "shop-in-3"}}};
  EXPECT_THAT(Why(), HasSubstr("40 keys are held behind dead letters in acme/shop-in-0 and 2 more "
                               "queues: "));
  held_ = {};
  EXPECT_EQ(Why(), "");
}

TEST_F(WaitReasonsTest, SaysThatKeysAreHeldBeforeTheTroubleThatWorkersHadWithThem) {
  Add("p-1", "2").heartbeat.mutable_jobs(0)->set_trouble("its last items failed: exit status 3");
  held_ = {1, {{"acme", "shop-in-2"}}};
  EXPECT_THAT(Why(), HasSubstr("1 key is held behind dead letters in acme/shop-in-2: "));
  EXPECT_THAT(Why(), HasSubstr("tries the dead letters again; processor p-1 works on it, but its "
                               "last items failed: exit status 3 (nothing was"));
}

TEST_F(WaitReasonsTest, SaysNothingOfHeldKeysWhileTheBatchMoves) {
  Add("p-1", "2");
  held_ = {1, {{"acme", "shop-in-2"}}};
  clock_.Advance(absl::Hours(1));
  status_.counted.last_counted = clock_.Now() + absl::Seconds(1);
  EXPECT_EQ(Why(), "");
  EXPECT_NE(Why(), "");
}

TEST_F(WaitReasonsTest, AsksForHeldKeysOnceInFiveSecondsForAnyNumberOfBatches) {
  Add("p-1", "2");
  held_ = {1, {{"acme", "shop-in-2"}}};
  EXPECT_NE(Why(), "");
  for (int i = 0; i < 3; ++i) {
    batch::BatchStatus other = status_;
    reasons_.Explain(&other);
    EXPECT_FALSE(other.problem.ok());
  }
  EXPECT_EQ(asked_for_held_, 1);
}

TEST_F(WaitReasonsTest, SaysThatNoControllerCountsTheResults) {
  Add("p-1", "2");
  has_controller_ = false;
  status_.problem = absl::UnavailableError("no controller is known here");
  EXPECT_THAT(Why(), HasSubstr("not counted, for no controller is heard: start one (nothing was"));
}

TEST_F(WaitReasonsTest, SaysWhyTheControllerDoesNotCountTheResults) {
  Add("p-1", "2");
  bus::RosterEntry& controller = controllers_.emplace_back();
  controller.heartbeat.mutable_instance()->set_instance("c-1");
  v1::JobLoad* const load = controller.heartbeat.add_jobs();
  load->set_job("shop");
  load->set_trouble("the report is locked");
  EXPECT_THAT(Why(),
              HasSubstr("controller c-1 cannot count its results: the report is locked (no"));
  load->set_job("other");
  EXPECT_EQ(Why(), "");
}

TEST_F(WaitReasonsTest, SparesOneWhoFollowsABatchWhatPassesWithinThePatience) {
  batch::BatchStatus status = status_;
  clock_.Advance(absl::Seconds(4));
  reasons_.Explain(&status, absl::Seconds(5));
  EXPECT_TRUE(status.problem.ok());
  clock_.Advance(absl::Seconds(1));
  reasons_.Explain(&status, absl::Seconds(5));
  EXPECT_FALSE(status.problem.ok());
}

TEST_F(WaitReasonsTest, LooksAtHeartbeatsOnceASecondForAnyNumberOfBatches) {
  EXPECT_NE(Why(), "");
  Add("p-1", "2");
  batch::BatchStatus status = status_;
  reasons_.Explain(&status);
  EXPECT_FALSE(status.problem.ok()) << "as before";
  EXPECT_EQ(Why(), "");
}

TEST_F(WaitReasonsTest, LeavesAloneWhatIsOverAndWhatHasAProblem) {
  status_.problem = absl::UnavailableError("the rest of its upload is missing");
  EXPECT_EQ(Why(), "the rest of its upload is missing");
  status_.problem = absl::OkStatus();
  status_.counted.items_counted = 10;
  EXPECT_EQ(Why(), "") << "it is about to be complete";
  status_.counted.items_counted = 0;
  status_.batch.state = ledger::BatchState::kCancelled;
  EXPECT_EQ(Why(), "");
}

}  // namespace
}  // namespace muster::initiator::api
