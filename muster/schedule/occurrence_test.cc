// SPDX-License-Identifier: Apache-2.0
#include "muster/schedule/occurrence.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/proto_time.h"
#include "muster/blob/file/file_blob_store.h"
#include "muster/os/temp_dir.h"
#include "muster/schedule/limits.h"
#include "muster/schedule/plan.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::schedule {
namespace {

using ::testing::HasSubstr;

class OccurrenceTest : public ::testing::Test {
 protected:
  OccurrenceTest() {
    v1::ScheduleSpec spec;
    spec.set_name("hourly");
    spec.set_job("shop");
    spec.set_cron("0 * * * *");
    record_ = store_.Create(spec, "content").value();
    clock_.Advance(absl::Hours(1));
  }

  // Begins what is due, as a runner does.
  Occurrence Begin() {
    StoredSchedule stored = store_.Find("hourly").value();
    const Plan plan =
        MakePlan(Calendar::Of(stored.record.spec()).value(), clock_.Now(), "a", &stored.record);
    EXPECT_TRUE(store_.TryWrite(stored).value());
    return OccurrenceOf(RequestIdOf(stored.record, plan.occurrence.value()), {{kLabel, "hourly"}})
        .value();
  }

  const os::TempDir dir_;
  base::FakeClock clock_;
  sync::testing::MemorySyncStore records_;
  const std::unique_ptr<blob::BlobStore> blobs_ =
      blob::file::FileBlobStore::Open(dir_.path()).value();
  ScheduleStore store_{&records_, blobs_.get(), &clock_};
  v1::ScheduleRecord record_;
};

TEST_F(OccurrenceTest, IsWhatTheRequestIdAndTheLabelOfABatchName) {
  const absl::Time time = clock_.Now() + absl::Milliseconds(250);
  const std::string id = RequestIdOf(record_, time);
  const auto occurrence = OccurrenceOf(id, {{kLabel, "hourly"}});
  ASSERT_TRUE(occurrence.has_value()) << id;
  EXPECT_EQ(occurrence->entry.name(), "hourly");
  EXPECT_EQ(occurrence->entry.id(), record_.id());
  EXPECT_EQ(occurrence->time, time);
  EXPECT_FALSE(OccurrenceOf(id, {}).has_value());
  const std::string by_hand = RequestIdOf(record_, "one");
  EXPECT_FALSE(OccurrenceOf(by_hand, {{kLabel, "hourly"}}).has_value());
  EXPECT_TRUE(IsOfSchedule(by_hand, {{kLabel, "hourly"}}));
  for (const char* other : {"", "march", "schedule:", "schedule:zz:2026-12-01T02:00:00Z"}) {
    EXPECT_FALSE(OccurrenceOf(other, {{kLabel, "hourly"}}).has_value()) << other;
  }
}

TEST_F(OccurrenceTest, HasARequestIdThatIsToldFromOthers) {
  EXPECT_TRUE(IsScheduleRequest(RequestIdOf(record_, clock_.Now())));
  EXPECT_TRUE(IsScheduleRequest(RequestIdOf(record_, "one")));
  for (const char* other : {"", "march", "schedule:", "schedule:nightly-2026-12:run",
                            "schedule:0123456789abcdef", "other:0123456789abcdef:run:one"}) {
    EXPECT_FALSE(IsScheduleRequest(other)) << other;
  }
}

TEST_F(OccurrenceTest, IsConfirmedUntilItIsSettled) {
  const Occurrence occurrence = Begin();
  EXPECT_TRUE(Confirm(&store_, occurrence).ok());
  ASSERT_TRUE(Settle(&store_, occurrence, 7, clock_.Now()).ok());
  EXPECT_EQ(store_.Find("hourly")->record.last_batch(), 7u);
  EXPECT_EQ(store_.Find("hourly")->record.submitted(), 1);
  const absl::Status settled = Confirm(&store_, occurrence);
  EXPECT_TRUE(absl::IsFailedPrecondition(settled)) << settled;
  EXPECT_THAT(settled.message(), HasSubstr("hourly has settled its occurrence of 2011-11-11T01:"));
  ASSERT_TRUE(Settle(&store_, occurrence, 7, clock_.Now()).ok());
  EXPECT_EQ(store_.Find("hourly")->record.submitted(), 1);
}

TEST_F(OccurrenceTest, OfADeletedScheduleIsSettled) {
  const Occurrence occurrence = Begin();
  ASSERT_TRUE(store_.Delete("hourly").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Confirm(&store_, occurrence)));
  EXPECT_TRUE(Settle(&store_, occurrence, 7, clock_.Now()).ok());
}

TEST_F(OccurrenceTest, IsNeitherSettledNorConfirmedWhileTheStoreIsAway) {
  const Occurrence occurrence = Begin();
  records_.FailNextGet(absl::UnavailableError("away"));
  EXPECT_TRUE(absl::IsUnavailable(Confirm(&store_, occurrence)));
  records_.FailNextWrite(absl::UnavailableError("away"));
  EXPECT_TRUE(absl::IsUnavailable(Settle(&store_, occurrence, 7, clock_.Now())));
}

}  // namespace
}  // namespace muster::schedule
