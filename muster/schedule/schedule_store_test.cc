// SPDX-License-Identifier: Apache-2.0
#include "muster/schedule/schedule_store.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/failpoint.h"
#include "muster/base/fingerprint.h"
#include "muster/base/proto_time.h"
#include "muster/base/text.h"
#include "muster/blob/file/file_blob_store.h"
#include "muster/os/temp_dir.h"
#include "muster/rpc/status.h"
#include "muster/schedule/limits.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

v1::ScheduleSpec Spec(const std::string& name) {
  v1::ScheduleSpec spec;
  spec.set_name(name);
  spec.set_job("retail");
  spec.set_cron("0 3 * * *");
  spec.set_time_zone("Europe/Berlin");
  (*spec.mutable_labels())["team"] = "billing";
  return spec;
}

class ScheduleStoreTest : public ::testing::Test {
 protected:
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    const auto entries = store_.List().value();
    for (const auto& entry : entries) names.push_back(entry.name());
    return names;
  }
  std::vector<std::string> Blobs() {
    std::vector<std::string> names;
    const auto scan = blobs_->Scan().value();
    for (auto page = scan->Next(100).value(); !page.empty(); page = scan->Next(100).value()) {
      for (const auto& blob : page) names.push_back(blob.name);
    }
    return names;
  }
  // Runs `act` and ends it at the failpoint, as a death there would.
  void DieAt(const char* failpoint, const std::function<void()>& act) {
    struct Died {};
    const base::ArmedFailpoint armed(failpoint, 1, [] { throw Died(); });
    EXPECT_THROW(act(), Died);
  }

  const os::TempDir dir_;
  base::FakeClock clock_;
  sync::testing::MemorySyncStore records_;
  const std::unique_ptr<blob::BlobStore> blobs_ =
      blob::file::FileBlobStore::Open(dir_.path() + "/blobs").value();
  ScheduleStore store_{&records_, blobs_.get(), &clock_};
  const std::string long_content_ = std::string(kMaxRecordedContentBytes + 1, 'x');
};

TEST_F(ScheduleStoreTest, KeepsWhatWasMadeInOrderOfName) {
  const auto made = store_.Create(Spec("b"), "content");
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_TRUE(store_.Create(Spec("a"), "content").ok());
  EXPECT_THAT(Names(), ElementsAre("a", "b"));
  const auto found = store_.Find("b");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->record.SerializeAsString(), made->SerializeAsString());
  EXPECT_EQ(store_.Content(found->record).value(), "content");
  EXPECT_EQ(base::FromProto(found->record.decided()), clock_.Now());
  const absl::Status none = store_.Find("c").status();
  EXPECT_EQ(none.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(rpc::Reason(none)->reason, "NO_SUCH_SCHEDULE");
  EXPECT_EQ(rpc::Reason(none)->metadata.at("schedule"), "c");
}

TEST_F(ScheduleStoreTest, TheSameAgainIsTheSameSchedule) {
  const auto made = store_.Create(Spec("a"), long_content_);
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(store_.Create(Spec("a"), long_content_)->id(), made->id());
  EXPECT_EQ(store_.Create(Spec("a"), "other").status().code(), absl::StatusCode::kAlreadyExists);
  v1::ScheduleSpec other = Spec("a");
  other.set_cron("0 4 * * *");
  EXPECT_EQ(store_.Create(other, long_content_).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(store_.Content(store_.Find("a")->record).value(), long_content_);
}

TEST_F(ScheduleStoreTest, LongContentIsABlobAndGoesWithTheSchedule) {
  ASSERT_TRUE(store_.Create(Spec("a"), long_content_).ok());
  EXPECT_EQ(Blobs().size(), 1u);
  EXPECT_EQ(store_.Content(store_.Find("a")->record).value(), long_content_);
  EXPECT_TRUE(store_.Delete("a").ok());
  EXPECT_THAT(Blobs(), IsEmpty());
  EXPECT_THAT(Names(), IsEmpty());
  EXPECT_EQ(store_.Delete("a").code(), absl::StatusCode::kNotFound);
}

TEST_F(ScheduleStoreTest, DamagedContentIsNoContent) {
  ASSERT_TRUE(store_.Create(Spec("a"), long_content_).ok());
  ASSERT_TRUE(blobs_->Put(Blobs().front(), "something else").ok());
  EXPECT_EQ(store_.Content(store_.Find("a")->record).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(ScheduleStoreTest, OneThatIsMadeAnewHasAnotherId) {
  const auto first = store_.Create(Spec("a"), "content");
  ASSERT_TRUE(store_.Delete("a").ok());
  const auto second = store_.Create(Spec("a"), "content");
  EXPECT_NE(first->id(), second->id());
  EXPECT_TRUE(store_.Find("a").ok());
}

TEST_F(ScheduleStoreTest, AChangeIsMadeAgainWhenAnotherWriterWasFirst) {
  ASSERT_TRUE(store_.Create(Spec("a"), "content").ok());
  const v1::ScheduleEntry entry = store_.List()->front();
  records_.LoseNextWrites(1);
  int calls = 0;
  const auto changed = store_.Change(entry, [&](v1::ScheduleRecord* record) {
    record->set_paused(true);
    ++calls;
    return true;
  });
  EXPECT_TRUE(changed->paused());
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(store_.Find("a")->record.paused());
  records_.LoseNextWrites(kMaxRaces);
  EXPECT_EQ(store_.Change(entry, [](v1::ScheduleRecord*) { return true; }).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(ScheduleStoreTest, AnUpdateKeepsTheIdAndTheContentAndIsMadeOnce) {
  const v1::ScheduleRecord made = store_.Create(Spec("nightly"), "content").value();
  EXPECT_EQ(RevisionOf(made), 1);
  v1::ScheduleSpec spec = Spec("nightly");
  spec.set_cron("@weekly");
  const v1::ScheduleRecord updated = store_.Update(spec, 1).value();
  EXPECT_EQ(RevisionOf(updated), 2);
  EXPECT_EQ(updated.id(), made.id());
  EXPECT_EQ(updated.spec().cron(), "@weekly");
  EXPECT_EQ(store_.Content(updated).value(), "content");
  EXPECT_EQ(RevisionOf(store_.Update(spec, 1).value()), 2) << "a call that is repeated";
  EXPECT_EQ(RevisionOf(store_.Update(spec, std::nullopt).value()), 2);
  spec.set_cron("@monthly");
  const absl::Status late = store_.Update(spec, 1).status();
  EXPECT_TRUE(absl::IsAborted(late)) << late;
  EXPECT_THAT(std::string(late.message()), HasSubstr("is at revision 2, not 1"));
  EXPECT_EQ(store_.Find("nightly")->record.spec().cron(), "@weekly");
  EXPECT_EQ(RevisionOf(store_.Update(spec, std::nullopt).value()), 3);
  EXPECT_TRUE(absl::IsNotFound(store_.Update(Spec("other"), std::nullopt).status()));
}

TEST_F(ScheduleStoreTest, AnUpdateThatDiedIsFinishedByTheSameCall) {
  ASSERT_TRUE(store_.Create(Spec("nightly"), "content").ok());
  v1::ScheduleSpec spec = Spec("nightly");
  spec.set_cron("@weekly");
  DieAt("schedule.after_update", [&] { (void)store_.Update(spec, 1); });
  EXPECT_EQ(store_.Find("nightly")->record.spec().cron(), "@weekly");
  EXPECT_EQ(store_.List()->front().updates(), 0) << "others do not know yet";
  EXPECT_EQ(RevisionOf(store_.Update(spec, 1).value()), 2);
  EXPECT_EQ(store_.List()->front().updates(), 1);
}

TEST_F(ScheduleStoreTest, ACreationThatDiedLeavesNoScheduleAndNothingThatStays) {
  DieAt("schedule.after_entry", [&] { (void)store_.Create(Spec("a"), long_content_); });
  EXPECT_THAT(Names(), ElementsAre("a"));
  EXPECT_EQ(store_.Find("a").status().code(), absl::StatusCode::kNotFound);
  const auto again = store_.Create(Spec("a"), "content");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(store_.Find("a")->record.id(), again->id());
  EXPECT_TRUE(store_.Delete("a").ok());
  EXPECT_THAT(Blobs(), IsEmpty());
}

TEST_F(ScheduleStoreTest, ARemovalThatDiedIsFinishedByTheNext) {
  ASSERT_TRUE(store_.Create(Spec("a"), long_content_).ok());
  DieAt("schedule.after_fence", [&] { (void)store_.Delete("a"); });
  EXPECT_EQ(store_.Find("a").status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(store_.Delete("a").ok());
  EXPECT_THAT(Names(), IsEmpty());
  EXPECT_THAT(Blobs(), IsEmpty());
}

// The creation is slow, and a second one of the name takes it for dead.
TEST_F(ScheduleStoreTest, ASlowCreationFailsWhenItsEntryWasRemoved) {
  absl::Status slow;
  {
    const base::ArmedFailpoint armed("schedule.after_entry", 1, [&] {
      const v1::ScheduleEntry entry = store_.List()->front();
      EXPECT_TRUE(store_.Remove(entry).ok());
    });
    slow = store_.Create(Spec("a"), long_content_).status();
  }
  EXPECT_EQ(slow.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Names(), IsEmpty());
  EXPECT_THAT(Blobs(), IsEmpty());
}

TEST_F(ScheduleStoreTest, TheBoundHoldsAndWhatHasEndedMakesRoom) {
  for (size_t i = 0; i < kMaxSchedules; ++i) {
    const std::string name = absl::StrCat(std::string(kMaxNameBytes - 4, 'n'), 1000 + i);
    ASSERT_TRUE(store_.Create(Spec(name), "content").ok()) << i;
  }
  EXPECT_EQ(store_.Create(Spec("more"), "content").status().code(),
            absl::StatusCode::kResourceExhausted);
  const v1::ScheduleEntry entry = store_.List()->back();
  ASSERT_TRUE(store_
                  .Change(entry,
                          [&](v1::ScheduleRecord* record) {
                            *record->mutable_ended() = base::ToProto(clock_.Now());
                            return true;
                          })
                  .ok());
  EXPECT_TRUE(store_.Create(Spec("more"), "content").ok());
  EXPECT_EQ(Names().size(), kMaxSchedules);
  EXPECT_EQ(store_.Read(entry).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ScheduleStoreTest, AnUnreadableRecordIsNamed) {
  records_.Overwrite(kDirectoryKey, "\xff\xff");
  EXPECT_EQ(store_.List().status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(store_.Find("a").status().message(), HasSubstr("schedules/directory"));
}

TEST_F(ScheduleStoreTest, ARequestThatNoScheduleCanHaveNamesTheField) {
  const auto refused = [](const std::function<void(v1::ScheduleSpec*)>& spoil) {
    v1::ScheduleSpec spec = Spec("a");
    spoil(&spec);
    const absl::Status status = CheckSpec(spec);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    const auto violations = rpc::Violations(status);
    return violations.empty() ? "" : violations.front().field;
  };
  EXPECT_TRUE(CheckSpec(Spec("a")).ok());
  EXPECT_EQ(refused([](auto* spec) { spec->set_name("A"); }), "spec.name");
  EXPECT_EQ(refused([](auto* spec) { spec->set_name(std::string(49, 'a')); }), "spec.name");
  EXPECT_EQ(refused([](auto* spec) { spec->set_job(""); }), "spec.job");
  EXPECT_EQ(refused([](auto* spec) { spec->set_cron("0 25 * * *"); }), "spec.cron");
  EXPECT_EQ(refused([](auto* spec) { spec->clear_cron(); }), "spec.cron");
  EXPECT_EQ(refused([](auto* spec) { spec->set_time_zone("Atlantis"); }), "spec.time_zone");
  EXPECT_EQ(refused([](auto* spec) { spec->mutable_at()->set_seconds(1); }), "spec.time_zone");
  EXPECT_EQ(refused([](auto* spec) { spec->set_catch_up(static_cast<v1::CatchUp>(9)); }),
            "spec.catch_up");
  EXPECT_EQ(refused([](auto* spec) { (*spec->mutable_labels())["schedule"] = "x"; }),
            "spec.labels");
  EXPECT_EQ(refused([](auto* spec) {
              for (int i = 0; i < 15; ++i) (*spec->mutable_labels())[absl::StrCat("l", i)] = "x";
            }),
            "spec.labels");
  EXPECT_EQ(refused([](auto* spec) { (*spec->mutable_labels())["muster/call"] = "x"; }),
            "spec.labels");
  EXPECT_FALSE(CheckContent("").ok());
  EXPECT_FALSE(CheckContent(std::string(kMaxContentBytes + 1, 'x')).ok());
  EXPECT_TRUE(CheckContent(long_content_).ok());
}

// To change the form, see schedule_store.h: records of an older muster are read for ever.
TEST_F(ScheduleStoreTest, ARecordOfThisReleaseIsReadForEver) {
  records_.Overwrite(kDirectoryKey, base::BytesFromHex("0a0d0a016112080102030405060708"));
  v1::ScheduleRecord record;
  *record.mutable_spec() = Spec("a");
  record.mutable_spec()->set_catch_up(v1::CATCH_UP_ALL);
  record.set_id("\x01\x02\x03\x04\x05\x06\x07\x08");
  record.mutable_created()->set_seconds(1);
  record.set_content("c");
  record.set_content_bytes(1);
  record.set_content_hash(base::Fingerprint("c").ToBytes());
  record.set_paused(true);
  record.mutable_decided()->set_seconds(2);
  v1::ScheduleAttempt* const attempt = record.mutable_attempt();
  attempt->mutable_occurrence()->set_seconds(3);
  attempt->set_owner("o");
  attempt->mutable_until()->set_seconds(4);
  attempt->mutable_began()->set_seconds(5);
  attempt->set_tries(6);
  attempt->set_refused(true);
  attempt->set_waits(true);
  attempt->mutable_tried()->set_seconds(14);
  record.mutable_last()->set_seconds(7);
  record.set_last_batch(8);
  record.set_problem("p");
  record.mutable_problem_since()->set_seconds(9);
  record.set_submitted(10);
  record.set_missed(11);
  record.set_failed(12);
  record.mutable_ended()->set_seconds(13);
  const std::string hex =
      "0a380a0161120672657461696c1a09302033202a202a202a2a0d4575726f70652f4265726c696e3003520f0a"
      "047465616d120762696c6c696e67120801020304050607081a0208012201632801321012d8bdd17f74de858c"
      "40219a46b9f81b3801420208024a190a02080312016f1a020804220208052806300138014202080e52020807"
      "58086201706a020809700a780b80010c8a0102080d";
  EXPECT_EQ(absl::BytesToHexString(record.SerializeAsString()), hex);
  records_.Overwrite("schedules/records/0102030405060708", base::BytesFromHex(hex));
  EXPECT_EQ(store_.Find("a")->record.SerializeAsString(), record.SerializeAsString());
  EXPECT_EQ(store_.Content(store_.Find("a")->record).value(), "c");
}

}  // namespace
}  // namespace muster::schedule
