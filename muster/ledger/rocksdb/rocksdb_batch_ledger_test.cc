// SPDX-License-Identifier: Apache-2.0
#include "muster/ledger/rocksdb/rocksdb_batch_ledger.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/failpoint.h"
#include "muster/ledger/rocksdb/batch_codec.h"
#include "muster/ledger/rocksdb/ledger_fixture.h"
#include "rocksdb/db.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/rocksdb/faulty_env.h"

namespace muster::ledger::rocksdb {
namespace {

using ledger::Batch;
using ledger::BatchState;
using ledger::ItemBoundary;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using LedgerTest = LedgerFixture;

TEST_F(LedgerTest, AnswersOthersWhileARecordIsSynced) {
  Create(1, "first");
  bool answered = false;
  const base::ArmedFailpoint armed("rocks.before_sync", 1, [&] {
    std::thread([&] {
      EXPECT_TRUE(ledger_->Get(1).ok());
      EXPECT_TRUE(ledger_->Append(1, 0, Run(0, 3)).ok());
      answered = true;
    }).join();
  });
  Create(2, "second");
  EXPECT_TRUE(answered);
}

// An older initiator continues with the ledger of a newer one.
TEST_F(LedgerTest, KeepsThroughEveryChangeWhatANewerMusterHasAdded) {
  const std::string newer = "\xa2\x06\x03new";
  Batch batch;
  batch.number = 7;
  batch.request_id = "r";
  batch.unknown_of_record = batch.unknown_of_progress = newer;
  ASSERT_TRUE(ledger_->Create(batch).ok());
  Open();
  ASSERT_TRUE(ledger_->Append(7, 0, Run(0, 3)).ok());
  Open();
  ASSERT_TRUE(ledger_->MarkEnqueued(7, 2, {}).ok());
  ASSERT_TRUE(ledger_->Seal(7, 300).ok());
  ASSERT_TRUE(ledger_->BeginRefill(7).ok());
  ASSERT_TRUE(ledger_->MarkComplete(7, absl::FromUnixSeconds(1)).ok());
  Open();
  ASSERT_TRUE(ledger_->Reopen(7).ok());
  Open();
  EXPECT_EQ(ledger_->Get(7)->unknown_of_record, newer);
  EXPECT_EQ(ledger_->Get(7)->unknown_of_progress, newer);
}

TEST_F(LedgerTest, KeepsWhatWasSealedAndTakesNothingElse) {
  Create(7);
  const ledger::SealedContent content{300, base::Fingerprint("all")};
  EXPECT_EQ(ledger_->Get(7)->sealed_content, std::nullopt);
  ASSERT_TRUE(ledger_->RecordSealedContent(7, content).ok());
  Open();
  ASSERT_TRUE(ledger_->Append(7, 0, Run(0, 3)).ok());
  ASSERT_TRUE(ledger_->Seal(7, 300).ok());
  ASSERT_TRUE(ledger_->RecordSealedContent(7, content).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(ledger_->RecordSealedContent(7, {301, content.hash})));
  EXPECT_TRUE(
      absl::IsAlreadyExists(ledger_->RecordSealedContent(7, {300, base::Fingerprint("other")})));
  ASSERT_TRUE(ledger_->MarkComplete(7, absl::FromUnixSeconds(1)).ok());
  ASSERT_TRUE(ledger_->RecordSealedContent(7, content).ok());
  Open();
  EXPECT_EQ(ledger_->Get(7)->sealed_content, content);
  EXPECT_TRUE(absl::IsNotFound(ledger_->RecordSealedContent(8, content)));
}

TEST_F(LedgerTest, ForgetsAClaimOnceItIsReleased) {
  Batch batch;
  batch.number = 7;
  batch.request_id = "r";
  batch.request_claimed = true;
  ASSERT_TRUE(ledger_->Create(batch).ok());
  Open();
  EXPECT_TRUE(ledger_->Get(7)->request_claimed);
  ASSERT_TRUE(ledger_->NoteRequestReleased(7).ok());
  EXPECT_FALSE(ledger_->Get(7)->request_claimed);
  Open();
  EXPECT_FALSE(ledger_->Get(7)->request_claimed);
  EXPECT_EQ(ledger_->FindByRequestId("r")->number, 7u);
  ASSERT_TRUE(ledger_->NoteRequestReleased(7).ok());
  EXPECT_TRUE(absl::IsNotFound(ledger_->NoteRequestReleased(8)));
}

TEST_F(LedgerTest, WithdrawsABatchOnlyWhileItIsUndecided) {
  Batch batch;
  batch.undecided = true;
  for (batch.number = 7; batch.number <= 8; ++batch.number) {
    batch.request_id = absl::StrCat("r", batch.number);
    ASSERT_TRUE(ledger_->Create(batch, Run(0, 3)).ok());
  }
  Open();
  EXPECT_TRUE(ledger_->Get(8)->undecided);
  ASSERT_TRUE(ledger_->NoteDecided(7).ok());
  ASSERT_TRUE(ledger_->Withdraw(8).ok());
  for (int times = 0; times < 2; ++times) {
    EXPECT_FALSE(ledger_->Get(7)->undecided);
    EXPECT_TRUE(absl::IsNotFound(ledger_->Get(8).status()));
    EXPECT_EQ(ledger_->Items(8, 0, 10)->size(), 0u);
    EXPECT_TRUE(absl::IsNotFound(ledger_->FindByRequestId("r8").status()));
    EXPECT_THAT(*ledger_->ListOpen(), ElementsAre(7));
    EXPECT_EQ(*ledger_->HighestNumber(), 8u);
    Open();
  }
  ASSERT_TRUE(ledger_->NoteDecided(7).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(ledger_->Withdraw(7)));
  EXPECT_TRUE(absl::IsNotFound(ledger_->Withdraw(8)));
  EXPECT_TRUE(absl::IsNotFound(ledger_->NoteDecided(8)));
}

TEST_F(LedgerTest, TakesABatchForDecidedOnceAnItemOfItIsPut) {
  Batch batch;
  batch.number = 7;
  batch.request_id = "r";
  batch.undecided = true;
  ASSERT_TRUE(ledger_->Create(batch, Run(0, 1)).ok());
  ASSERT_TRUE(ledger_->MarkEnqueued(7, 1, {}).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(ledger_->Withdraw(7)));
}

TEST_F(LedgerTest, RecordsABatchThatIsSealedWithAllOfItsItems) {
  Batch batch;
  batch.number = 7;
  batch.request_id = "r";
  batch.state = BatchState::kSealed;
  ASSERT_TRUE(ledger_->Create(batch, Run(0, 3)).ok());
  Open();
  EXPECT_EQ(ledger_->Get(7)->state, BatchState::kSealed);
  EXPECT_EQ(ledger_->Get(7)->items, 3u);
  EXPECT_EQ(ledger_->Get(7)->source_bytes, 300u);
  EXPECT_THAT(*ledger_->ListOpen(), ElementsAre(7));
  EXPECT_TRUE(absl::IsFailedPrecondition(ledger_->Append(7, 3, Run(3, 1))));
  const ledger::BatchView view = ledger_->View(7, 2).value();
  EXPECT_EQ(view.batch.state, BatchState::kSealed);
  EXPECT_EQ(view.items.size(), 2u);
  ASSERT_TRUE(ledger_->MarkComplete(7, absl::FromUnixSeconds(9)).ok());
  Open();
  EXPECT_EQ(ledger_->Get(7)->state, BatchState::kComplete);
}

TEST_F(LedgerTest, CountsTheRecordsOfSeveralLinesOfABatch) {
  std::vector<ItemBoundary> items = Run(0, 4);
  items[1].multiline = {3, 7, {8, 9, 10}};
  items[3].multiline = {4, 40, {20, 21, 22, 23}};
  Batch batch;
  batch.number = 7;
  batch.request_id = "r";
  ASSERT_TRUE(ledger_->Create(batch, {items[0], items[1]}).ok());
  ASSERT_TRUE(ledger_->Append(7, 2, {items[2], items[3]}).ok());
  Open();
  EXPECT_EQ(ledger_->Get(7)->multiline, (base::MultilineRecords{7, 47, {8, 9, 10, 20, 21}}));
}

TEST_F(LedgerTest, RecordsABatchWithItsContentAndItsFirstItems) {
  Batch batch;
  batch.number = 7;
  batch.request_id = "r";
  batch.content = "key\nk1\n";
  ASSERT_TRUE(ledger_->Create(batch, Run(0, 3)).ok());
  Create(8, "none");
  Open();
  EXPECT_EQ(ledger_->Get(7)->content, batch.content);
  EXPECT_EQ(ledger_->Get(7)->items, 3u);
  EXPECT_EQ(ledger_->Get(7)->source_bytes, 300u);
  EXPECT_EQ(ledger_->Items(7, 0, 10)->size(), 3u);
  EXPECT_EQ(ledger_->Items(8, 0, 10)->size(), 0u);
  ASSERT_TRUE(ledger_->Append(7, 3, Run(3, 2)).ok());
  EXPECT_EQ(ledger_->Items(7, 0, 10)->size(), 5u);
}

TEST_F(LedgerTest, ForgetsTheContentOfABatchThatIsOver) {
  EXPECT_TRUE(absl::IsNotFound(ledger_->DropContent(7)));
  Batch batch;
  batch.number = 7;
  batch.request_id = "r";
  batch.content = "key\nk1\n";
  batch.source_content = base::Fingerprint(batch.content);
  ASSERT_TRUE(ledger_->Create(batch).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(ledger_->DropContent(7)));
  ASSERT_TRUE(ledger_->Cancel(7, absl::FromUnixSeconds(1), "done with").ok());
  ASSERT_TRUE(ledger_->DropContent(7).ok());
  ASSERT_TRUE(ledger_->DropContent(7).ok());
  Open();
  EXPECT_EQ(ledger_->Get(7)->content, "");
  EXPECT_EQ(ledger_->Get(7)->source_content, batch.source_content);
  EXPECT_EQ(ledger_->Get(7)->cancel_reason, "done with");
}

// The sweep deletes the uploaded content of the batches for which DropContent answers OK.
TEST_F(LedgerTest, KeepsABatchThatWasReopenedFromLosingContentThatIsElsewhere) {
  Create(7);
  ASSERT_TRUE(ledger_->Seal(7, 0).ok());
  ASSERT_TRUE(ledger_->MarkComplete(7, absl::FromUnixSeconds(9)).ok());
  EXPECT_TRUE(ledger_->DropContent(7).ok());
  ASSERT_TRUE(ledger_->Reopen(7).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(ledger_->DropContent(7)));
}

TEST_F(LedgerTest, KeepsHowFarABatchReachesIntoItsQueueUntilARedrive) {
  Create(7, "first");
  ASSERT_TRUE(ledger_->Append(7, 0, Run(0, 3)).ok());
  const std::vector<PutMark> marks = {{"life 1", 5}, {}};
  ASSERT_TRUE(ledger_->MarkEnqueued(7, 2, marks).ok());
  ASSERT_TRUE(ledger_->MarkEnqueued(7, 3, {}).ok());
  Open();
  EXPECT_EQ(ledger_->Get(7)->put_marks, marks);
  ASSERT_TRUE(ledger_->Seal(7, 300).ok());
  EXPECT_EQ(ledger_->Get(7)->put_marks, marks);
  ASSERT_TRUE(ledger_->Reopen(7).ok());
  EXPECT_TRUE(ledger_->Get(7)->put_marks.empty());
  ASSERT_TRUE(ledger_->MarkEnqueued(7, 3, marks).ok());
  ASSERT_TRUE(ledger_->MarkComplete(7, absl::FromUnixSeconds(1)).ok());
  EXPECT_EQ(ledger_->Get(7)->put_marks, marks);
  ASSERT_TRUE(ledger_->Reopen(7).ok());
  EXPECT_TRUE(ledger_->Get(7)->put_marks.empty());
}

TEST_F(LedgerTest, KeepsEverythingAcrossARestart) {
  Create(7, "first");
  ASSERT_TRUE(ledger_->Append(7, 0, Run(0, 3)).ok());
  ASSERT_TRUE(ledger_->MarkEnqueued(7, 2, {}).ok());
  Open();
  const auto batch = ledger_->FindByRequestId("first");
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->number, 7u);
  EXPECT_EQ(batch->job_definition, "name: retail");
  EXPECT_EQ(batch->source_header, base::Fingerprint("header"));
  EXPECT_EQ(batch->created, absl::FromUnixMillis(1234567));
  EXPECT_EQ(batch->sla, absl::Minutes(5));
  EXPECT_EQ(batch->state, BatchState::kOpen);
  EXPECT_EQ(batch->items, 3u);
  EXPECT_EQ(batch->transactions, 15u);
  EXPECT_EQ(batch->source_bytes, 300u);
  EXPECT_EQ(batch->enqueued_items, 2u);
}

TEST_F(LedgerTest, AnswersItemsFromAnyIndexAcrossRuns) {
  Create(1);
  Create(2, "other");
  ASSERT_TRUE(ledger_->Append(1, 0, Run(0, 4)).ok());
  ASSERT_TRUE(ledger_->Append(1, 4, Run(4, 4)).ok());
  ASSERT_TRUE(ledger_->Append(2, 0, Run(0, 1)).ok());
  const auto items = ledger_->Items(1, 3, 3);
  ASSERT_TRUE(items.ok()) << items.status();
  ASSERT_EQ(items->size(), 3u);
  EXPECT_EQ((*items)[0].offset, 300u);
  EXPECT_TRUE((*items)[0].oversized);
  EXPECT_EQ((*items)[2].content, base::Fingerprint("item 5"));
  EXPECT_EQ(ledger_->Items(1, 8, 10)->size(), 0u);
  EXPECT_EQ(ledger_->Items(1, 0, 100)->size(), 8u);
}

TEST_F(LedgerTest, ReadsTheItemsOfABatchWithoutWhatIsDeletedOfOthers) {
  constexpr uint64_t kKept = 50, kWithoutItems = 100;
  for (uint64_t number = 1; number < kWithoutItems; ++number) {
    Create(number);
    ASSERT_TRUE(ledger_->Append(number, 0, Run(0, 2)).ok());
    Complete(number);
  }
  Create(kWithoutItems);
  for (uint64_t number = 1; number < kWithoutItems; ++number) {
    ASSERT_TRUE(ledger_->BeginToDropItems(number).ok());
    if (number == kKept) continue;
    ASSERT_TRUE(ledger_->Delete(number).ok());
  }
  EXPECT_LT(DeletedPassed([&] { EXPECT_EQ(ledger_->Items(kKept, 0, 10)->size(), 2u); }), 5u);
  EXPECT_LT(DeletedPassed([&] { EXPECT_EQ(ledger_->Items(kKept, 0, 2)->size(), 2u); }), 5u);
  EXPECT_LT(DeletedPassed([&] { EXPECT_EQ(ledger_->Items(kWithoutItems, 0, 1)->size(), 0u); }), 5u);
  EXPECT_LT(DeletedPassed([&] { EXPECT_TRUE(ledger_->DropItems(kKept).ok()); }), 5u);
  EXPECT_EQ(ledger_->Items(kKept, 0, 10)->size(), 0u);
}

TEST_F(LedgerTest, RefusesItemsThatDoNotFollow) {
  Create(1);
  ASSERT_TRUE(ledger_->Append(1, 0, Run(0, 2)).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(ledger_->Append(1, 1, Run(1, 1))));
  EXPECT_TRUE(absl::IsFailedPrecondition(ledger_->Append(1, 3, Run(3, 1))));
  ASSERT_TRUE(ledger_->Seal(1, 250).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(ledger_->Append(1, 2, Run(2, 1))));
}

TEST_F(LedgerTest, IsCompleteOnlyOnceSealed) {
  Create(1);
  EXPECT_TRUE(absl::IsFailedPrecondition(ledger_->MarkComplete(1, absl::UnixEpoch())));
  ASSERT_TRUE(ledger_->Seal(1, 0).ok());
  ASSERT_TRUE(ledger_->MarkComplete(1, absl::FromUnixSeconds(9)).ok());
  EXPECT_EQ(ledger_->Get(1)->state, BatchState::kComplete);
  EXPECT_EQ(ledger_->Get(1)->completed, absl::FromUnixSeconds(9));
  ASSERT_TRUE(ledger_->Reopen(1).ok());
  EXPECT_EQ(ledger_->Get(1)->state, BatchState::kSealed);
}

TEST_F(LedgerTest, ABatchIsCancelledForGoodUnlessItIsComplete) {
  Create(1);
  ASSERT_TRUE(ledger_->Cancel(1, absl::FromUnixSeconds(9), "unwanted").ok());
  ASSERT_TRUE(ledger_->Cancel(1, absl::FromUnixSeconds(10), "again").ok());
  EXPECT_EQ(ledger_->Get(1)->state, BatchState::kCancelled);
  EXPECT_EQ(ledger_->Get(1)->cancel_reason, "unwanted");
  EXPECT_EQ(ledger_->Get(1)->completed, absl::FromUnixSeconds(9));
  EXPECT_TRUE(absl::IsFailedPrecondition(ledger_->MarkComplete(1, absl::FromUnixSeconds(11))));
  EXPECT_TRUE(absl::IsFailedPrecondition(ledger_->Reopen(1)));
  EXPECT_TRUE(absl::IsFailedPrecondition(ledger_->Append(1, 0, {ledger::ItemBoundary{}})));
  Create(2);
  ASSERT_TRUE(ledger_->Seal(2, 0).ok());
  ASSERT_TRUE(ledger_->MarkComplete(2, absl::FromUnixSeconds(9)).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(ledger_->Cancel(2, absl::FromUnixSeconds(10), "")));
}

TEST_F(LedgerTest, DecidesAloneThatABatchIsCancelledOnlyWhileItIsOpen) {
  for (uint64_t number = 1; number <= 3; ++number) Create(number);
  const absl::Time when = absl::FromUnixSeconds(9);
  ASSERT_TRUE(ledger_->CancelIfOpen(1, when, "unwanted").ok());
  ASSERT_TRUE(ledger_->CancelIfOpen(1, when, "again").ok());
  EXPECT_EQ(ledger_->Get(1)->state, BatchState::kCancelled);
  EXPECT_EQ(ledger_->Get(1)->cancel_reason, "unwanted");
  ASSERT_TRUE(ledger_->Seal(2, 0).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(ledger_->CancelIfOpen(2, when, "")));
  EXPECT_EQ(ledger_->Get(2)->state, BatchState::kSealed);
  ASSERT_TRUE(ledger_->Seal(3, 0).ok());
  ASSERT_TRUE(ledger_->MarkComplete(3, when).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(ledger_->CancelIfOpen(3, when, "")));
}

TEST_F(LedgerTest, ADisownedBatchIsCancelledForGood) {
  Create(1);
  ASSERT_TRUE(ledger_->Seal(1, 0).ok());
  ASSERT_TRUE(ledger_->Disown(1, absl::FromUnixSeconds(9), "another's").ok());
  ASSERT_TRUE(ledger_->Disown(1, absl::FromUnixSeconds(10), "again").ok());
  EXPECT_EQ(ledger_->Get(1)->state, BatchState::kCancelled);
  EXPECT_EQ(ledger_->Get(1)->cancel_reason, "another's");
  EXPECT_TRUE(ledger_->Get(1)->disowned);
  Create(2);
  ASSERT_TRUE(ledger_->Cancel(2, absl::FromUnixSeconds(9), "unwanted").ok());
  EXPECT_FALSE(ledger_->Get(2)->disowned);
  ASSERT_TRUE(ledger_->Disown(2, absl::FromUnixSeconds(10), "another's").ok());
  EXPECT_TRUE(ledger_->Get(2)->disowned);
}

TEST_F(LedgerTest, SaysInWordsThatThereIsNoSuchBatch) {
  Create(1);
  EXPECT_EQ(ledger_->Get(99).status(), absl::NotFoundError("there is no batch 99"));
  EXPECT_EQ(ledger_->Cancel(99, absl::UnixEpoch(), ""),
            absl::NotFoundError("there is no batch 99"));
}

TEST_F(LedgerTest, RefusesANumberThatIsTaken) {
  Create(1);
  Batch again;
  again.number = 1;
  EXPECT_TRUE(absl::IsAlreadyExists(ledger_->Create(again)));
}

TEST_F(LedgerTest, CountsRefillsDurably) {
  Create(1);
  EXPECT_EQ(*ledger_->BeginRefill(1), 1u);
  Open();
  EXPECT_EQ(*ledger_->BeginRefill(1), 2u);
}

using LedgerDeathTest = LedgerTest;

TEST_F(LedgerDeathTest, NotesNoItemAsEnqueuedThatItHasNotRecorded) {
  Create(7);
  ASSERT_TRUE(ledger_->Append(7, 0, Run(0, 3)).ok());
  ASSERT_TRUE(ledger_->MarkEnqueued(7, 3, {}).ok());
  EXPECT_DEATH(ledger_->MarkEnqueued(7, 4, {}).IgnoreError(), "batch 7: enqueued 4, items 3");
}

TEST_F(LedgerDeathTest, RecordsANewBatchOnlyAtItsBeginning) {
  Batch sealed;
  sealed.number = 7;
  sealed.state = BatchState::kSealed;
  EXPECT_DEATH(ledger_->Create(sealed).IgnoreError(), "batch 7 is sealed");
}

TEST_F(LedgerTest, WhatWasAcknowledgedSurvivesAPowerCut) {
  muster::rocksdb::testing::FaultyEnv env;
  ledger_ = *RocksDbBatchLedger::Open(dir_ / "before", {.env = &env});
  Create(7);
  ASSERT_TRUE(ledger_->Append(7, 0, Run(0, 3)).ok());
  ASSERT_TRUE(ledger_->Seal(7, 300).ok());
  env.CopyAsAfterPowerCut(dir_ / "before", dir_ / "after");
  ledger_ = *RocksDbBatchLedger::Open(dir_ / "after", {});
  const auto batch = ledger_->Get(7);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->state, BatchState::kSealed);
  EXPECT_EQ(batch->items, 3u);
  EXPECT_EQ(ledger_->Items(7, 0, 10)->size(), 3u);
}

TEST_F(LedgerTest, NamesTheBatchWhoseRecordIsDamagedAndServesTheRest) {
  Create(1, "one");
  Create(2, "two");
  Overwrite(1, 1, "garbage!!");
  const absl::Status status = ledger_->Get(1).status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("batch 1"));
  EXPECT_TRUE(ledger_->Get(2).ok());
}

TEST_F(LedgerTest, ListsTheRestAndNamesTheDamaged) {
  for (const uint64_t number : {1, 2, 3}) Create(number);
  Overwrite(0, 2, "garbage!!");
  const base::LogCapture log;
  EXPECT_EQ(Listed(), "3 open, 1 open");
  EXPECT_THAT(log.lines(), ::testing::Contains(HasSubstr("batch=2")));
}

TEST_F(LedgerTest, RefusesARecordThatLiesUnderAnotherBatchsKey) {
  Create(1);
  Create(2);
  Batch stray;
  stray.number = 2;
  Overwrite(0, 1, EncodeRecord(stray));
  const absl::Status status = ledger_->Get(1).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("that of batch 2"));
}

}  // namespace
}  // namespace muster::ledger::rocksdb
