// SPDX-License-Identifier: Apache-2.0

// Damages each kind of stored record of a real ledger: the check names it, and after a repair the
// batch's run continues with the ledger.
#include "muster/ledger/rocksdb/ledger_check.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/ledger/rocksdb/batch_codec.h"
#include "muster/ledger/rocksdb/rocksdb_batch_ledger.h"
#include "muster/os/quarantine.h"
#include "muster/os/temp_dir.h"
#include "muster/rocksdb/checked_value.h"
#include "rocksdb/db.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/os/collected_findings.h"

namespace muster::ledger::rocksdb {
namespace {

using ledger::Batch;
using ledger::BatchState;
using ledger::ItemBoundary;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Batch 1 has items 0 to 5 in three runs and is complete; batch 2 is a later one of the same
// request; batch 3 has another request.
class LedgerCheckTest : public ::testing::Test {
 protected:
  LedgerCheckTest() {
    Open();
    for (const uint64_t number : {1, 2, 3}) {
      Batch batch;
      batch.number = number;
      batch.request_id = number == 3 ? "other" : "same";
      batch.job_definition = "a job";
      EXPECT_TRUE(ledger_->Create(batch).ok());
    }
    for (const uint64_t first : {0, 2, 4}) {
      EXPECT_TRUE(ledger_->Append(1, first, {Item(first), Item(first + 1)}).ok());
    }
    EXPECT_TRUE(ledger_->MarkEnqueued(1, 6, {}).ok());
    EXPECT_TRUE(ledger_->Seal(1, 600).ok());
    EXPECT_TRUE(ledger_->MarkComplete(1, absl::FromUnixSeconds(1)).ok());
    ledger_.reset();
  }

  static ItemBoundary Item(uint64_t index) {
    return {index * 100, 100, static_cast<int64_t>(index) * 5 + 1, 5, base::Fingerprint("x"),
            false};
  }

  void Open() { ledger_ = RocksDbBatchLedger::Open(dir_, {}).value(); }

  void Change(const std::function<void(muster::rocksdb::Database*)>& change) {
    const auto database = muster::rocksdb::Database::Open(dir_, LedgerDatabase({})).value();
    change(database.get());
  }
  void FlipAByte(FamilyIndex family, const std::string& key) {
    Change([&](muster::rocksdb::Database* database) {
      std::string record;
      ASSERT_TRUE(database->db()->Get({}, database->family(family), key, &record).ok());
      record.back() = static_cast<char>(record.back() ^ 1);
      ASSERT_TRUE(database->db()->Put({}, database->family(family), key, record).ok());
    });
  }
  void Remove(FamilyIndex family, const std::string& key) {
    Change([&](muster::rocksdb::Database* database) {
      ASSERT_TRUE(database->db()->Delete({}, database->family(family), key).ok());
    });
  }

  std::vector<std::string> Check(bool repair = false) {
    os::CollectedFindings findings;
    os::Quarantine quarantine(root_.path());
    LedgerCheckOptions options;
    options.check = {&findings, repair ? &quarantine : nullptr};
    options.clock = &clock_;
    const auto summary = CheckLedger(dir_, options);
    EXPECT_TRUE(summary.ok()) << summary.status();
    EXPECT_EQ(summary.ok() ? summary->last_batch : 0, last_batch_);
    notes_ = findings.notes;
    batches_.clear();
    for (const CheckedBatch& batch : summary->batches) {
      batches_.push_back(absl::StrCat(batch.number, ": ", batch.items, " items",
                                      batch.complete ? ", complete" : "",
                                      batch.items_deleted ? ", items deleted" : ""));
    }
    std::vector<std::string> lines;
    for (const os::Damage& damage : findings.all) {
      lines.push_back(absl::StrCat(damage.kind, " of ", damage.name, ": ", damage.why));
    }
    return lines;
  }

  // Expects that a check only reports the damages and a repair mends them; returns the first
  // report.
  std::string Mend(size_t damages = 1) {
    const std::vector<std::string> seen = Check();
    EXPECT_EQ(seen.size(), damages) << ::testing::PrintToString(seen);
    EXPECT_EQ(Check(/*repair=*/true), seen);
    EXPECT_THAT(Check(), IsEmpty());
    Open();
    return seen.empty() ? "" : seen.front();
  }

  void ExpectOpenBehind(uint64_t items) {
    const auto batch = ledger_->Get(1);
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_EQ(batch->state, BatchState::kOpen);
    EXPECT_EQ(batch->items, items);
    EXPECT_EQ(batch->transactions, 5 * items);
    EXPECT_EQ(batch->source_bytes, 100 * items);
    EXPECT_EQ(batch->enqueued_items, items);
    EXPECT_EQ(ledger_->Items(1, 0, 100)->size(), items);
    EXPECT_TRUE(ledger_->Append(1, items, {Item(items)}).ok());
  }

  const os::TempDir root_;
  const std::string dir_ = root_ / "ledger";
  uint64_t last_batch_ = 3;
  base::FakeClock clock_;
  std::unique_ptr<RocksDbBatchLedger> ledger_;
  // Of the last check.
  std::vector<std::string> notes_;
  std::vector<std::string> batches_;
};

TEST_F(LedgerCheckTest, FindsNothingInASoundLedger) {
  EXPECT_THAT(Check(), IsEmpty());
  EXPECT_THAT(Check(/*repair=*/true), IsEmpty());
}

TEST_F(LedgerCheckTest, MissesNoItemsThatARetentionHasDeleted) {
  Open();
  ASSERT_TRUE(ledger_->BeginToDropItems(1).ok());
  ASSERT_TRUE(ledger_->DropItems(1).ok());
  ledger_.reset();
  EXPECT_THAT(Check(), IsEmpty());
  EXPECT_THAT(batches_,
              ElementsAre("1: 6 items, complete, items deleted", "2: 0 items", "3: 0 items"));
}

// A copy of its record that stayed would bring it back.
TEST_F(LedgerCheckTest, FindsNothingOfABatchThatWasDeleted) {
  Open();
  ASSERT_TRUE(ledger_->BeginToDropItems(1).ok());
  ASSERT_TRUE(ledger_->Delete(1).ok());
  ledger_.reset();
  EXPECT_THAT(Check(/*repair=*/true), IsEmpty());
  EXPECT_THAT(batches_, ElementsAre("2: 0 items", "3: 0 items"));
}

TEST_F(LedgerCheckTest, BringsBackNoContentThatARetentionHasDeleted) {
  Open();
  Batch batch;
  batch.number = 4;
  batch.request_id = "short";
  batch.content = "key\n";
  ASSERT_TRUE(ledger_->Create(batch).ok());
  ASSERT_TRUE(ledger_->Cancel(4, absl::FromUnixSeconds(1), "").ok());
  ASSERT_TRUE(ledger_->DropContent(4).ok());
  ledger_.reset();
  last_batch_ = 4;
  FlipAByte(kBatches, BatchKey(4));
  Mend();
  EXPECT_EQ(ledger_->Get(4)->content, "");
  EXPECT_TRUE(ledger_->Get(4)->content_deleted);
}

TEST_F(LedgerCheckTest, GoesOnFromTheItemsWhenTheProgressIsDamaged) {
  FlipAByte(kProgress, BatchKey(1));
  EXPECT_THAT(Mend(), HasSubstr("progress of batch 1: ledger: progress of batch 1"));
  ExpectOpenBehind(6);
}

TEST_F(LedgerCheckTest, GivesARefillAfterwardsAnOrdinalThatNoneHad) {
  Open();
  ASSERT_EQ(ledger_->BeginRefill(1).value(), 1u);
  ledger_.reset();
  FlipAByte(kProgress, BatchKey(1));
  Mend();
  EXPECT_GT(ledger_->BeginRefill(1).value(), 2u);
}

TEST_F(LedgerCheckTest, GoesOnFromTheItemsWhenTheProgressIsNotThere) {
  Remove(kProgress, BatchKey(1));
  EXPECT_THAT(Mend(), HasSubstr("its progress is not there"));
  ExpectOpenBehind(6);
}

TEST_F(LedgerCheckTest, GoesOnBeforeItemsThatAreDamaged) {
  FlipAByte(kItems, ItemsKey(1, 2));
  EXPECT_THAT(Mend(), HasSubstr("items of batch 1: ledger: item boundaries of batch 1"));
  ExpectOpenBehind(2);
}

// It was open again, and its initiator split and put the rest of it.
TEST_F(LedgerCheckTest, LeavesABatchCancelledWhoseItemsAreDamaged) {
  Open();
  for (const uint64_t first : {0, 2}) {
    ASSERT_TRUE(ledger_->Append(2, first, {Item(first), Item(first + 1)}).ok());
  }
  ASSERT_TRUE(ledger_->MarkEnqueued(2, 3, {}).ok());
  ASSERT_TRUE(ledger_->Cancel(2, absl::FromUnixSeconds(5), "sent twice").ok());
  ledger_.reset();
  FlipAByte(kItems, ItemsKey(2, 2));
  EXPECT_THAT(Mend(), HasSubstr("items of batch 2: ledger: item boundaries of batch 2"));
  const auto batch = ledger_->Get(2);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->state, BatchState::kCancelled);
  EXPECT_EQ(batch->completed, absl::FromUnixSeconds(5));
  EXPECT_EQ(batch->cancel_reason, "sent twice");
  EXPECT_EQ(batch->items, 2u);
  EXPECT_EQ(batch->enqueued_items, 2u);
  EXPECT_THAT(ledger_->ListOpen().value(), ElementsAre(3));
}

// It was cancelled while it was open, so that the report does not know it.
TEST_F(LedgerCheckTest, LeavesABatchCancelledWhoseProgressIsDamaged) {
  Open();
  ASSERT_TRUE(ledger_->Append(2, 0, {Item(0), Item(1)}).ok());
  ASSERT_TRUE(ledger_->Cancel(2, absl::FromUnixSeconds(5), "sent twice").ok());
  ASSERT_TRUE(ledger_->DropContent(2).ok());
  ledger_.reset();
  FlipAByte(kProgress, BatchKey(2));
  EXPECT_THAT(Mend(), HasSubstr("progress of batch 2: ledger: progress of batch 2"));
  const auto batch = ledger_->Get(2);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->state, BatchState::kCancelled);
  EXPECT_EQ(batch->completed, absl::FromUnixSeconds(5));
  EXPECT_EQ(batch->cancel_reason, "sent twice");
  EXPECT_EQ(batch->items, 2u);
  EXPECT_TRUE(batch->content_deleted);
  EXPECT_THAT(ledger_->ListOpen().value(), ElementsAre(3));
}

TEST_F(LedgerCheckTest, LeavesABatchCancelledWhoseItemsAndProgressAreDamaged) {
  Open();
  for (const uint64_t first : {0, 2}) {
    ASSERT_TRUE(ledger_->Append(2, first, {Item(first), Item(first + 1)}).ok());
  }
  ASSERT_TRUE(ledger_->Cancel(2, absl::FromUnixSeconds(5), "").ok());
  ledger_.reset();
  Remove(kProgress, BatchKey(2));
  FlipAByte(kItems, ItemsKey(2, 2));
  EXPECT_THAT(Mend(/*damages=*/2), HasSubstr("progress of batch 2: its progress is not there"));
  EXPECT_EQ(ledger_->Get(2)->state, BatchState::kCancelled);
  EXPECT_EQ(ledger_->Get(2)->items, 2u);
}

TEST_F(LedgerCheckTest, NotesTwiceWhatAnOlderMusterCancelled) {
  Open();
  Batch before = ledger_->Get(2).value();
  ASSERT_TRUE(ledger_->Cancel(2, absl::FromUnixSeconds(5), "").ok());
  ledger_.reset();
  Change([&](muster::rocksdb::Database* database) {
    ASSERT_TRUE(
        database->db()->Put({}, database->family(kRequests), CopyKey(2), EncodeCopy(before)).ok());
  });
  EXPECT_THAT(Check(/*repair=*/true), IsEmpty());
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("1 batches have no copies")));
  Remove(kProgress, BatchKey(2));
  Mend();
  EXPECT_EQ(ledger_->Get(2)->state, BatchState::kCancelled);
}

TEST_F(LedgerCheckTest, GoesOnBeforeItemsThatAreNotThere) {
  Remove(kItems, ItemsKey(1, 0));
  EXPECT_THAT(Mend(), HasSubstr("items 0 to 2 of batch 1 are not there"));
  ExpectOpenBehind(0);
}

TEST_F(LedgerCheckTest, GoesOnBehindTheLastItemsThatAreThere) {
  Remove(kItems, ItemsKey(1, 4));
  EXPECT_THAT(Mend(), HasSubstr("speaks of 6 items, and 4 are there"));
  ExpectOpenBehind(4);
}

TEST_F(LedgerCheckTest, MendsProgressAndItemsTogether) {
  FlipAByte(kProgress, BatchKey(1));
  FlipAByte(kItems, ItemsKey(1, 4));
  EXPECT_THAT(Mend(), HasSubstr("progress of batch 1"));
  ExpectOpenBehind(4);
}

TEST_F(LedgerCheckTest, MakesADamagedRecordAgainOfItsCopy) {
  FlipAByte(kBatches, BatchKey(1));
  EXPECT_THAT(Mend(), HasSubstr("batch of batch 1: ledger: record of batch 1"));
  const auto batch = ledger_->Get(1);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->request_id, "same");
  EXPECT_EQ(batch->job_definition, "a job");
  EXPECT_EQ(batch->state, BatchState::kComplete);
  EXPECT_EQ(ledger_->Items(1, 0, 100)->size(), 6u);
}

TEST_F(LedgerCheckTest, MakesARecordAgainThatIsNotThere) {
  Remove(kBatches, BatchKey(3));
  EXPECT_THAT(Mend(), HasSubstr("batch of batch 3: its record is not there"));
  EXPECT_EQ(ledger_->FindByRequestId("other")->number, 3u);
}

TEST_F(LedgerCheckTest, MakesADamagedCopyAgainOfItsRecord) {
  FlipAByte(kRequests, CopyKey(3));
  EXPECT_THAT(Mend(), HasSubstr("copy of batch 3"));
  ledger_.reset();
  FlipAByte(kBatches, BatchKey(3));
  Mend();
  EXPECT_TRUE(ledger_->Get(3).ok());
}

TEST_F(LedgerCheckTest, GivesACopyToABatchOfAnOlderMuster) {
  for (const uint64_t number : {1, 2, 3}) Remove(kRequests, CopyKey(number));
  EXPECT_THAT(Check(), IsEmpty());
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("3 batches have no copies")));
  EXPECT_THAT(Check(/*repair=*/true), IsEmpty());
  Check();
  EXPECT_THAT(notes_, IsEmpty());
  FlipAByte(kBatches, BatchKey(2));
  Mend();
  EXPECT_EQ(ledger_->FindByRequestId("same")->number, 2u);
}

TEST_F(LedgerCheckTest, ForgetsABatchWhoseRecordAndCopyAreDamaged) {
  FlipAByte(kBatches, BatchKey(3));
  FlipAByte(kRequests, CopyKey(3));
  EXPECT_EQ(Check(/*repair=*/true).size(), 2u);
  last_batch_ = 2;
  EXPECT_THAT(Check(), IsEmpty());
  Open();
  EXPECT_TRUE(absl::IsNotFound(ledger_->Get(3).status()));
  EXPECT_TRUE(absl::IsNotFound(ledger_->FindByRequestId("other").status()));
  EXPECT_EQ(ledger_->Items(1, 0, 100)->size(), 6u);
}

TEST_F(LedgerCheckTest, LetsARequestSpeakOfTheNewestBatchThatIsThere) {
  FlipAByte(kBatches, BatchKey(2));
  FlipAByte(kRequests, CopyKey(2));
  Mend(/*damages=*/2);
  EXPECT_EQ(ledger_->FindByRequestId("same")->number, 1u);
}

TEST_F(LedgerCheckTest, SaysWhichBatchesTheLedgerKnowsAfterARepair) {
  FlipAByte(kBatches, BatchKey(1));
  FlipAByte(kBatches, BatchKey(3));
  Remove(kRequests, CopyKey(3));
  Check();
  EXPECT_THAT(batches_, ElementsAre("1: 6 items, complete", "2: 0 items"));
}

TEST_F(LedgerCheckTest, MakesADamagedRequestAgain) {
  FlipAByte(kRequests, "same");
  EXPECT_THAT(Mend(), HasSubstr("request of request 'same'"));
  EXPECT_EQ(ledger_->FindByRequestId("same")->number, 2u);
}

TEST_F(LedgerCheckTest, MakesARequestAgainThatIsNotThere) {
  Remove(kRequests, "same");
  EXPECT_THAT(Mend(), HasSubstr("request of request 'same': it is not there"));
  EXPECT_EQ(ledger_->FindByRequestId("same")->number, 2u);
}

TEST_F(LedgerCheckTest, FindsNoDamageWhereTheNewestBatchesOfARequestWereDeleted) {
  Open();
  Batch batch;
  batch.number = 4;
  batch.request_id = "same";
  ASSERT_TRUE(ledger_->Create(batch).ok());
  for (const uint64_t number : {4, 2}) {
    ASSERT_TRUE(ledger_->Cancel(number, absl::FromUnixSeconds(9), "").ok());
    ASSERT_TRUE(ledger_->BeginToDropItems(number).ok());
    ASSERT_TRUE(ledger_->Delete(number).ok());
  }
  ledger_.reset();
  EXPECT_THAT(Check(), IsEmpty());
}

TEST_F(LedgerCheckTest, KnowsTheRequestsOfSeveralTenants) {
  Open();
  Batch batch;
  batch.request_id = "shared";
  for (const std::string tenant : {"acme", "globex"}) {
    batch.tenant = tenant;
    batch.number = tenant == "acme" ? 4 : 5;
    ASSERT_TRUE(ledger_->Create(batch).ok());
  }
  ledger_.reset();
  last_batch_ = 5;
  EXPECT_THAT(Check(), IsEmpty());
  FlipAByte(kRequests, TenantKey("acme", "shared", 4));
  Mend();
  EXPECT_EQ(ledger_->FindByRequest("acme", "shared")->number, 4u);
  ASSERT_TRUE(ledger_->Cancel(5, absl::FromUnixSeconds(9), "").ok());
  ASSERT_TRUE(ledger_->BeginToDropItems(5).ok());
  ASSERT_TRUE(ledger_->Delete(5).ok());
  ledger_.reset();
  last_batch_ = 4;
  EXPECT_THAT(Check(), IsEmpty()) << "the tenant's record names the newest that is there";
}

TEST_F(LedgerCheckTest, KnowsTheRequestOfATenantAsAnOlderMusterWroteIt) {
  Change([&](muster::rocksdb::Database* database) {
    auto* const family = database->family(kRequests);
    const std::string value = muster::rocksdb::CheckedValue(BatchKey(1));
    ASSERT_TRUE(database->db()->Delete({}, family, TenantKey("", "same", 1)).ok());
    ASSERT_TRUE(database->db()->Put({}, family, TenantKey("", "same"), value).ok());
  });
  EXPECT_THAT(Check(), IsEmpty());
  Open();
  ASSERT_TRUE(ledger_->Cancel(2, absl::FromUnixSeconds(9), "").ok());
  ASSERT_TRUE(ledger_->BeginToDropItems(2).ok());
  ASSERT_TRUE(ledger_->Delete(2).ok());
  EXPECT_EQ(ledger_->FindByRequest("", "same")->number, 1u);
  ledger_.reset();
  EXPECT_THAT(Check(), IsEmpty());
}

TEST_F(LedgerCheckTest, TakesAwayKeysThatNoRecordHas) {
  Change([](muster::rocksdb::Database* database) {
    ASSERT_TRUE(database->db()->Put({}, database->family(kBatches), "short", "x").ok());
    ASSERT_TRUE(database->db()->Put({}, database->family(kItems), BatchKey(1), "x").ok());
  });
  EXPECT_THAT(Mend(/*damages=*/2), HasSubstr("no record has such a key"));
  EXPECT_TRUE(ledger_->Get(1).ok());
}

}  // namespace
}  // namespace muster::ledger::rocksdb
