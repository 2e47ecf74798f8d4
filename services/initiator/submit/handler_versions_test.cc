// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/submit/handler_versions.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/bus/mesh_fixture.h"
#include "tests/fakes/job/job_text.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::initiator::submit {
namespace {

// Job "shop" was applied a minute before the initiator began, and the initiator has received all
// heartbeats.
class HandlerVersionsTest : public ::testing::Test {
 protected:
  HandlerVersionsTest() {
    Apply("shop");
    clock_.Advance(absl::Minutes(1));
    versions_ = std::make_unique<HandlerVersions>(&jobs_, &roster_, &clock_);
    AllSpeak();
  }

  void Apply(const std::string& job) {
    EXPECT_TRUE(jobs_.Apply(job::JobText(job), std::nullopt).ok());
  }

  void AllSpeak() { clock_.Advance(2 * bus::kHeartbeatInterval); }

  // A heartbeat of a processor that has `version` of the handler of `job`.
  void OnHeartbeat(const std::string& processor, const std::string& job, const std::string& version,
                   bool leaving = false) {
    v1::Heartbeat heartbeat = bus::Heartbeat(v1::ROLE_PROCESSOR, processor, ++sequence_);
    v1::HandlerVersion* const handler = heartbeat.mutable_instance()->add_handlers();
    handler->set_job(job);
    handler->set_version(version);
    heartbeat.set_leaving(leaving);
    roster_.OnHeartbeat(heartbeat);
  }

  // Returns the version, or the name of the status.
  std::string Current(const std::string& name) {
    job::JobDefinition job;
    job.name = name;
    job.handler = job::LinkedHandlerSpec{"sums"};
    const absl::StatusOr<std::string> version = versions_->Current(job);
    return version.ok() ? *version : absl::StatusCodeToString(version.status().code());
  }

  base::FakeClock clock_;
  sync::testing::MemorySyncStore store_;
  job::JobRegistry jobs_{&store_, &clock_};
  bus::Roster roster_{&clock_};
  std::unique_ptr<HandlerVersions> versions_;
  uint64_t sequence_ = 0;
};

TEST_F(HandlerVersionsTest, IsTheOneThatMostProcessorsHave) {
  OnHeartbeat("a", "shop", "1");
  EXPECT_EQ(Current("shop"), "1");
  OnHeartbeat("b", "shop", "2");
  OnHeartbeat("c", "shop", "2");
  OnHeartbeat("d", "bakery", "1");
  EXPECT_EQ(Current("shop"), "2");
}

TEST_F(HandlerVersionsTest, IsTheJobFilesWhereThatSaysIt) {
  OnHeartbeat("a", "shop", "1");
  job::CommandHandlerSpec command;
  command.version = "file";
  job::GrpcHandlerSpec grpc;
  grpc.version = "server";
  job::JobDefinition job;
  job.name = "shop";
  job.handler = command;
  EXPECT_EQ(*versions_->Current(job), "file");
  job.handler = grpc;
  EXPECT_EQ(*versions_->Current(job), "server");
}

TEST_F(HandlerVersionsTest, IsNoneWhileNoProcessorIsThere) { EXPECT_EQ(Current("shop"), ""); }

TEST_F(HandlerVersionsTest, IsNoneOfThoseThatWereThere) {
  OnHeartbeat("a", "shop", "1");
  OnHeartbeat("b", "shop", "1");
  EXPECT_EQ(Current("shop"), "1");
  OnHeartbeat("a", "shop", "1", /*leaving=*/true);
  EXPECT_EQ(Current("shop"), "1");
  clock_.Advance(4 * bus::kHeartbeatInterval);  // the other one's heartbeats have stopped
  EXPECT_EQ(Current("shop"), "");
}

TEST_F(HandlerVersionsTest, IsNoneWhereProcessorsWorkForOtherJobsOnly) {
  OnHeartbeat("a", "bakery", "1");
  EXPECT_EQ(Current("shop"), "");
}

TEST_F(HandlerVersionsTest, FitNothingOnlyWhereTheJobHasWorkersOfOtherVersions) {
  EXPECT_FALSE(versions_->NoneFits("shop", "1")) << "the items lie still in the queue";
  OnHeartbeat("a", "bakery", "2");
  EXPECT_FALSE(versions_->NoneFits("shop", "1"));
  OnHeartbeat("b", "shop", "2");
  EXPECT_TRUE(versions_->NoneFits("shop", "1"));
  OnHeartbeat("c", "shop", "1");
  EXPECT_FALSE(versions_->NoneFits("shop", "1"));
  OnHeartbeat("c", "shop", "1", /*leaving=*/true);
  EXPECT_TRUE(versions_->NoneFits("shop", "1"));
}

TEST_F(HandlerVersionsTest, AreUnknownUntilEachProcessorHadTimeToSpeak) {
  versions_ = std::make_unique<HandlerVersions>(&jobs_, &roster_, &clock_);
  EXPECT_EQ(Current("shop"), "UNAVAILABLE");
  OnHeartbeat("a", "shop", "1");
  EXPECT_EQ(Current("shop"), "1");
  OnHeartbeat("a", "shop", "1", /*leaving=*/true);
  AllSpeak();
  EXPECT_EQ(Current("shop"), "");
}

// A batch submitted right after its job was applied is bound to a version like every later batch.
TEST_F(HandlerVersionsTest, OfANewJobAreUnknownUntilThoseThatAreThereHadTimeToTakeItUp) {
  OnHeartbeat("a", "shop", "1");
  Apply("bakery");
  EXPECT_EQ(Current("bakery"), "UNAVAILABLE");
  AllSpeak();
  EXPECT_EQ(Current("bakery"), "");
}

TEST_F(HandlerVersionsTest, OfANewJobAreNoneAtOnceWhereNobodyCouldTakeItUp) {
  Apply("bakery");
  EXPECT_EQ(Current("bakery"), "");
}

// An initiator whose clock is ahead may have written that time into the job.
TEST_F(HandlerVersionsTest, WaitForNoClockThatIsAhead) {
  OnHeartbeat("a", "shop", "1");
  Apply("bakery");
  clock_.StepWallClock(-absl::Hours(1));
  EXPECT_EQ(Current("bakery"), "");
}

TEST_F(HandlerVersionsTest, PassOnThatTheJobCannotBeLookedUp) {
  OnHeartbeat("a", "bakery", "1");
  EXPECT_EQ(Current("deleted"), "NOT_FOUND");
}

}  // namespace
}  // namespace muster::initiator::submit
