// SPDX-License-Identifier: Apache-2.0
#include "services/processor/standby.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/proto_time.h"
#include "muster/bus/local/local_buses.h"
#include "muster/release/releases.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/sync/memory_sync_store.h"
#include "tests/fakes/telemetry/shown.h"

namespace muster::processor {
namespace {

using ::testing::ElementsAre;

class StandbyTest : public ::testing::Test {
 protected:
  void Begin(telemetry::Registry* metrics = nullptr) {
    ASSERT_TRUE(standby_
                    .Begin(&store_, &bus_,
                           {.go = [this] { Note("go"); },
                            .announce = [this] { Note("announce"); },
                            .fail =
                                [this](const absl::Status& why) {
                                  Note(absl::StatusCodeToString(why.code()));
                                }},
                           metrics)
                    .ok());
  }
  void Note(const std::string& what) {
    base::MutexLock lock(&mu_);
    noted_.push_back(what);
    changed_.NotifyAll();
  }
  std::vector<std::string> Await(size_t n) {
    base::MutexLock lock(&mu_);
    while (noted_.size() < n) changed_.Wait(&mu_);
    return noted_;
  }
  v1::Heartbeat Heartbeat() const {
    v1::Heartbeat heartbeat;
    standby_.AddTo(&heartbeat);
    return heartbeat;
  }

  base::LogCapture log_;
  base::FakeClock clock_;
  sync::testing::MemorySyncStore store_;
  bus::local::LocalTriggerBus bus_;
  release::Releases releases_{&store_, &bus_, "initiator-1", &clock_};
  base::Mutex mu_;
  base::CondVar changed_;
  std::vector<std::string> noted_;
  Standby standby_{"go", &clock_};
};

TEST_F(StandbyTest, TellsThatItIsParkedAndThenThatItLeft) {
  EXPECT_FALSE(Heartbeat().has_standby()) << "it has not begun";
  Begin();
  clock_.AwaitSleepers(1);
  const v1::Standby parked = Heartbeat().standby();
  EXPECT_EQ(parked.release(), "go");
  EXPECT_EQ(parked.epoch(), 1);
  EXPECT_EQ(base::FromProto(parked.parked()), clock_.Now());
  EXPECT_FALSE(parked.has_left());
  clock_.Advance(absl::Seconds(3));
  ASSERT_TRUE(releases_.Release("go").ok());
  EXPECT_THAT(Await(3), ElementsAre("announce", "go", "announce"));
  const v1::Standby left = Heartbeat().standby();
  EXPECT_EQ(base::FromProto(left.parked()), clock_.Now() - absl::Seconds(3));
  EXPECT_EQ(base::FromProto(left.left()), clock_.Now());
}

TEST_F(StandbyTest, ShowsWhetherItIsParkedAsLongAsItRuns) {
  const std::string parked = R"(muster_parked_processors{release="go"})";
  telemetry::Registry registry;
  Begin(&registry);
  clock_.AwaitSleepers(1);
  EXPECT_EQ(telemetry::Shown(registry, parked), 1);
  ASSERT_TRUE(releases_.Release("go").ok());
  Await(3);
  EXPECT_EQ(telemetry::Shown(registry, parked), 0);
  standby_.Stop();
  EXPECT_EQ(telemetry::Shown(registry, parked), std::nullopt);
}

TEST_F(StandbyTest, GoesAtOnceIfItStartsAfterTheRelease) {
  ASSERT_TRUE(releases_.Release("go").ok());
  Begin();
  EXPECT_THAT(Await(3), ElementsAre("announce", "go", "announce"));
}

TEST_F(StandbyTest, AStopEndsTheWaitWithoutAGo) {
  Begin();
  clock_.AwaitSleepers(1);
  standby_.Stop();
  standby_.Stop();
  EXPECT_THAT(Await(1), ElementsAre("announce"));
  EXPECT_FALSE(Heartbeat().has_standby());
}

TEST_F(StandbyTest, FailsWhereItCouldWaitForEver) {
  store_.Overwrite(release::kReleasesKey, "\xff\xff");
  Begin();
  EXPECT_THAT(Await(2), ElementsAre("announce", "DATA_LOSS"));
}

}  // namespace
}  // namespace muster::processor
