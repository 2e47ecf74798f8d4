// SPDX-License-Identifier: Apache-2.0

// The registry's handling of its records, over a store that fails on command.

#include "muster/job/job_registry.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/fingerprint.h"
#include "muster/base/text.h"
#include "muster/job/limits.h"
#include "muster/rpc/status.h"
#include "muster/sync/optimistic_sync_store.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/job/job_text.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::job {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

JobRecord Record(const std::string& name) {
  return {.name = name,
          .revision = std::string(32, 'a'),
          .text_hash = std::string(64, 'b'),
          .text_bytes = 300,
          .updated = absl::FromUnixNanos(1'500'000'001)};
}

TEST(JobRecordsTest, ComeBackAsTheyWere) {
  EXPECT_EQ(DecodeRecord(EncodeRecord(Record("a")), "k").value(), Record("a"));
  EXPECT_THAT(DecodeDirectory(EncodeDirectory({{Record("a"), Record("b")}, ""})).value().jobs,
              ElementsAre(Record("a"), Record("b")));
  EXPECT_THAT(DecodeHistory(EncodeHistory({Record("a"), Record("b")}), "k").value(),
              ElementsAre(Record("a"), Record("b")));
  EXPECT_THAT(DecodeDirectory("").value().jobs, ElementsAre());
}

// These bytes lie in stores: they must never change.
TEST(JobRecordsTest, KeepTheirForm) {
  const std::string record = absl::StrCat("0a0161", "1220", std::string(64, '6'), "1a20",
                                          std::string(64, 'b'), "20ac02", "2a0808011080cab5ee01");
  JobRecord golden = Record("a");
  golden.revision = std::string(32, 'f');
  golden.updated = absl::FromUnixNanos(1'500'000'000);
  EXPECT_EQ(absl::BytesToHexString(EncodeRecord(golden)), record);
  EXPECT_EQ(DecodeRecord(base::BytesFromHex(record), "k").value(), golden);
  EXPECT_EQ(absl::BytesToHexString(EncodeDirectory({{golden}, ""})), absl::StrCat("0a54", record));
}

// Field 13 with the value "new", behind the fields that this muster knows.
constexpr char kNewerField[] = "6a036e6577";

TEST(JobRecordsTest, KeepTheFieldsThatANewerMusterHasAdded) {
  const std::string newer = base::BytesFromHex(kNewerField);
  const std::string record = EncodeRecord(Record("a")) + newer;
  EXPECT_EQ(DecodeRecord(record, "k")->name, "a");
  EXPECT_EQ(EncodeRecord(DecodeRecord(record, "k").value()), record);
  std::string directory = EncodeDirectory({{Record("a"), Record("b")}, ""}) + newer;
  EXPECT_EQ(EncodeDirectory(DecodeDirectory(directory).value()), directory);
}

TEST(JobRecordsTest, AFullDirectoryFitsIntoARecord) {
  std::vector<JobRecord> jobs;
  for (size_t i = 0; i < kMaxJobs; ++i) {
    JobRecord job = Record(absl::StrCat(10'000 + i, std::string(kMaxNameBytes - 5, 'n')));
    job.text_bytes = kMaxJobFileBytes;
    job.updated = absl::FromUnixSeconds(253'402'300'799) + absl::Nanoseconds(999'999'999);
    jobs.push_back(job);
  }
  EXPECT_LE(EncodeDirectory({jobs, ""}).size(), sync::kMaxDataBytes);
  EXPECT_LE(kPieceBytes, sync::kMaxDataBytes);
}

TEST(JobRecordsTest, KeepWhenDefinitionsWereRemoved) {
  JobDirectory directory{{Record("a")}, ""};
  directory.removals = 7;
  directory.removed_until = absl::FromUnixSeconds(2);
  directory.began = absl::FromUnixSeconds(1);
  const std::string data = EncodeDirectory(directory);
  const JobDirectory read = DecodeDirectory(data).value();
  EXPECT_EQ(read.removals, 7u);
  EXPECT_EQ(read.removed_until, directory.removed_until);
  EXPECT_EQ(read.began, directory.began);
  EXPECT_EQ(absl::BytesToHexString(data.substr(EncodeDirectory({{Record("a")}, ""}).size())),
            "10071a02080222020801");
}

TEST(JobRecordsTest, AFullHistoryFitsIntoARecord) {
  JobRecord longest = Record(std::string(kMaxNameBytes, 'n'));
  longest.text_bytes = kMaxJobFileBytes;
  longest.updated = absl::FromUnixSeconds(253'402'300'799) + absl::Nanoseconds(999'999'999);
  const std::vector<JobRecord> history(kMaxDefinitions, longest);
  EXPECT_LE(EncodeHistory(history).size(), sync::kMaxDataBytes);
  EXPECT_EQ(DecodeHistory(EncodeHistory(history), "k")->size(), kMaxDefinitions);
}

TEST(JobRecordsTest, LieUnderKeysThatAreSound) {
  EXPECT_TRUE(sync::ValidateKey(kDirectoryKey).ok());
  EXPECT_TRUE(sync::ValidateKey(RevisionKey(Record("a").revision)).ok());
  EXPECT_TRUE(sync::ValidateKey(PieceKey(Record("a").text_hash, 21)).ok());
}

TEST(JobRecordsTest, NamesARecordThatCannotBe) {
  JobRecord nameless = Record(""), unhashed = Record("a"), empty = Record("a");
  unhashed.text_hash = "bb";
  empty.text_bytes = 0;
  for (const std::string& data : {std::string("\xff"), std::string(), EncodeRecord(nameless),
                                  EncodeRecord(unhashed), EncodeRecord(empty)}) {
    const absl::Status status = DecodeRecord(data, "jobs/revisions/x").status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << absl::CHexEscape(data);
    EXPECT_THAT(status.message(), HasSubstr("'jobs/revisions/x'"));
  }
  for (const std::string& data :
       {std::string("\xff"), EncodeDirectory({{Record("b"), Record("a")}, ""})}) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeDirectory(data).status()));
  }
}

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Makes `writes` writes and then refuses more, as if its process had died.
class DyingStore final : public sync::OptimisticSyncStore {
 public:
  DyingStore(sync::OptimisticSyncStore* store, int writes) : store_(store), writes_(writes) {}

  absl::StatusOr<sync::VersionedData> Get(absl::string_view key) override {
    return store_->Get(key);
  }
  absl::StatusOr<bool> TryWrite(absl::string_view key, absl::string_view data,
                                uint64_t version) override {
    if (writes_-- <= 0) return absl::CancelledError("the process died");
    return store_->TryWrite(key, data, version);
  }
  absl::StatusOr<bool> TryDelete(absl::string_view key, uint64_t version) override {
    if (writes_-- <= 0) return absl::CancelledError("the process died");
    return store_->TryDelete(key, version);
  }

 private:
  sync::OptimisticSyncStore* const store_;  // not owned
  int writes_;
};

// Calls `interrupt` once, before the first write of `key`.
class InterruptedStore final : public sync::OptimisticSyncStore {
 public:
  InterruptedStore(sync::OptimisticSyncStore* store, absl::string_view key,
                   std::function<void()> interrupt)
      : store_(store), key_(key), interrupt_(std::move(interrupt)) {}

  absl::StatusOr<sync::VersionedData> Get(absl::string_view key) override {
    return store_->Get(key);
  }
  absl::StatusOr<bool> TryWrite(absl::string_view key, absl::string_view data,
                                uint64_t version) override {
    if (key == key_ && interrupt_) std::exchange(interrupt_, nullptr)();
    return store_->TryWrite(key, data, version);
  }
  absl::StatusOr<bool> TryDelete(absl::string_view key, uint64_t version) override {
    return store_->TryDelete(key, version);
  }

 private:
  sync::OptimisticSyncStore* const store_;  // not owned
  const std::string key_;
  std::function<void()> interrupt_;
};

// Counts the reads.
class CountingStore final : public sync::OptimisticSyncStore {
 public:
  explicit CountingStore(sync::OptimisticSyncStore* store) : store_(store) {}

  int reads() const { return reads_; }

  absl::StatusOr<sync::VersionedData> Get(absl::string_view key) override {
    ++reads_;
    return store_->Get(key);
  }
  absl::StatusOr<bool> TryWrite(absl::string_view key, absl::string_view data,
                                uint64_t version) override {
    return store_->TryWrite(key, data, version);
  }
  absl::StatusOr<bool> TryDelete(absl::string_view key, uint64_t version) override {
    return store_->TryDelete(key, version);
  }

 private:
  sync::OptimisticSyncStore* const store_;  // not owned
  int reads_ = 0;
};

class JobRegistryTest : public ::testing::Test {
 protected:
  Applied Apply(const std::string& definition) {
    absl::StatusOr<Applied> applied = registry_.Apply(definition, std::nullopt);
    EXPECT_TRUE(applied.ok()) << applied.status();
    return applied.value_or(Applied());
  }

  // With jobs "j1000", "j1001" and so on, whose texts are nowhere.
  void FillDirectory(size_t jobs, size_t text_bytes) {
    std::vector<JobRecord> records;
    for (size_t i = 0; i < jobs; ++i) {
      records.push_back({.name = absl::StrCat("j", 1000 + i),
                         .revision = std::string(32, '0'),
                         .text_hash = std::string(64, '0'),
                         .text_bytes = text_bytes,
                         .updated = clock_.Now()});
    }
    store_.Overwrite(kDirectoryKey, EncodeDirectory({records, ""}));
  }

  base::FakeClock clock_;
  sync::testing::MemorySyncStore store_;
  JobRegistry registry_{&store_, &clock_};
};

TEST_F(JobRegistryTest, SaysLineAndColumnOfEachMistake) {
  const absl::Status status = registry_.Apply("name: a\nnmae: b\n", std::nullopt).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(status.message(), AllOf(HasSubstr("\n2:1: "), Not(HasSubstr("yaml"))));
  EXPECT_EQ(store_.writes_tried(), 0);
}

TEST_F(JobRegistryTest, PutsBackWhatTheStoreHasLost) {
  const JobEntry lost = Apply(JobText("a")).entry;
  EXPECT_FALSE(*registry_.Restore(lost));
  store_.Clear();
  EXPECT_TRUE(absl::IsNotFound(registry_.Get("a").status()));
  EXPECT_TRUE(*registry_.Restore(lost));
  EXPECT_EQ(registry_.Get("a")->definition, JobText("a"));
  EXPECT_EQ(registry_.Get("a")->updated, lost.updated);
  EXPECT_EQ(registry_.FindRevision(lost.revision)->definition, JobText("a"));
  EXPECT_FALSE(*registry_.Restore(lost));
}

TEST_F(JobRegistryTest, PutsBackALostRevisionWithoutTakingANewerOnesPlace) {
  const JobEntry older = Apply(JobText("a", "amount")).entry;
  clock_.Advance(absl::Seconds(1));
  const JobEntry newer = Apply(JobText("a", "price")).entry;
  for (const bool newer_first : {true, false}) {
    store_.Clear();
    EXPECT_TRUE(*registry_.Restore(newer_first ? newer : older));
    EXPECT_TRUE(*registry_.Restore(newer_first ? older : newer));
    EXPECT_EQ(registry_.Get("a")->revision, newer.revision);
    EXPECT_TRUE(registry_.FindRevision(older.revision).ok());
  }
}

TEST_F(JobRegistryTest, DoesNotPutBackAJobThatWasDeleted) {
  const JobEntry deleted = Apply(JobText("a")).entry;
  ASSERT_TRUE(registry_.Delete("a").ok());
  EXPECT_FALSE(*registry_.Restore(deleted));
  EXPECT_TRUE(absl::IsNotFound(registry_.Get("a").status()));
}

// Of a job without batches.
class RemovalTest : public JobRegistryTest {
 protected:
  absl::StatusOr<bool> Remove(JobRegistry& registry, const std::string& name) {
    return registry.RemoveDefinitions(name, [](const std::string&) { return false; });
  }
};

TEST_F(RemovalTest, IsDueOfJobsThatWereReplaced) {
  Apply(JobText("a"));
  Apply(JobText("b"));
  EXPECT_THAT(registry_.Replaced().value(), ElementsAre());
  Apply(JobText("a", "price"));
  clock_.Advance(absl::Seconds(1));
  const DeletedJob first = registry_.Replaced()->front();
  EXPECT_EQ(first.name, "a");
  Apply(JobText("a"));
  ASSERT_TRUE(registry_.ForgetReplaced(first).ok());
  EXPECT_THAT(registry_.Replaced().value(), SizeIs(1)) << "it was replaced once more";
  ASSERT_TRUE(registry_.ForgetReplaced(registry_.Replaced()->front()).ok());
  Apply(JobText("a"));
  EXPECT_THAT(registry_.Replaced().value(), ElementsAre());
}

TEST_F(RemovalTest, IsDueOfAJobThatWasReplacedByTheLoserOfARace) {
  InterruptedStore interrupted(&store_, kDirectoryKey, [&] { Apply(JobText("a")); });
  JobRegistry loser(&interrupted, &clock_);
  ASSERT_TRUE(loser.Apply(JobText("a", "price"), std::nullopt).ok());
  ASSERT_EQ(registry_.Get("a")->definition, JobText("a", "price"));
  EXPECT_EQ(registry_.Replaced()->size(), 1u);
}

TEST_F(RemovalTest, KeepsWhatABatchNeeds) {
  const JobEntry first = Apply(JobText("a")).entry;
  const JobEntry second = Apply(JobText("a", "price")).entry;
  const auto is_needed = [&](const std::string& current) {
    EXPECT_EQ(current, second.revision);
    return true;
  };
  EXPECT_FALSE(*registry_.RemoveDefinitions("a", is_needed));
  EXPECT_TRUE(registry_.FindRevision(first.revision).ok());
  const auto unknown = [](const std::string&) -> absl::StatusOr<bool> {
    return absl::UnavailableError("an initiator does not answer");
  };
  EXPECT_TRUE(absl::IsUnavailable(registry_.RemoveDefinitions("a", unknown).status()));
  EXPECT_TRUE(registry_.FindRevision(first.revision).ok());
  EXPECT_TRUE(*Remove(registry_, "a"));
  EXPECT_TRUE(absl::IsNotFound(registry_.FindRevision(first.revision).status()));
  EXPECT_TRUE(*Remove(registry_, "a")) << "nothing is left to do";
}

// An initiator that was away comes back with a batch of a job that was deleted meanwhile.
TEST_F(RemovalTest, DoesNotPutBackAJobThatWasDeletedAndRemoved) {
  JobEntry batch = Apply(JobText("a")).entry;
  ASSERT_TRUE(registry_.Delete("a").ok());
  clock_.Advance(absl::Minutes(2));
  ASSERT_TRUE(*Remove(registry_, "a"));
  ASSERT_TRUE(registry_.ForgetDeleted(registry_.Deleted()->front()).ok());
  EXPECT_TRUE(*registry_.Restore(batch));
  EXPECT_FALSE(*registry_.Has("a"));
  EXPECT_TRUE(registry_.FindRevision(batch.revision).ok()) << "its workers need it";
  EXPECT_EQ(registry_.Deleted()->front().name, "a") << "to be removed after the batch";
  EXPECT_TRUE(*Remove(registry_, "a"));
  EXPECT_TRUE(absl::IsNotFound(registry_.FindRevision(batch.revision).status()));
}

// The record of removals must not keep a mesh from what a lost store had.
TEST_F(RemovalTest, PutsBackAJobThatWasLostBeforeOrAfterARemoval) {
  const JobEntry lost = Apply(JobText("a")).entry;
  store_.Clear();
  clock_.Advance(absl::Seconds(1));
  Apply(JobText("b"));
  ASSERT_TRUE(registry_.Delete("b").ok());
  clock_.Advance(absl::Minutes(2));
  ASSERT_TRUE(*Remove(registry_, "b"));
  EXPECT_TRUE(*registry_.Restore(lost));
  EXPECT_TRUE(*registry_.Has("a"));

  const std::string saved = store_.Get(kDirectoryKey)->data;
  clock_.Advance(absl::Seconds(1));
  const JobEntry later = Apply(JobText("c")).entry;
  store_.Erase(RevisionKey(later.revision));  // the store goes back to an earlier copy
  store_.Overwrite(kDirectoryKey, saved);
  EXPECT_TRUE(*registry_.Restore(later));
  EXPECT_TRUE(*registry_.Has("c"));
}

// The removal is held up while others remove the same, and apply the job again.
TEST_F(RemovalTest, TakesNothingOfAJobThatIsAppliedAgain) {
  Apply(JobText("a", "price"));
  const JobEntry entry = Apply(JobText("a")).entry;
  ASSERT_TRUE(registry_.Delete("a").ok());
  const auto applies = [&](const std::string&) {
    Apply(JobText("a"));
    return false;
  };
  EXPECT_FALSE(*registry_.RemoveDefinitions("a", applies)) << "the job is there again";
  EXPECT_EQ(registry_.Get("a")->definition, entry.definition);
  ASSERT_TRUE(registry_.Delete("a").ok());
  const auto applies_and_deletes = [&](const std::string&) {
    EXPECT_TRUE(*Remove(registry_, "a"));
    Apply(JobText("a"));
    EXPECT_TRUE(registry_.Delete("a").ok());
    Apply(JobText("a", "price"));
    EXPECT_TRUE(registry_.Delete("a").ok());
    return false;
  };
  EXPECT_FALSE(*registry_.RemoveDefinitions("a", applies_and_deletes)) << "all is younger";
  EXPECT_TRUE(registry_.FindRevision(entry.revision).ok());
  EXPECT_TRUE(*Remove(registry_, "a"));
}

// An Apply that has found its text in the store waits while a removal takes it away.
TEST_F(RemovalTest, WritesAnewWhatIsRemovedWhileTheJobIsApplied) {
  const JobEntry entry = Apply(JobText("a")).entry;
  ASSERT_TRUE(registry_.Delete("a").ok());
  InterruptedStore interrupted(&store_, kDirectoryKey,
                               [&] { EXPECT_TRUE(*Remove(registry_, "a")); });
  JobRegistry slow(&interrupted, &clock_);
  ASSERT_TRUE(slow.Apply(JobText("a"), std::nullopt).ok());
  EXPECT_EQ(registry_.Get("a")->definition, entry.definition);
  EXPECT_TRUE(registry_.FindRevision(entry.revision).ok());
}

// The removing process dies after each of its deletes in turn.
TEST_F(RemovalTest, IsCarriedOnAfterACrash) {
  for (int deletes = 0; deletes < 5; ++deletes) {
    sync::testing::MemorySyncStore store;
    JobRegistry registry(&store, &clock_);
    const std::string first = registry.Apply(JobText("a"), std::nullopt)->entry.revision;
    const std::string last = registry.Apply(JobText("a", "price"), std::nullopt)->entry.revision;
    ASSERT_TRUE(registry.Delete("a").ok());
    DyingStore dying(&store, /*writes=*/1 + deletes);  // the first one is the fence
    JobRegistry dead(&dying, &clock_);
    EXPECT_TRUE(absl::IsCancelled(Remove(dead, "a").status()));
    EXPECT_NE(store.Get(HistoryKey("a"))->version, sync::kAbsent);
    EXPECT_TRUE(*Remove(registry, "a")) << deletes;
    for (const std::string& key : {RevisionKey(first), RevisionKey(last), HistoryKey("a"),
                                   PieceKey(base::Sha256Hex(JobText("a")), 0)}) {
      EXPECT_EQ(store.Get(key)->version, sync::kAbsent) << deletes << " " << key;
    }
  }
}

// An older muster has applied and replaced it.
TEST_F(RemovalTest, FindsWhatDefinedAJobWithoutAHistory) {
  const std::string first = Apply(JobText("a")).entry.revision;
  store_.Erase(HistoryKey("a"));
  const std::string second = Apply(JobText("a", "price")).entry.revision;
  store_.Erase(HistoryKey("a"));
  ASSERT_TRUE(registry_.Delete("a").ok());
  ASSERT_TRUE(*Remove(registry_, "a"));
  EXPECT_TRUE(absl::IsNotFound(registry_.FindRevision(second).status()));
  EXPECT_TRUE(registry_.FindRevision(first).ok()) << "it stays";
}

TEST_F(JobRegistryTest, PutsBackARevisionWhoseTextIsDamaged) {
  const JobEntry entry = Apply(JobText("a")).entry;
  store_.Overwrite(PieceKey(base::Sha256Hex(JobText("a")), 0), "");
  EXPECT_TRUE(absl::IsDataLoss(registry_.Get("a").status()));
  EXPECT_TRUE(*registry_.Restore(entry));
  EXPECT_EQ(registry_.Get("a")->definition, JobText("a"));
}

TEST_F(JobRegistryTest, ReadsOnlyTheDirectoryOfAJobWhoseDefinitionItKnows) {
  Apply(JobText("a"));
  CountingStore counting(&store_);
  JobRegistry reader(&counting, &clock_);
  const auto first = reader.GetDefinition("a");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->text, JobText("a"));
  const int reads = counting.reads();
  for (int i = 1; i <= 5; ++i) {
    EXPECT_EQ(reader.GetDefinition("a")->revision, first->revision);
    EXPECT_EQ(counting.reads(), reads + i);
  }
}

TEST_F(JobRegistryTest, SeesAtOnceThatAnotherProcessHasChangedAJob) {
  Apply(JobText("a"));
  JobRegistry reader(&store_, &clock_);
  ASSERT_TRUE(reader.GetDefinition("a").ok());
  Apply(JobText("a", "amount", "1d"));  // the revision stays, the text does not
  EXPECT_EQ(reader.GetDefinition("a")->text, JobText("a", "amount", "1d"));
  Apply(JobText("a", "price"));
  EXPECT_EQ(reader.GetDefinition("a")->text, JobText("a", "price"));
  ASSERT_TRUE(registry_.Delete("a").ok());
  EXPECT_TRUE(absl::IsNotFound(reader.GetDefinition("a").status()));
}

TEST_F(JobRegistryTest, KnowsWhichJobsWereDeletedUntilTheyAreForgotten) {
  const auto names = [this] {
    std::vector<std::string> all;
    const std::vector<DeletedJob> deleted = registry_.Deleted().value();
    for (const DeletedJob& job : deleted) all.push_back(job.name);
    return all;
  };
  EXPECT_TRUE(absl::IsNotFound(registry_.Delete("a")));
  EXPECT_THAT(names(), ElementsAre());
  for (const char* job : {"a", "b"}) {
    Apply(JobText(job));
    EXPECT_TRUE(registry_.Has(job).value());
    ASSERT_TRUE(registry_.Delete(job).ok());
    EXPECT_FALSE(registry_.Has(job).value());
  }
  EXPECT_THAT(names(), ElementsAre("a", "b"));
  const DeletedJob first = registry_.Deleted()->front();
  clock_.Advance(absl::Seconds(1));
  Apply(JobText("a"));
  ASSERT_TRUE(registry_.Delete("a").ok());
  ASSERT_TRUE(registry_.ForgetDeleted(first).ok());
  EXPECT_THAT(names(), ElementsAre("b", "a")) << "it was deleted once more";
  ASSERT_TRUE(registry_.ForgetDeleted(registry_.Deleted()->back()).ok());
  EXPECT_THAT(names(), ElementsAre("b"));
}

TEST_F(JobRegistryTest, RemembersTheLastDeletedJobs) {
  const std::string rest(kMaxNameBytes - 5, 'n');
  for (size_t i = 0; i < kMaxDeleted + 2; ++i) {
    const std::string name = absl::StrCat("n", 1000 + i, rest);
    Apply(JobText(name));
    ASSERT_TRUE(registry_.Delete(name).ok()) << i;
  }
  const std::vector<DeletedJob> deleted = registry_.Deleted().value();
  EXPECT_EQ(deleted.size(), kMaxDeleted);
  EXPECT_EQ(deleted.front().name, absl::StrCat("n1002", rest));
}

TEST_F(JobRegistryTest, RecallsAJobWithoutTheStoreAndSaysWhetherItStillHolds) {
  JobRegistry other(&store_, &clock_);
  EXPECT_EQ(other.Recall("a"), std::nullopt);
  Apply(JobText("a"));
  EXPECT_EQ(registry_.Recall("a")->text, JobText("a"));
  ASSERT_TRUE(other.GetDefinition("a").ok());
  store_.FailNextGet(absl::UnavailableError("no server"));
  const JobDefinition recalled = other.Recall("a").value();
  EXPECT_FALSE(other.IsCurrent(recalled).ok());
  EXPECT_TRUE(*other.IsCurrent(recalled));
  Apply(JobText("a", "amount", "1d"));  // the revision stays, the text does not
  EXPECT_EQ(other.Recall("a")->text, recalled.text);
  EXPECT_FALSE(*other.IsCurrent(recalled));
  ASSERT_TRUE(registry_.Delete("a").ok());
  EXPECT_FALSE(*other.IsCurrent(recalled));
  store_.Clear();
  EXPECT_FALSE(*other.IsCurrent(recalled));
}

TEST_F(JobRegistryTest, RemembersNoMoreDefinitionsThanItMay) {
  JobRegistry reader(&store_, &clock_);
  for (size_t i = 0; i < 3 * kMaxRemembered; ++i) {
    const std::string name = absl::StrCat("job", i);
    Apply(JobText(name));
    EXPECT_EQ(reader.GetDefinition(name)->name, name);
    EXPECT_EQ(reader.GetDefinition(name)->name, name);
    EXPECT_EQ(reader.Recall(name)->name, name);
  }
  EXPECT_EQ(reader.Recall("job0"), std::nullopt);
}

TEST_F(JobRegistryTest, SaysWhetherResultsAreDecidedOtherwise) {
  const Applied made = Apply(JobText("a"));
  EXPECT_TRUE(made.changed && made.revised);
  EXPECT_EQ(made.job.revision, made.entry.revision);
  const Applied patient = Apply(JobText("a", "amount", "1d"));
  EXPECT_TRUE(patient.changed);
  EXPECT_FALSE(patient.revised);
  const Applied other = Apply(JobText("a", "price"));
  EXPECT_TRUE(other.changed && other.revised);
}

TEST_F(JobRegistryTest, TheSameDefinitionAgainChangesNothing) {
  const Applied made = Apply(JobText("a"));
  clock_.Advance(absl::Hours(1));
  const int writes = store_.writes_tried();
  const auto again = registry_.Apply(JobText("a"), "");  // as if the first answer had been lost
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->entry, made.entry);
  EXPECT_FALSE(again->changed || again->revised);
  EXPECT_EQ(store_.writes_tried(), writes);
}

TEST_F(JobRegistryTest, HoldsAJobToTheRevisionThatIsExpected) {
  const std::string first = Apply(JobText("a")).entry.revision;
  for (const std::string& expected : {std::string(), std::string(32, '0')}) {
    const absl::Status status = registry_.Apply(JobText("a", "price"), expected).status();
    EXPECT_TRUE(absl::IsAborted(status)) << status;
    EXPECT_EQ(rpc::Reason(status)->reason, "REVISION_CHANGED");
    EXPECT_EQ(rpc::Reason(status)->metadata.at("revision"), first);
  }
  EXPECT_TRUE(registry_.Apply(JobText("a", "price"), first).ok());
}

TEST_F(JobRegistryTest, ExpectsNoJobWhereTheRevisionIsEmpty) {
  const absl::Status status = registry_.Apply(JobText("a"), std::string(32, '0')).status();
  EXPECT_TRUE(absl::IsAborted(status));
  EXPECT_EQ(rpc::Reason(status)->metadata.at("revision"), "");
  EXPECT_TRUE(registry_.Apply(JobText("a"), "").ok());
}

// The crash comes at each write in turn. The job stays in its old state until it has its new state.
TEST_F(JobRegistryTest, IsAsItWasWhenACrashCutsAnApplyShort) {
  const Applied before = Apply(JobText("a"));
  const std::string next = JobText("a", "price") + std::string(2 * kPieceBytes, '#');
  constexpr int kWrites = 2 + 3 + 1 + 1;  // replaced, history, pieces, revision, directory
  for (int writes = 0; writes < kWrites; ++writes) {
    sync::testing::MemorySyncStore store;
    DyingStore dying(&store, writes);
    ASSERT_TRUE(JobRegistry(&store, &clock_).Apply(JobText("a"), std::nullopt).ok());
    EXPECT_FALSE(JobRegistry(&dying, &clock_).Apply(next, std::nullopt).ok());
    JobRegistry after(&store, &clock_);
    EXPECT_EQ(after.Get("a").value(), before.entry) << writes;
    EXPECT_TRUE(after.Apply(next, before.entry.revision).ok()) << writes;
    EXPECT_EQ(after.Get("a")->definition, next) << writes;
  }
}

TEST_F(JobRegistryTest, TriesAgainWhenOthersAreFirst) {
  store_.LoseNextWrites(3);
  EXPECT_TRUE(Apply(JobText("a")).changed);
  EXPECT_TRUE(registry_.Get("a").ok());
}

TEST_F(JobRegistryTest, GivesUpWhenOthersAreAlwaysFirst) {
  Apply(JobText("a"));
  store_.LoseNextWrites(kMaxRaces);
  EXPECT_TRUE(absl::IsUnavailable(registry_.Delete("a")));
}

TEST_F(JobRegistryTest, NamesARecordThatIsNotWhatWasApplied) {
  const std::string text = JobText("a");
  Apply(text);
  const std::string hash = base::Sha256Hex(text);
  for (const char* data : {"", "another text", "# longer than what was applied"}) {
    store_.Overwrite(PieceKey(hash, 0), data);
    for (const absl::Status& status : {registry_.Get("a").status(), registry_.List().status()}) {
      EXPECT_TRUE(absl::IsDataLoss(status)) << status;
      EXPECT_THAT(status.message(), AllOf(HasSubstr("job 'a'"), HasSubstr(hash)));
    }
  }
  Apply(text);
  EXPECT_EQ(registry_.Get("a")->definition, text) << "to apply it again mends it";
}

// Two initiators, one newer: the older one changes records of the newer one.
TEST_F(JobRegistryTest, KeepsWhatANewerMusterHasAddedToAnyRecord) {
  const std::string newer = "\x6a\x03new";
  const std::string revision = Apply(JobText("a")).entry.revision;
  Apply(JobText("b"));
  JobDirectory directory = DecodeDirectory(store_.Get(kDirectoryKey)->data).value();
  directory.unknown = newer;
  for (JobRecord& job : directory.jobs) job.unknown = newer;
  store_.Overwrite(kDirectoryKey, EncodeDirectory(directory));
  const std::string key = RevisionKey(revision);
  store_.Overwrite(key, store_.Get(key)->data + newer);

  Apply(JobText("a", "amount", "1d"));  // replaces it, at the same revision
  Apply(JobText("c"));
  ASSERT_TRUE(registry_.Delete("c").ok());
  directory = DecodeDirectory(store_.Get(kDirectoryKey)->data).value();
  EXPECT_EQ(directory.unknown, newer);
  ASSERT_EQ(directory.jobs.size(), 2u);
  for (const JobRecord& job : directory.jobs) EXPECT_EQ(job.unknown, newer) << job.name;
  EXPECT_EQ(DecodeRecord(store_.Get(key)->data, key)->unknown, newer);
}

TEST_F(JobRegistryTest, DoesNotTouchADirectoryThatItCannotRead) {
  store_.Overwrite(kDirectoryKey, "\xff no directory");
  EXPECT_TRUE(absl::IsDataLoss(registry_.Apply(JobText("a"), std::nullopt).status()));
  EXPECT_TRUE(absl::IsDataLoss(registry_.List().status()));
  EXPECT_TRUE(absl::IsDataLoss(registry_.Delete("a")));
}

TEST_F(JobRegistryTest, RefusesMoreJobsThanTheDirectoryHolds) {
  FillDirectory(kMaxJobs, /*text_bytes=*/100);
  const absl::Status status = registry_.Apply(JobText("one-more"), std::nullopt).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_TRUE(registry_.Apply(JobText("j1000"), std::nullopt).ok()) << "not one more";
}

TEST_F(JobRegistryTest, RefusesMoreTextThanListMayAnswer) {
  FillDirectory(kMaxTotalBytes / kMaxJobFileBytes, kMaxJobFileBytes);
  EXPECT_TRUE(absl::IsResourceExhausted(registry_.Apply(JobText("a"), std::nullopt).status()));
  EXPECT_TRUE(registry_.Apply(JobText("j1000"), std::nullopt).ok()) << "a shorter one";
  EXPECT_TRUE(registry_.Apply(JobText("a"), std::nullopt).ok());
}

}  // namespace

}  // namespace muster::job
