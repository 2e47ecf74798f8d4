// SPDX-License-Identifier: Apache-2.0

// Finding batches: by request id, in pages, and those that are open, due or the newest of a job.

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/ledger/rocksdb/batch_codec.h"
#include "muster/ledger/rocksdb/ledger_fixture.h"
#include "rocksdb/db.h"
#include "tests/fakes/rocksdb/faulty_env.h"

namespace muster::ledger::rocksdb {
namespace {

using ledger::Batch;
using ledger::BatchState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using BatchLookupTest = LedgerFixture;

TEST_F(BatchLookupTest, ARequestIdFindsItsNewestBatch) {
  Create(1, "same");
  Create(2, "same");
  EXPECT_EQ(ledger_->FindByRequestId("same")->number, 2u);
  EXPECT_TRUE(absl::IsNotFound(ledger_->FindByRequestId("never").status()));
}

TEST_F(BatchLookupTest, ARequestIdFindsTheNewestBatchOfEachTenant) {
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
TEST_F(BatchLookupTest, ARequestIdFindsTheBatchBeforeItsNewestOnceThatIsDeleted) {
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
TEST_F(BatchLookupTest, ARequestIdFindsTheNewestBatchThatIsLeftWhicheverAreDeleted) {
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

TEST_F(BatchLookupTest, ListsBatchesInPagesWithTheNewestFirst) {
  for (const uint64_t number : {1, 2, 4, 5}) Create(number);
  Complete(4);
  EXPECT_EQ(Listed(UINT64_MAX, 2), "5 open, 4 complete, more below 4");
  EXPECT_EQ(Listed(4, 2), "2 open, 1 open");
  EXPECT_EQ(Listed(3, 1), "2 open, more below 2");
  EXPECT_EQ(Listed(1), "");
  EXPECT_EQ(ledger_->HighestNumber().value(), 5u);
}

TEST_F(BatchLookupTest, ListsBatchesWithoutWhatIsLong) {
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

TEST_F(BatchLookupTest, APageReadsNoOtherBatch) {
  for (uint64_t number = 1; number <= 20; ++number) Create(number);
  const uint64_t of_twenty = BytesRead([&] { Listed(UINT64_MAX, 10); });
  for (uint64_t number = 21; number <= 500; ++number) Create(number);
  const uint64_t of_thousands = BytesRead([&] { Listed(UINT64_MAX, 10); });
  EXPECT_GT(of_twenty, 10 * sizeof(uint64_t));
  // Numbers of batches take a byte more when they are large.
  EXPECT_LT(of_thousands, of_twenty + 100);
}

TEST_F(BatchLookupTest, KnowsWhichBatchesAreOpen) {
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

TEST_F(BatchLookupTest, FindsTheNextOpenBatchOfAJobWithoutReadingTheOthers) {
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

TEST_F(BatchLookupTest, AnOpeningReadsNoBatchThatHasEnded) {
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
TEST_F(BatchLookupTest, FindsOpenBatchesThatOthersHaveWritten) {
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

TEST_F(BatchLookupTest, KnowsWhatIsDueInALedgerOfAnOlderMuster) {
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

TEST_F(BatchLookupTest, BlobsAreDueSoonUntilTheyAreDeletedAndAgainAfterARedrive) {
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
TEST_F(BatchLookupTest, ABatchThatCannotBeReadForAWhileStaysDue) {
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
TEST_F(BatchLookupTest, ALookForWhatIsDueWritesNothing) {
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

TEST_F(BatchLookupTest, AClaimIsDueUntilItIsReleased) {
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

TEST_F(BatchLookupTest, FindsTheNewestBatchOfAJobWithoutReadingTheOthers) {
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
TEST_F(BatchLookupTest, FindsTheNewestBatchOfAJobInALedgerOfAnOlderMuster) {
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
TEST_F(BatchLookupTest, EveryWriteKeepsTheIndexSound) {
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

TEST_F(BatchLookupTest, DeletesABatchOnlyWhenItIsOverForGood) {
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

TEST_F(BatchLookupTest, AReaderFindsOpenBatchesOfAnOlderMuster) {
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

}  // namespace
}  // namespace muster::ledger::rocksdb
