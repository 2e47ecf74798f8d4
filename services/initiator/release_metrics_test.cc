// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/release_metrics.h"

#include "gtest/gtest.h"
#include "muster/bus/local/local_buses.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/sync/memory_sync_store.h"
#include "tests/fakes/telemetry/shown.h"

namespace muster::initiator {
namespace {

using telemetry::Shown;

class ReleaseMetricsTest : public ::testing::Test {
 protected:
  base::FakeClock clock_;
  sync::testing::MemorySyncStore store_;
  bus::local::LocalTriggerBus bus_;
  release::Releases releases_{&store_, &bus_, "initiator-1", &clock_};
  bool connected_ = true;
  telemetry::Registry registry_;
  const std::unique_ptr<telemetry::Reading> reading_ =
      ReadReleases(&registry_, &releases_, [this] { return connected_; });
};

TEST_F(ReleaseMetricsTest, ShowsWhatIsArmedAndWhatWasReleased) {
  const std::string armed = R"(muster_release_armed{release="opening"})";
  const std::string epoch = R"(muster_released_epoch{release="opening"})";
  EXPECT_EQ(Shown(registry_, armed), std::nullopt) << "no such release was ever used";
  ASSERT_TRUE(releases_.Release("opening").ok());
  EXPECT_EQ(Shown(registry_, armed), 0);
  EXPECT_EQ(Shown(registry_, epoch), 1);
  ASSERT_TRUE(releases_.Arm("opening").ok());
  EXPECT_EQ(Shown(registry_, armed), 1);
  EXPECT_EQ(Shown(registry_, epoch), 1);
}

TEST_F(ReleaseMetricsTest, CountsAScrapeThatCannotReadThem) {
  ASSERT_TRUE(releases_.Release("opening").ok());
  const std::string failures = R"(muster_metrics_read_failures_total{source="releases"})";
  connected_ = false;
  EXPECT_EQ(Shown(registry_, R"(muster_release_armed{release="opening"})"), std::nullopt);
  EXPECT_GE(Shown(registry_, failures), 1);
}

}  // namespace
}  // namespace muster::initiator
