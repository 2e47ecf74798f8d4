// SPDX-License-Identifier: Apache-2.0
#include "muster/bus/heartbeat_sender.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/mutex.h"
#include "muster/base/proto_time.h"
#include "muster/bus/heartbeat_bus.h"
#include "muster/bus/local/local_buses.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/bus/mesh_fixture.h"

namespace muster::bus {

namespace {

TEST(ProcessUsageTest, GrowsWithWhatTheProcessDoes) {
  const ProcessUsage before = MeasureProcess();
  EXPECT_GT(before.resident_bytes, uint64_t{1} << 20);
  volatile uint64_t work = 0;
  ProcessUsage after = before;
  while (after.cpu == before.cpu) {
    for (int i = 0; i < 100'000; ++i) work = work + 1;
    after = MeasureProcess();
  }
  EXPECT_GT(after.cpu, before.cpu);
}

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Accepts heartbeats until the test makes it fail. Thread-safe.
class TestBus final : public HeartbeatBus {
 public:
  absl::Status Publish(const v1::Heartbeat& heartbeat) override {
    base::MutexLock lock(&mu_);
    sent_.push_back(heartbeat);
    changed_.NotifyAll();
    return status_;
  }
  absl::StatusOr<std::unique_ptr<Subscription>> Subscribe(Subscriber) override {
    return absl::UnimplementedError("nobody hears");
  }

  void Answer(absl::Status status) {
    base::MutexLock lock(&mu_);
    status_ = std::move(status);
  }
  std::vector<v1::Heartbeat> Await(size_t count) {
    base::MutexLock lock(&mu_);
    while (sent_.size() < count) changed_.Wait(&mu_);
    return sent_;
  }

 private:
  base::Mutex mu_;
  base::CondVar changed_;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  std::vector<v1::Heartbeat> sent_ ABSL_GUARDED_BY(mu_);
};

class HeartbeatSenderTest : public ::testing::Test {
 protected:
  // Reports a constant use of one and a half cores.
  HeartbeatOptions Options() {
    return {.measure = [this] {
      return ProcessUsage{.cpu = 1.5 * clock_.Monotonic(), .resident_bytes = 4096};
    }};
  }
  void Start(HeartbeatSender::Complete complete = nullptr) {
    sender_.emplace(Instance(v1::ROLE_PROCESSOR, "p"), std::move(complete), &bus_, &roster_,
                    &clock_, Options());
    sender_->Start();
  }
  // Lets an interval pass once the sender sleeps.
  void Tick() {
    clock_.AwaitSleepers(1);
    clock_.Advance(kHeartbeatInterval);
  }

  base::FakeClock clock_;
  TestBus bus_;
  Roster roster_{&clock_};
  std::optional<HeartbeatSender> sender_;
};

TEST_F(HeartbeatSenderTest, SendsOneAtOnceAndThenOneEveryInterval) {
  Start();
  EXPECT_EQ(bus_.Await(1).back().sequence(), 1u);
  Tick();
  const v1::Heartbeat second = bus_.Await(2).back();
  EXPECT_EQ(second.instance().instance(), "p");
  EXPECT_EQ(second.sequence(), 2u);
  EXPECT_EQ(base::FromProto(second.sent()), clock_.Now());
  EXPECT_EQ(base::FromProto(second.window()), kHeartbeatInterval);
  EXPECT_DOUBLE_EQ(second.cpu_cores(), 1.5);
  EXPECT_EQ(second.resident_bytes(), 4096u);
  EXPECT_FALSE(second.leaving());
}

TEST_F(HeartbeatSenderTest, SaysWhatTheRoleAdds) {
  std::vector<absl::Duration> windows;
  Start([&](absl::Duration window, v1::Heartbeat* heartbeat) {
    windows.push_back(window);
    heartbeat->add_jobs()->set_job("retail");
    heartbeat->mutable_instance()->add_handlers()->set_version("1");
  });
  bus_.Await(1);
  Tick();
  bus_.Await(2);
  sender_->Leave();
  const v1::Heartbeat heartbeat = bus_.Await(3).back();
  EXPECT_EQ(heartbeat.jobs_size(), 1);
  EXPECT_EQ(heartbeat.instance().handlers_size(), 1);
  EXPECT_THAT(windows, ElementsAre(absl::ZeroDuration(), kHeartbeatInterval, absl::ZeroDuration()));
}

TEST_F(HeartbeatSenderTest, SaysAtTheEndThatTheInstanceLeaves) {
  Start();
  bus_.Await(1);
  clock_.AwaitSleepers(1);
  sender_->Leave();
  sender_->Leave();
  const std::vector<v1::Heartbeat> sent = bus_.Await(2);
  EXPECT_EQ(sent.size(), 2u);
  EXPECT_TRUE(sent.back().leaving());
  EXPECT_EQ(sent.back().sequence(), 2u);
}

TEST_F(HeartbeatSenderTest, SaysNothingWhenItNeverStarted) {
  sender_.emplace(Instance(v1::ROLE_PROCESSOR, "p"), nullptr, &bus_, &roster_, &clock_, Options());
  sender_->Leave();
  sender_.reset();
  EXPECT_TRUE(bus_.Await(0).empty());
}

TEST_F(HeartbeatSenderTest, KnowsItselfWhateverTheBusDoes) {
  bus_.Answer(absl::UnavailableError("no server"));
  Start();
  bus_.Await(1);
  EXPECT_THAT(Names(roster_.List()), ElementsAre("p"));
  sender_->Leave();
  EXPECT_THAT(Names(roster_.List()), ElementsAre("p leaving"));
}

TEST_F(HeartbeatSenderTest, LogsOnceThatItIsNotHeardAndOnceThatItIsAgain) {
  const base::LogCapture log(base::kInfo);
  bus_.Answer(absl::UnavailableError("no server"));
  Start();
  for (size_t sent = 1; sent < 3; ++sent) {
    bus_.Await(sent);
    Tick();
  }
  bus_.Await(3);
  clock_.AwaitSleepers(1);
  bus_.Answer(absl::OkStatus());
  clock_.Advance(kHeartbeatInterval);
  bus_.Await(4);
  sender_->Leave();
  EXPECT_THAT(log.lines(), ElementsAre(HasSubstr("no server"), HasSubstr("again")));
}

TEST_F(HeartbeatSenderTest, LeavesOutJobsThatNoHeartbeatHasRoomFor) {
  Start([&](absl::Duration, v1::Heartbeat* heartbeat) {
    for (int i = 0; i < 100; ++i) heartbeat->add_jobs()->set_job(std::string(1000, 'j'));
  });
  const v1::Heartbeat heartbeat = bus_.Await(1).back();
  EXPECT_LE(heartbeat.ByteSizeLong(), kMaxHeartbeatBytes);
  EXPECT_GT(heartbeat.jobs_size(), 50);
}

TEST_F(HeartbeatSenderTest, AnswersNewcomersWithOneHeartbeatSoon) {
  Start();
  bus_.Await(1);
  clock_.AwaitSleepers(1);
  const absl::Duration regular = clock_.NextDeadline();
  for (int newcomer = 0; newcomer < 3; ++newcomer) sender_->Greet();
  clock_.Advance(kGreetInterval);
  EXPECT_EQ(bus_.Await(2).size(), 2u);
  clock_.AwaitSleepers(1);
  EXPECT_EQ(clock_.NextDeadline(), regular);
}

TEST_F(HeartbeatSenderTest, DoesNotCatchUpOnHeartbeatsThatItMissed) {
  Start();
  bus_.Await(1);
  clock_.AwaitSleepers(1);
  clock_.Advance(10 * kHeartbeatInterval);
  bus_.Await(2);
  clock_.AwaitSleepers(1);
  EXPECT_EQ(clock_.NextDeadline() - clock_.Monotonic(), kHeartbeatInterval);
  sender_->Leave();
  EXPECT_EQ(bus_.Await(3).size(), 3u);
}

}  // namespace

}  // namespace muster::bus
