// SPDX-License-Identifier: Apache-2.0
#include "muster/ledger/rocksdb/rocksdb_batch_ledger.h"

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/failpoint.h"
#include "muster/ledger/rocksdb/batch_codec.h"
#include "muster/os/temp_dir.h"
#include "muster/rocksdb/checked_value.h"
#include "rocksdb/db.h"
#include "rocksdb/perf_context.h"
#include "rocksdb/perf_level.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/rocksdb/faulty_env.h"

namespace muster::ledger::rocksdb {
namespace {

using ledger::Batch;
using ledger::BatchState;
using ledger::ItemBoundary;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LedgerTest : public ::testing::Test {
 protected:
  LedgerTest() { Open(); }

  void Open() {
    ledger_.reset();
    auto opened = RocksDbBatchLedger::Open(dir_.path(), {});
    ASSERT_TRUE(opened.ok()) << opened.status();
    ledger_ = *std::move(opened);
  }

  // Puts `value` in the place of a batch's record, directly in the database.
  void Overwrite(size_t family, uint64_t number, const std::string& value) {
    ledger_.reset();
    {
      auto database = muster::rocksdb::Database::Open(
          dir_.path(), {.families = {{"batches"}, {"progress"}, {"items"}, {"requests"}}});
      ASSERT_TRUE(database.ok()) << database.status();
      std::string key;
      muster::rocksdb::AppendKey(number, &key);
      ASSERT_TRUE((*database)->db()->Put({}, (*database)->family(family), key, value).ok());
    }
    Open();
  }

  void Create(uint64_t number, const std::string& request_id = "r") {
    Batch batch;
    batch.number = number;
    batch.request_id = request_id;
    batch.job = "retail";
    batch.job_definition = "name: retail";
    batch.source_path = "/in.csv";
    batch.source_header = base::Fingerprint("header");
    batch.created = absl::FromUnixMillis(1234567);
    batch.sla = absl::Minutes(5);
    ASSERT_TRUE(ledger_->Create(batch).ok());
  }

  void Remove(uint64_t number) {
    ASSERT_TRUE(ledger_->Cancel(number, absl::FromUnixSeconds(9), "").ok());
    ASSERT_TRUE(ledger_->BeginToDropItems(number).ok());
    ASSERT_TRUE(ledger_->Delete(number).ok());
  }

  static std::vector<ItemBoundary> Run(uint64_t first, uint64_t count) {
    std::vector<ItemBoundary> items;
    for (uint64_t i = first; i < first + count; ++i) {
      items.push_back({i * 100, 100, static_cast<int64_t>(i) * 5 + 2, 5,
                       base::Fingerprint(absl::StrCat("item ", i)), i % 7 == 3});
    }
    return items;
  }

  void Complete(uint64_t number) {
    ASSERT_TRUE(ledger_->Seal(number, 0).ok());
    ASSERT_TRUE(ledger_->MarkComplete(number, absl::FromUnixSeconds(9)).ok());
  }

  // Numbers and states of a page.
  std::string Listed(uint64_t below = UINT64_MAX, size_t max = 100) {
    const auto page = ledger_->ListBelow(below, max);
    EXPECT_TRUE(page.ok()) << page.status();
    std::vector<std::string> batches;
    for (const Batch& batch : page->batches) {
      batches.push_back(absl::StrCat(batch.number, " ", BatchStateName(batch.state)));
    }
    if (page->next_below != 0) batches.push_back(absl::StrCat("more below ", page->next_below));
    return absl::StrJoin(batches, ", ");
  }

  // Bytes of keys and values that `call` reads.
  static uint64_t BytesRead(const std::function<void()>& call) {
    ::rocksdb::SetPerfLevel(::rocksdb::PerfLevel::kEnableCount);
    ::rocksdb::get_perf_context()->Reset();
    call();
    ::rocksdb::SetPerfLevel(::rocksdb::PerfLevel::kDisable);
    const ::rocksdb::PerfContext& read = *::rocksdb::get_perf_context();
    return read.get_read_bytes + read.iter_read_bytes;
  }

  // Deleted records that iterators of `call` pass.
  static uint64_t DeletedPassed(const std::function<void()>& call) {
    ::rocksdb::SetPerfLevel(::rocksdb::PerfLevel::kEnableCount);
    ::rocksdb::get_perf_context()->Reset();
    call();
    ::rocksdb::SetPerfLevel(::rocksdb::PerfLevel::kDisable);
    return ::rocksdb::get_perf_context()->internal_delete_skipped_count;
  }

  const os::TempDir dir_;
  std::unique_ptr<RocksDbBatchLedger> ledger_;
};

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

TEST_F(LedgerTest, ARequestIdFindsItsNewestBatch) {
  Create(1, "same");
  Create(2, "same");
  EXPECT_EQ(ledger_->FindByRequestId("same")->number, 2u);
  EXPECT_TRUE(absl::IsNotFound(ledger_->FindByRequestId("never").status()));
}

TEST_F(LedgerTest, ARequestIdFindsTheNewestBatchOfEachTenant) {
  Batch batch;
  batch.request_id = "same";
  const auto create = [&](uint64_t number, const std::string& tenant) {
    batch.number = number;
    batch.tenant = tenant;
    ASSERT_TRUE(ledger_->Create(batch).ok());
  };
  create(1, "acme");  // as a muster wrote it that knew one batch of an id
  EXPECT_EQ(ledger_->FindByRequest("acme", "same")->number, 1u);
  EXPECT_TRUE(absl::IsNotFound(ledger_->FindByRequest("", "same").status()));
  create(2, "globex");
  create(3, "");
  create(4, "globex");
  for (int times = 0; times < 2; ++times) {
    EXPECT_EQ(ledger_->FindByRequest("acme", "same")->number, 1u);
    EXPECT_EQ(ledger_->FindByRequest("globex", "same")->number, 4u);
    EXPECT_EQ(ledger_->FindByRequest("", "same")->number, 3u);
    EXPECT_EQ(ledger_->FindByRequestId("same")->number, 4u);
    EXPECT_TRUE(absl::IsNotFound(ledger_->FindByRequest("a", "cmesame").status()));
    Open();
  }
  for (const uint64_t number : {4, 1}) Remove(number);
  EXPECT_TRUE(absl::IsNotFound(ledger_->FindByRequest("acme", "same").status()));
  EXPECT_EQ(ledger_->FindByRequest("globex", "same")->number, 2u);
  EXPECT_EQ(ledger_->FindByRequest("", "same")->number, 3u);
}

// `muster run` counted its input once more, beside the batch that was done, when the batch of its
// last --new was deleted.
TEST_F(LedgerTest, ARequestIdFindsTheBatchBeforeItsNewestOnceThatIsDeleted) {
  Create(1, "same");
  Create(2, "same");
  Remove(2);
  EXPECT_EQ(ledger_->FindByRequest("", "same")->number, 1u);
  Open();
  EXPECT_EQ(ledger_->FindByRequest("", "same")->number, 1u);
  Create(3, "same");
  EXPECT_EQ(ledger_->FindByRequest("", "same")->number, 3u);
  Remove(1);
  EXPECT_EQ(ledger_->FindByRequest("", "same")->number, 3u);
  Remove(3);
  EXPECT_TRUE(absl::IsNotFound(ledger_->FindByRequest("", "same").status()));
}

// Of three batches it found the second once the third was deleted, and after that none.
TEST_F(LedgerTest, ARequestIdFindsTheNewestBatchThatIsLeftWhicheverAreDeleted) {
  for (const uint64_t number : {1, 2, 3, 4, 5}) Create(number, "same");
  Create(6, "same and more");
  Remove(5);
  EXPECT_EQ(ledger_->FindByRequest("", "same")->number, 4u);
  Remove(3);
  Remove(4);
  Open();
  EXPECT_EQ(ledger_->FindByRequest("", "same")->number, 2u);
  Remove(2);
  EXPECT_EQ(ledger_->FindByRequest("", "same")->number, 1u);
  Remove(1);
  EXPECT_TRUE(absl::IsNotFound(ledger_->FindByRequest("", "same").status()));
}

TEST_F(LedgerTest, ListsBatchesInPagesWithTheNewestFirst) {
  for (const uint64_t number : {1, 2, 4, 5}) Create(number);
  Complete(4);
  EXPECT_EQ(Listed(UINT64_MAX, 2), "5 open, 4 complete, more below 4");
  EXPECT_EQ(Listed(4, 2), "2 open, 1 open");
  EXPECT_EQ(Listed(3, 1), "2 open, more below 2");
  EXPECT_EQ(Listed(1), "");
  EXPECT_EQ(ledger_->HighestNumber().value(), 5u);
}

TEST_F(LedgerTest, ListsBatchesWithoutWhatIsLong) {
  Batch batch;
  batch.number = 7;
  batch.request_id = "r";
  batch.job_definition = "name: retail";
  batch.content = "key\nk1\n";
  ASSERT_TRUE(ledger_->Create(batch).ok());
  const Batch listed = ledger_->ListBelow(UINT64_MAX, 1)->batches.at(0);
  EXPECT_EQ(listed.request_id, "r");
  EXPECT_EQ(listed.job_definition, "");
  EXPECT_EQ(listed.content, "");
}

TEST_F(LedgerTest, APageReadsNoOtherBatch) {
  for (uint64_t number = 1; number <= 20; ++number) Create(number);
  const uint64_t of_twenty = BytesRead([&] { Listed(UINT64_MAX, 10); });
  for (uint64_t number = 21; number <= 500; ++number) Create(number);
  const uint64_t of_thousands = BytesRead([&] { Listed(UINT64_MAX, 10); });
  EXPECT_GT(of_twenty, 10 * sizeof(uint64_t));
  // Numbers of batches take a byte more when they are large.
  EXPECT_LT(of_thousands, of_twenty + 100);
}

TEST_F(LedgerTest, KnowsWhichBatchesAreOpen) {
  for (const uint64_t number : {1, 2, 3, 4, 5}) Create(number);
  ASSERT_TRUE(ledger_->Seal(2, 0).ok());
  Complete(3);
  Complete(4);
  ASSERT_TRUE(ledger_->Reopen(4).ok());
  ASSERT_TRUE(ledger_->Cancel(5, absl::FromUnixSeconds(9), "").ok());
  EXPECT_THAT(ledger_->ListOpen().value(), ElementsAre(1, 2, 4));
  Open();
  EXPECT_THAT(ledger_->ListOpen().value(), ElementsAre(1, 2, 4));
}

TEST_F(LedgerTest, FindsTheNextOpenBatchOfAJobWithoutReadingTheOthers) {
  constexpr uint64_t kBatches = 200;
  Batch batch;
  for (batch.number = 1; batch.number <= kBatches; ++batch.number) {
    batch.request_id = absl::StrCat("r", batch.number);
    batch.job = batch.number == 3 || batch.number == kBatches ? "ordered" : "retail";
    ASSERT_TRUE(ledger_->Create(batch).ok());
  }
  for (int times = 0; times < 2; ++times) {
    EXPECT_EQ(ledger_->NextOpenOfJob("ordered", 0).value(), 3u);
    EXPECT_EQ(ledger_->NextOpenOfJob("ordered", 3).value(), 3u);
    EXPECT_EQ(ledger_->NextOpenOfJob("ordered", 4).value(), kBatches);
    EXPECT_EQ(ledger_->NextOpenOfJob("ordered", kBatches + 1).value(), 0u);
    EXPECT_EQ(ledger_->NextOpenOfJob("none", 0).value(), 0u);
    EXPECT_EQ(BytesRead([&] { EXPECT_TRUE(ledger_->NextOpenOfJob("none", 0).ok()); }), 0u);
    Open();
  }
  ASSERT_TRUE(ledger_->Cancel(3, absl::FromUnixSeconds(9), "").ok());
  EXPECT_EQ(ledger_->NextOpenOfJob("ordered", 0).value(), kBatches);
}

TEST_F(LedgerTest, AnOpeningReadsNoBatchThatHasEnded) {
  Create(1, "open");
  Create(2, "ended");
  Complete(2);
  const uint64_t with_one = BytesRead([&] { Open(); });
  for (uint64_t number = 3; number <= 200; ++number) {
    Create(number, absl::StrCat(number));
    Complete(number);
  }
  EXPECT_EQ(BytesRead([&] { Open(); }), with_one);
  EXPECT_THAT(ledger_->ListOpen().value(), ElementsAre(1));
}

// The changes of an older muster, which knows of no index, or of a repair.
TEST_F(LedgerTest, FindsOpenBatchesThatOthersHaveWritten) {
  for (const uint64_t number : {1, 2, 3}) Create(number);
  Complete(2);
  Batch changed = *ledger_->Get(2);
  changed.state = BatchState::kSealed;
  Overwrite(kProgress, 2, EncodeProgress(changed));
  changed.state = BatchState::kCancelled;
  Overwrite(kProgress, 3, EncodeProgress(changed));
  EXPECT_THAT(ledger_->ListOpen().value(), ElementsAre(1, 2));
  Open();
  EXPECT_THAT(ledger_->ListOpen().value(), ElementsAre(1, 2));
}

TEST_F(LedgerTest, KnowsWhatIsDueInALedgerOfAnOlderMuster) {
  const absl::Time end = absl::FromUnixSeconds(9);
  for (const uint64_t number : {1, 2, 3}) Create(number);
  Complete(1);
  ASSERT_TRUE(ledger_->NoteBlobsDeleted(1, end).ok());
  Batch changed = *ledger_->Get(2);
  changed.state = BatchState::kComplete;
  changed.blobs_deleted = true;
  changed.completed = end + absl::Hours(1);
  Overwrite(kProgress, 2, EncodeProgress(changed));
  EXPECT_THAT(ledger_->ListDue(end + absl::Hours(23), 10).value(), IsEmpty());
  EXPECT_THAT(ledger_->ListDue(end + absl::Hours(24), 10).value(), ElementsAre(1));
  Open();
  EXPECT_THAT(ledger_->ListDue(end + absl::Hours(25), 10).value(), ElementsAre(1, 2));
  ASSERT_TRUE(ledger_->DropContent(1).ok());
  EXPECT_THAT(ledger_->ListDue(end + absl::Hours(25), 10).value(), ElementsAre(2));
  Open();
  EXPECT_THAT(ledger_->ListDue(end + absl::Hours(24 * 30), 10).value(), ElementsAre(2, 1));
}

TEST_F(LedgerTest, BlobsAreDueSoonUntilTheyAreDeletedAndAgainAfterARedrive) {
  const absl::Time end = absl::FromUnixSeconds(9);
  Create(1);
  EXPECT_TRUE(ledger_->NoteBlobsDeleted(1, end).ok());
  Complete(1);
  EXPECT_FALSE(ledger_->Get(1)->blobs_deleted) << "it had not ended";
  EXPECT_THAT(ledger_->ListDue(end + absl::Seconds(59), 10).value(), IsEmpty());
  EXPECT_THAT(ledger_->ListDue(end + absl::Minutes(1), 10).value(), ElementsAre(1));
  ASSERT_TRUE(ledger_->NoteBlobsDeleted(1, end).ok());
  Open();
  EXPECT_TRUE(ledger_->Get(1)->blobs_deleted);
  EXPECT_THAT(ledger_->ListDue(end + absl::Hours(23), 10).value(), IsEmpty());
  ASSERT_TRUE(ledger_->Reopen(1).ok());
  ASSERT_TRUE(ledger_->MarkComplete(1, end + absl::Hours(1)).ok());
  ASSERT_TRUE(ledger_->NoteBlobsDeleted(1, end).ok());
  EXPECT_FALSE(ledger_->Get(1)->blobs_deleted) << "those were of its first end";
  EXPECT_THAT(ledger_->ListDue(end + absl::Hours(2), 10).value(), ElementsAre(1));
}

// A repair alone, which makes the index anew, would have led to it again.
TEST_F(LedgerTest, ABatchThatCannotBeReadForAWhileStaysDue) {
  const absl::Time end = absl::FromUnixSeconds(9);
  Create(1);
  Complete(1);
  ledger_.reset();
  muster::rocksdb::testing::FaultyEnv env;
  ledger_ = *RocksDbBatchLedger::Open(dir_.path(), {.env = &env});
  EXPECT_THAT(ledger_->ListDue(end, 10).value(), IsEmpty()) << "the index is in memory now";
  env.fail_reads = true;
  EXPECT_TRUE(absl::IsUnavailable(ledger_->Get(1).status()));
  EXPECT_THAT(ledger_->ListDue(end + absl::Minutes(1), 10).value(), ElementsAre(1));
  env.fail_reads = false;
  EXPECT_THAT(ledger_->ListDue(end + absl::Minutes(1), 10).value(), ElementsAre(1));
  EXPECT_TRUE(ledger_->Get(1).ok());
  ledger_.reset();  // before its files
}

// Each look wrote the entry of each due batch anew, for the batch has ended between microseconds.
TEST_F(LedgerTest, ALookForWhatIsDueWritesNothing) {
  const absl::Time end = absl::FromUnixSeconds(9) + absl::Nanoseconds(1);
  Create(1);
  ASSERT_TRUE(ledger_->Seal(1, 0).ok());
  ASSERT_TRUE(ledger_->MarkComplete(1, end).ok());
  const auto last_write = [&] {
    ledger_.reset();
    uint64_t number = 0;
    {
      const auto database =
          muster::rocksdb::Database::Open(dir_.path(), LedgerDatabase({})).value();
      number = database->db()->GetLatestSequenceNumber();
    }
    Open();
    return number;
  };
  const uint64_t before = last_write();
  EXPECT_THAT(ledger_->ListDue(end + absl::Hours(1), 10).value(), ElementsAre(1));
  EXPECT_EQ(last_write(), before);
}

TEST_F(LedgerTest, AClaimIsDueUntilItIsReleased) {
  const absl::Time end = absl::FromUnixSeconds(9);
  Batch batch;
  batch.number = 1;
  batch.request_id = "claimed";
  batch.request_claimed = true;
  ASSERT_TRUE(ledger_->Create(batch).ok());
  Complete(1);
  ASSERT_TRUE(ledger_->DropContent(1).ok());
  EXPECT_THAT(ledger_->ListDue(end + absl::Hours(24), 10).value(), ElementsAre(1));
  ASSERT_TRUE(ledger_->NoteRequestReleased(1).ok());
  EXPECT_THAT(ledger_->ListDue(end + absl::Hours(24), 10).value(), IsEmpty());
  EXPECT_THAT(ledger_->ListDue(end + absl::Hours(24 * 30), 10).value(), ElementsAre(1));
}

TEST_F(LedgerTest, FindsTheNewestBatchOfAJobWithoutReadingTheOthers) {
  Batch batch;
  const auto create = [&](uint64_t number, const std::string& job) {
    batch.number = number;
    batch.request_id = absl::StrCat("r", number);
    batch.job = job;
    ASSERT_TRUE(ledger_->Create(batch).ok());
  };
  for (uint64_t number = 1; number <= 200; ++number) create(number, number < 100 ? "a" : "ab");
  EXPECT_EQ(ledger_->FindNewestOfJob("a")->number, 99u);
  EXPECT_EQ(ledger_->FindNewestOfJob("ab")->number, 200u);
  for (const std::string never : {"", "b", "aa"}) {
    EXPECT_LT(BytesRead([&] {
                EXPECT_TRUE(absl::IsNotFound(ledger_->FindNewestOfJob(never).status())) << never;
              }),
              500u);
  }
  for (const uint64_t number : {99, 98}) {
    Complete(number);
    ASSERT_TRUE(ledger_->BeginToDropItems(number).ok());
    ASSERT_TRUE(ledger_->Delete(number).ok());
  }
  for (int times = 0; times < 2; ++times) {
    EXPECT_EQ(ledger_->FindNewestOfJob("a")->number, 97u);
    Open();
  }
}

// An older muster writes no job into the index, and takes none out.
TEST_F(LedgerTest, FindsTheNewestBatchOfAJobInALedgerOfAnOlderMuster) {
  Batch batch;
  batch.job = "a";
  for (batch.number = 1; batch.number <= 3; ++batch.number) {
    batch.request_id = absl::StrCat("r", batch.number);
    ASSERT_TRUE(ledger_->Create(batch).ok());
  }
  Batch moved = *ledger_->Get(2);
  moved.job = "b";
  Overwrite(kBatches, 2, EncodeRecord(moved));
  EXPECT_EQ(ledger_->FindNewestOfJob("b")->number, 2u);
  EXPECT_EQ(ledger_->FindNewestOfJob("a")->number, 3u);
  Open();
  EXPECT_LT(
      BytesRead([&] { EXPECT_TRUE(absl::IsNotFound(ledger_->FindNewestOfJob("never").status())); }),
      100u)
      << "it is written down";
}

// A write beside the index would have the next opening read every batch.
TEST_F(LedgerTest, EveryWriteKeepsTheIndexSound) {
  for (uint64_t number = 1; number <= 200; ++number) {
    Create(number, absl::StrCat(number));
    Complete(number);
  }
  Batch batch;
  batch.number = 201;
  batch.request_id = "claimed";
  batch.request_claimed = true;
  ASSERT_TRUE(ledger_->Create(batch).ok());
  const uint64_t sound = BytesRead([&] { Open(); });
  const std::vector<ledger::PutMark> marks = {{"in", 3}};
  const std::vector<std::function<absl::Status()>> writes = {
      [&] { return ledger_->Append(201, 0, Run(0, 3)); },
      [&] {
        return ledger_->RecordSealedContent(201, {300, base::Fingerprint("all")});
      },
      [&] { return ledger_->Seal(201, 300); },
      [&] { return ledger_->MarkEnqueued(201, 3, marks); },
      [&] { return ledger_->Reopen(201); },
      [&] { return ledger_->BeginRefill(201).status(); },
      [&] { return ledger_->MarkComplete(201, absl::FromUnixSeconds(9)); },
      [&] { return ledger_->NoteBlobsDeleted(201, absl::FromUnixSeconds(9)); },
      [&] { return ledger_->DropContent(201); },
      [&] { return ledger_->NoteRequestReleased(201); },
      [&] { return ledger_->BeginToDropItems(201); },
      [&] { return ledger_->DropItems(201); },
      [&] { return ledger_->Delete(201); },
  };
  for (size_t i = 0; i < writes.size(); ++i) {
    SCOPED_TRACE(absl::StrCat("write ", i));
    ASSERT_TRUE(writes[i]().ok());
    EXPECT_LT(BytesRead([&] { Open(); }), sound + 500);
  }
}

TEST_F(LedgerTest, DeletesABatchOnlyWhenItIsOverForGood) {
  Create(1);
  EXPECT_TRUE(absl::IsFailedPrecondition(ledger_->BeginToDropItems(1)));
  Complete(1);
  EXPECT_TRUE(absl::IsFailedPrecondition(ledger_->DropItems(1)));
  EXPECT_TRUE(absl::IsFailedPrecondition(ledger_->Delete(1)));
  ASSERT_TRUE(ledger_->BeginToDropItems(1).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(ledger_->Reopen(1)));
  Open();
  EXPECT_TRUE(absl::IsFailedPrecondition(ledger_->Reopen(1)));
  ASSERT_TRUE(ledger_->Delete(1).ok());
  EXPECT_TRUE(absl::IsNotFound(ledger_->Get(1).status()));
  Open();
  EXPECT_EQ(Listed(), "");
  EXPECT_EQ(ledger_->HighestNumber().value(), 1u);
}

TEST_F(LedgerTest, AReaderFindsOpenBatchesOfAnOlderMuster) {
  for (const uint64_t number : {1, 2}) Create(number);
  Batch changed = *ledger_->Get(2);
  changed.state = BatchState::kCancelled;
  ledger_.reset();
  {
    auto database = muster::rocksdb::Database::Open(dir_.path(), LedgerDatabase({}));
    ASSERT_TRUE((*database)
                    ->db()
                    ->Put({}, (*database)->family(kProgress), BatchKey(2), EncodeProgress(changed))
                    .ok());
  }
  const auto reader = RocksDbBatchLedger::Open(dir_.path(), {.read_only = true});
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_THAT((*reader)->ListOpen().value(), ElementsAre(1));
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
