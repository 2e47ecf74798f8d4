// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/submit/uploads.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/fingerprint.h"
#include "muster/base/mutex.h"
#include "muster/base/status.h"
#include "muster/os/temp_dir.h"
#include "services/initiator/submit/upload_syncer.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/initiator/broken_medium.h"
#include "tests/fakes/os/watched_disk.h"

namespace muster::initiator::submit {

namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class UploadTest : public ::testing::Test {
 protected:
  std::shared_ptr<Upload> Open() { return uploads_->Get(7).value(); }

  static absl::Status Add(Upload& upload, uint64_t ticket, uint64_t offset,
                          absl::string_view data) {
    MUSTER_RETURN_IF_ERROR(upload.Append(ticket, offset, data));
    return upload.Sync();
  }

  static std::string ReadAll(const Upload& upload, size_t bytes) {
    std::string text(bytes, '\0');
    const auto got = upload.Read(0, text.data(), bytes);
    EXPECT_TRUE(got.ok()) << got.status();
    text.resize(got.value_or(0));
    return text;
  }

  const os::TempDir dir_;
  const std::unique_ptr<Uploads> uploads_ = Uploads::Open(dir_ / "uploads").value();
};

TEST_F(UploadTest, GrowsByPiecesThatCanBeReadAtOnce) {
  const auto upload = Open();
  const uint64_t ticket = upload->TakeOver();
  ASSERT_TRUE(Add(*upload, ticket, 0, "first,").ok());
  EXPECT_EQ(upload->size(), input::kStillGrowing);
  EXPECT_EQ(ReadAll(*upload, 6), "first,");
  char byte = 0;
  EXPECT_TRUE(input::HasNotArrived(upload->Read(6, &byte, 1).status()));
  ASSERT_TRUE(Add(*upload, ticket, 6, "second").ok());
  ASSERT_TRUE(upload->Seal(ticket, 12, base::Fingerprint("first,second")).ok());
  EXPECT_EQ(upload->size(), 12);
  EXPECT_EQ(ReadAll(*upload, 100), "first,second");
}

TEST_F(UploadTest, IsReadAsFarAsItIsSynced) {
  const auto upload = Open();
  const uint64_t ticket = upload->TakeOver();
  ASSERT_TRUE(upload->Append(ticket, 0, "first,").ok());
  ASSERT_TRUE(upload->Append(ticket, 6, "second").ok());
  EXPECT_EQ(upload->size_so_far(), 12);
  EXPECT_EQ(upload->durable_size(), 0);
  char byte = 0;
  EXPECT_TRUE(input::HasNotArrived(upload->Read(0, &byte, 1).status()));
  ASSERT_TRUE(upload->Sync().ok());
  EXPECT_EQ(upload->durable_size(), 12);
  EXPECT_EQ(ReadAll(*upload, 12), "first,second");
}

TEST_F(UploadTest, IsSyncedWhenItIsSealed) {
  const auto upload = Open();
  const uint64_t ticket = upload->TakeOver();
  ASSERT_TRUE(upload->Append(ticket, 0, "all").ok());
  ASSERT_TRUE(upload->Seal(ticket, 3, base::Fingerprint("all")).ok());
  EXPECT_EQ(upload->durable_size(), 3);
}

// The bytes that a disk had changed were split and counted.
TEST_F(UploadTest, DoesNotReadWhatDidNotArrive) {
  const auto upload = Open();
  const std::string sent(2 * batch::kBlockBytes + 100, 's');
  ASSERT_TRUE(Add(*upload, upload->TakeOver(), 0, sent).ok());
  std::fstream file(ArrivingPath(upload->path()));
  file.seekp(batch::kBlockBytes + 50);
  file << 'x' << std::flush;
  char part[20];
  for (const uint64_t offset :
       {batch::kBlockBytes - 10, batch::kBlockBytes + 200, 2 * batch::kBlockBytes - 10}) {
    const absl::Status read = upload->Read(offset, part, sizeof(part)).status();
    EXPECT_TRUE(absl::IsDataLoss(read)) << offset << ": " << read;
    EXPECT_THAT(read.message(), HasSubstr("its bytes 262144 to 524288 are not those that arrived"));
  }
  std::string all(sent.size(), '\0');
  EXPECT_TRUE(absl::IsDataLoss(upload->Read(0, all.data(), all.size()).status()));
  EXPECT_TRUE(upload->Read(0, part, sizeof(part)).ok());
  EXPECT_TRUE(upload->Read(2 * batch::kBlockBytes + 1, part, sizeof(part)).ok());
  file.seekp(batch::kBlockBytes + 50);
  file << 's' << std::flush;
  EXPECT_EQ(ReadAll(*upload, sent.size()), sent);
}

TEST_F(UploadTest, KeepsForANewWriterWhatTheOldOneHadNotSynced) {
  const auto upload = Open();
  ASSERT_TRUE(upload->Append(upload->TakeOver(), 0, "first,").ok());
  const uint64_t ticket = upload->TakeOver();
  EXPECT_EQ(upload->durable_size(), 6);
  ASSERT_TRUE(Add(*upload, ticket, 6, "second").ok());
  EXPECT_TRUE(upload->Seal(ticket, 12, base::Fingerprint("first,second")).ok());
}

TEST_F(UploadTest, DropsWhatCouldNotBeSyncedAndLetsItBeSentAgain) {
  const auto upload = Open();
  const uint64_t ticket = upload->TakeOver();
  ASSERT_TRUE(Add(*upload, ticket, 0, "first,").ok());
  ASSERT_TRUE(upload->Append(ticket, 6, "second").ok());
  {
    const BrokenMedium broken(ArrivingPath(upload->path()));
    EXPECT_TRUE(absl::IsUnavailable(upload->Sync()));
  }
  // The disk works again, but it is unknown which bytes of the piece it has.
  EXPECT_TRUE(absl::IsUnavailable(upload->Sync()));
  EXPECT_TRUE(absl::IsUnavailable(upload->Append(ticket, 12, "third")));
  EXPECT_EQ(upload->durable_size(), 6);

  const uint64_t again = upload->TakeOver();
  EXPECT_EQ(upload->size_so_far(), 6);
  ASSERT_TRUE(Add(*upload, again, 6, "2nd").ok());
  EXPECT_TRUE(upload->Seal(again, 9, base::Fingerprint("first,2nd")).ok());
  EXPECT_EQ(std::filesystem::file_size(upload->path()), 9);
}

TEST_F(UploadTest, IsNotSealedWithWhatCouldNotBeSynced) {
  const auto upload = Open();
  const uint64_t ticket = upload->TakeOver();
  ASSERT_TRUE(Add(*upload, ticket, 0, "first,").ok());
  ASSERT_TRUE(upload->Append(ticket, 6, "second").ok());
  const auto fingerprint = base::Fingerprint("first,second");
  {
    const BrokenMedium broken(ArrivingPath(upload->path()));
    EXPECT_TRUE(absl::IsUnavailable(upload->Seal(ticket, 12, fingerprint)));
  }
  EXPECT_TRUE(absl::IsUnavailable(upload->Seal(ticket, 12, fingerprint)));
  EXPECT_FALSE(upload->sealed());
  EXPECT_EQ(upload->size_so_far(), 6);

  const uint64_t again = upload->TakeOver();
  ASSERT_TRUE(upload->Append(again, 6, "second").ok());
  EXPECT_TRUE(upload->Seal(again, 12, fingerprint).ok());
  EXPECT_TRUE(upload->sealed());
}

TEST_F(UploadTest, IsNotDurableBeforeItsNameIs) {
  const auto upload = Open();
  os::WatchedDisk disk;
  for (const int error : {EIO, ENOSPC}) {
    disk.FailSync("uploads", error);
    ASSERT_TRUE(upload->Append(upload->TakeOver(), 0, "all").ok());
    const absl::Status failed = upload->Sync();
    EXPECT_EQ(failed.code(),
              error == EIO ? absl::StatusCode::kUnavailable : absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(upload->durable_size(), 0);
  }
}

// The next writer could not sync it either, and cut a file that had the name of whole content: who
// opened it next took what was left for all of it.
TEST_F(UploadTest, IsNotCutUnderTheNameOfWholeContent) {
  const auto upload = Open();
  const auto fingerprint = base::Fingerprint("all");
  {
    os::WatchedDisk disk;
    disk.FailSync("uploads", EIO);
    const uint64_t ticket = upload->TakeOver();
    ASSERT_TRUE(upload->Append(ticket, 0, "all").ok());
    EXPECT_TRUE(absl::IsUnavailable(upload->Seal(ticket, 3, fingerprint)));
    upload->TakeOver();
    EXPECT_EQ(upload->size_so_far(), 0);
    EXPECT_FALSE(uploads_->IsSealed(7));
  }
  const uint64_t ticket = upload->TakeOver();
  ASSERT_TRUE(upload->Append(ticket, 0, "all").ok());
  ASSERT_TRUE(upload->Seal(ticket, 3, fingerprint).ok());
  EXPECT_TRUE(uploads_->IsSealed(7));
  EXPECT_EQ(std::filesystem::file_size(upload->path()), 3);
}

TEST_F(UploadTest, HasAFolderThatSurvivesAPowerCut) {
  os::WatchedDisk disk;
  ASSERT_TRUE(Uploads::Open(dir_ / "data/uploads").ok());
  EXPECT_THAT(disk.TakeCalls(), Contains("sync data"));
  disk.FailSync("data", EIO);
  EXPECT_TRUE(absl::IsUnavailable(Uploads::Open(dir_ / "data/others").status()));
}

TEST_F(UploadTest, GoesOnInANewProcessWhereTheOldOneEnded) {
  {
    const auto upload = Open();
    ASSERT_TRUE(Add(*upload, upload->TakeOver(), 0, "first,").ok());
  }
  const auto upload = Open();
  EXPECT_EQ(upload->durable_size(), 6);
  const uint64_t ticket = upload->TakeOver();
  ASSERT_TRUE(Add(*upload, ticket, 6, "second").ok());
  EXPECT_TRUE(upload->Seal(ticket, 12, base::Fingerprint("first,second")).ok());
}

// The process before was killed between its write and its sync.
TEST_F(UploadTest, SyncsWhatItFindsBeforeItCountsAsDurable) {
  std::ofstream(ArrivingPath(uploads_->PathOf(7))) << "first,";
  os::WatchedDisk disk;
  const auto upload = Open();
  EXPECT_THAT(disk.TakeCalls(), ElementsAre("sync 7.part", "sync uploads"));
  EXPECT_EQ(upload->durable_size(), 6);
  EXPECT_EQ(Open()->durable_size(), 6);
  EXPECT_THAT(disk.TakeCalls(), IsEmpty()) << "once is enough";
  const uint64_t ticket = upload->TakeOver();
  ASSERT_TRUE(Add(*upload, ticket, 6, "second").ok());
  EXPECT_THAT(disk.TakeCalls(), ElementsAre("sync 7.part"));
}

// The process before was killed between its rename and the sync of the folder.
TEST_F(UploadTest, SyncsTheWholeContentThatItFindsAndItsName) {
  std::ofstream(uploads_->PathOf(7)) << "all";
  os::WatchedDisk disk;
  const auto upload = Open();
  EXPECT_THAT(disk.TakeCalls(), ElementsAre("sync 7", "sync uploads"));
  EXPECT_EQ(upload->size(), 3);
  EXPECT_EQ(ReadAll(*upload, 100), "all");
}

TEST_F(UploadTest, AcknowledgesNothingOfWhatItFindsAndCannotSync) {
  namespace fs = std::filesystem;
  for (const std::string& path : {ArrivingPath(uploads_->PathOf(7)), uploads_->PathOf(8)}) {
    const uint64_t batch = path == uploads_->PathOf(8) ? 8 : 7;
    std::ofstream(path) << "first,";
    const fs::file_time_type long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
    fs::last_write_time(path, long_ago);
    {
      os::WatchedDisk disk;
      disk.FailSync(fs::path(path).filename(), EIO);
      EXPECT_TRUE(absl::IsUnavailable(uploads_->Get(batch).status()));
      EXPECT_TRUE(absl::IsUnavailable(uploads_->Get(batch).status()));
    }
    // What the failed sync may have lost is written anew, so that the next sync has it.
    EXPECT_GT(fs::last_write_time(path), long_ago);
    EXPECT_EQ(fs::file_size(path), 6) << "an earlier process may have acknowledged it";
    const auto upload = uploads_->Get(batch);
    ASSERT_TRUE(upload.ok()) << upload.status();
    EXPECT_EQ((*upload)->durable_size(), 6);
    EXPECT_EQ(ReadAll(**upload, 6), "first,");
  }
}

TEST_F(UploadTest, DoesNotCountWhatItFindsAsDurableBeforeItsNameIs) {
  std::ofstream(ArrivingPath(uploads_->PathOf(7))) << "first,";
  os::WatchedDisk disk;
  disk.FailSync("uploads", EIO);
  EXPECT_TRUE(absl::IsUnavailable(uploads_->Get(7).status()));
}

TEST_F(UploadTest, IsWholeForEveryProcessOnceItIsSealed) {
  {
    const auto upload = Open();
    const uint64_t ticket = upload->TakeOver();
    ASSERT_TRUE(Add(*upload, ticket, 0, "all").ok());
    ASSERT_TRUE(upload->Seal(ticket, 3, base::Fingerprint("all")).ok());
  }
  const auto upload = Open();
  EXPECT_TRUE(upload->sealed());
  const uint64_t ticket = upload->TakeOver();
  EXPECT_TRUE(upload->Seal(ticket, 3, base::Fingerprint("all")).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(upload->Seal(ticket, 3, base::Fingerprint("any"))));
  EXPECT_TRUE(absl::IsAlreadyExists(upload->Append(ticket, 3, "more")));
}

TEST_F(UploadTest, TakesNoPieceThatDoesNotFollow) {
  const auto upload = Open();
  const uint64_t ticket = upload->TakeOver();
  ASSERT_TRUE(Add(*upload, ticket, 0, "abc").ok());
  EXPECT_TRUE(absl::IsOutOfRange(upload->Append(ticket, 2, "c")));
  EXPECT_TRUE(absl::IsOutOfRange(upload->Append(ticket, 4, "e")));
  EXPECT_TRUE(absl::IsOutOfRange(upload->Seal(ticket, 4, base::Fingerprint("abcd"))));
  EXPECT_EQ(upload->durable_size(), 3);
}

TEST_F(UploadTest, IsNotSealedWithWhatWasNotSent) {
  const auto upload = Open();
  const uint64_t ticket = upload->TakeOver();
  ASSERT_TRUE(Add(*upload, ticket, 0, "abc").ok());
  EXPECT_TRUE(absl::IsDataLoss(upload->Seal(ticket, 3, base::Fingerprint("abd"))));
  EXPECT_FALSE(upload->sealed());
}

TEST_F(UploadTest, ListensToItsLatestWriterOnly) {
  const auto upload = Open();
  const uint64_t old_ticket = upload->TakeOver();
  const uint64_t new_ticket = upload->TakeOver();
  EXPECT_TRUE(absl::IsAborted(upload->Append(old_ticket, 0, "old")));
  EXPECT_TRUE(upload->Append(new_ticket, 0, "new").ok());
}

TEST_F(UploadTest, TellsItsWriterWhyNobodyNeedsIt) {
  const auto upload = Open();
  const uint64_t ticket = upload->TakeOver();
  upload->Refuse(absl::InvalidArgumentError("no such column"));
  upload->Refuse(absl::CancelledError("too late to matter"));
  EXPECT_EQ(upload->Append(ticket, 0, "x"), absl::InvalidArgumentError("no such column"));
}

TEST_F(UploadTest, RefusesTheSendersThatHaveItOpen) {
  EXPECT_EQ(uploads_->DurableBytes(7), std::nullopt);
  uploads_->Refuse(7, absl::CancelledError("not open yet"));
  const auto upload = Open();
  ASSERT_TRUE(Add(*upload, upload->TakeOver(), 0, "content").ok());
  EXPECT_EQ(uploads_->DurableBytes(7), 7u);
  EXPECT_EQ(uploads_->DurableBytes(8), std::nullopt);
  uploads_->Refuse(7, absl::CancelledError("the batch is cancelled"));
  EXPECT_EQ(upload->Append(upload->TakeOver(), 7, "x"),
            absl::CancelledError("the batch is cancelled"));
}

TEST_F(UploadTest, IsGoneWhenItIsDeleted) {
  ASSERT_TRUE(Add(*Open(), Open()->TakeOver(), 0, "abc").ok());
  EXPECT_EQ(Open()->durable_size(), 3);
  ASSERT_TRUE(uploads_->Delete(7).ok());
  ASSERT_TRUE(uploads_->Delete(7).ok());
  EXPECT_EQ(Open()->durable_size(), 0);
}

class MovedUploadsTest : public UploadTest {
 protected:
  // As a muster records it that takes the batch in with these uploads.
  ledger::Batch BatchOf(uint64_t number) const {
    ledger::Batch batch;
    batch.number = number;
    batch.source_path = uploads_->PathOf(number);
    batch.content_path = uploads_->ContentPathOf(number);
    return batch;
  }
  ledger::Batch BatchOfOlderMuster(uint64_t number) const {
    ledger::Batch batch = BatchOf(number);
    batch.content_path.clear();
    return batch;
  }

  std::unique_ptr<Uploads> OpenMoved() const {
    return Uploads::Open(dir_ / "moved/uploads").value();
  }
};

TEST_F(MovedUploadsTest, KnowTheirContentByItsPlaceInTheDataDirectory) {
  EXPECT_EQ(BatchOf(7).content_path, "uploads/7");
  EXPECT_TRUE(uploads_->Stores(BatchOf(7)));
  EXPECT_TRUE(uploads_->Stores(BatchOfOlderMuster(7)));
  // The copy that a backup was made of is still there.
  std::ofstream(uploads_->PathOf(7)) << "all";
  EXPECT_TRUE(OpenMoved()->Stores(BatchOf(7)));
}

TEST_F(MovedUploadsTest, FindWhatAnOlderMusterRecordedByItsAbsolutePath) {
  const auto moved = OpenMoved();
  EXPECT_TRUE(moved->Stores(BatchOfOlderMuster(7))) << "its content is nowhere, and arrives here";
  std::ofstream(uploads_->PathOf(7)) << "all";
  std::ofstream(ArrivingPath(uploads_->PathOf(8))) << "some";
  EXPECT_FALSE(moved->Stores(BatchOfOlderMuster(7)));
  EXPECT_FALSE(moved->Stores(BatchOfOlderMuster(8)));
  std::ofstream(moved->PathOf(7)) << "all";
  std::ofstream(ArrivingPath(moved->PathOf(8))) << "some";
  EXPECT_TRUE(moved->Stores(BatchOfOlderMuster(7)));
  EXPECT_TRUE(moved->Stores(BatchOfOlderMuster(8)));
}

TEST_F(MovedUploadsTest, LeaveASubmittersFilesToTheSubmitter) {
  ledger::Batch batch;
  batch.number = 7;
  for (const char* const path : {"/home/me/7", "/home/me/uploads/8", "/home/me/in.csv"}) {
    batch.source_path = path;
    EXPECT_FALSE(uploads_->Stores(batch)) << path;
  }
}

class UploadSyncerTest : public ::testing::Test {
 protected:
  void Begin() {
    syncer_ = std::make_unique<UploadSyncer>(
        upload_.get(), &clock_, [this](uint64_t durable) { Note(durable); },
        [this](const absl::Status&) { failed_ = true; });
  }

  void Add(uint64_t offset, const std::string& piece) {
    ASSERT_TRUE(upload_->Append(ticket_, offset, piece).ok());
    syncer_->Wake();
  }

  void Note(uint64_t durable) {
    base::MutexLock lock(&mu_);
    told_.push_back(durable);
    changed_.NotifyAll();
  }
  void AwaitTold(uint64_t durable) {
    base::MutexLock lock(&mu_);
    while (told_.empty() || told_.back() != durable) changed_.Wait(&mu_);
  }

  // The first sync waits for a seal.
  void AddFirst(const std::string& piece) {
    Add(0, piece);
    clock_.AwaitSleepers(1);
    clock_.Advance(kSealPause);
  }

  // Begins an upload; the disk breaks after the first three of six bytes.
  void BeginOnDiskThatBreaks() {
    Begin();
    AddFirst("abc");
    AwaitTold(3);
    ASSERT_TRUE(upload_->Append(ticket_, 3, "def").ok());
    broken_.emplace(ArrivingPath(upload_->path()));
    syncer_->Wake();
  }

  base::FakeClock clock_;
  const os::TempDir dir_;
  const std::unique_ptr<Uploads> uploads_ = Uploads::Open(dir_ / "uploads").value();
  const std::shared_ptr<Upload> upload_ = uploads_->Get(7).value();
  uint64_t ticket_ = upload_->TakeOver();
  std::optional<BrokenMedium> broken_;
  std::atomic<bool> failed_ = false;
  base::Mutex mu_;
  base::CondVar changed_;
  std::vector<uint64_t> told_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<UploadSyncer> syncer_;  // last: it calls the others
};

TEST_F(UploadSyncerTest, TellsHowFarTheContentIsDurable) {
  Begin();
  AddFirst("abc");
  AwaitTold(3);
  Add(3, "def");
  AwaitTold(6);
  EXPECT_EQ(upload_->durable_size(), 6);
}

TEST_F(UploadSyncerTest, SyncsInTheEndWhatIsLeft) {
  Begin();
  for (int i = 0; i < 100; ++i) Add(3 * i, "abc");
  EXPECT_TRUE(syncer_->Finish().ok());
  EXPECT_EQ(upload_->durable_size(), 300);
  EXPECT_TRUE(syncer_->Finish().ok());
  base::MutexLock lock(&mu_);
  EXPECT_EQ(told_.back(), 300);
}

TEST_F(UploadSyncerTest, LeavesAShortUploadToItsSeal) {
  Begin();
  Add(0, "abc");
  EXPECT_TRUE(syncer_->HandOver().ok());
  EXPECT_TRUE(upload_->Seal(ticket_, 3, base::Fingerprint("abc")).ok());
  syncer_.reset();
  EXPECT_EQ(upload_->durable_size(), 3);
  base::MutexLock lock(&mu_);
  EXPECT_TRUE(told_.empty());
}

TEST_F(UploadSyncerTest, HandsOverHowTheLastSyncEnded) {
  BeginOnDiskThatBreaks();
  while (!failed_) base::LetOthersRun();
  EXPECT_TRUE(absl::IsUnavailable(syncer_->HandOver()));
}

// The former writer must get the error with its next piece, and so must not wait for `durable`.
TEST_F(UploadSyncerTest, TellsAWriterThatWasOvertakenToo) {
  Begin();
  ASSERT_TRUE(upload_->Append(ticket_, 0, "abc").ok());
  (void)upload_->TakeOver();
  syncer_->Wake();
  clock_.AwaitSleepers(1);
  clock_.Advance(kSealPause);
  AwaitTold(3);
  EXPECT_FALSE(failed_);
}

TEST_F(UploadSyncerTest, SaysWhenTheContentCannotBeSynced) {
  BeginOnDiskThatBreaks();
  EXPECT_TRUE(absl::IsUnavailable(syncer_->Finish()));
  EXPECT_TRUE(failed_);
  EXPECT_EQ(upload_->durable_size(), 3);
}

}  // namespace

}  // namespace muster::initiator::submit
