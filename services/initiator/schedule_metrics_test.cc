// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/schedule_metrics.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "muster/blob/file/file_blob_store.h"
#include "muster/os/temp_dir.h"
#include "muster/schedule/schedule_store.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/sync/memory_sync_store.h"
#include "tests/fakes/telemetry/shown.h"

namespace muster::initiator {
namespace {

using telemetry::Shown;

TEST(ScheduleMetricsTest, ShowsHowManySchedulesThereAreAndWhatBecameOfTheirOccurrences) {
  const os::TempDir dir;
  base::FakeClock clock;
  sync::testing::MemorySyncStore records;
  const auto blobs = blob::file::FileBlobStore::Open(dir / "blobs").value();
  muster::schedule::ScheduleStore store(&records, blobs.get(), &clock);
  v1::ScheduleSpec spec;
  spec.set_job("shop");
  spec.set_cron("0 * * * *");
  for (const char* name : {"a", "b", "c"}) {
    spec.set_name(name);
    ASSERT_TRUE(store.Create(spec, "1").ok());
  }
  const auto entries = store.List().value();
  ASSERT_TRUE(store
                  .Change(entries[2],
                          [](v1::ScheduleRecord* record) {
                            record->set_paused(true);
                            return true;
                          })
                  .ok());
  clock.Advance(absl::Hours(2));  // each of the others has missed one, and submits one
  schedule::ScheduleRunner runner(
      {&store, &clock, "",
       [](const v1::SubmitHeader& header, const std::string&) -> absl::StatusOr<uint64_t> {
         if (header.labels().at("schedule") == "b") return absl::NotFoundError("no job 'shop'");
         return uint64_t{1};
       }});
  telemetry::Registry registry;
  const auto reading = ReadSchedules(&registry, &runner);
  const auto occurrences = [&registry](const std::string& outcome) {
    return Shown(registry, "muster_schedule_occurrences_total{outcome=\"" + outcome + "\"}");
  };
  EXPECT_EQ(Shown(registry, R"(muster_schedules{state="active"})"), 0);
  EXPECT_EQ(occurrences("submitted"), 0);
  runner.Start();
  clock.AwaitSleepers(1);
  EXPECT_EQ(Shown(registry, R"(muster_schedules{state="active"})"), 2);
  EXPECT_EQ(Shown(registry, R"(muster_schedules{state="paused"})"), 1);
  EXPECT_EQ(Shown(registry, "muster_schedules_with_problem"), 1);
  EXPECT_EQ(occurrences("submitted"), 1);
  EXPECT_EQ(occurrences("missed"), 2);
  EXPECT_EQ(occurrences("failed"), 0);
}

}  // namespace
}  // namespace muster::initiator
