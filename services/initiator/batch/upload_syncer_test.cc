#include "services/initiator/batch/upload_syncer.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "muster/base/fingerprint.h"
#include "muster/base/mutex.h"
#include "muster/os/temp_dir.h"
#include "services/initiator/batch/uploads.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/initiator/broken_medium.h"

namespace muster::initiator::batch {
namespace {

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

  // After its first three bytes of six.
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
  std::unique_ptr<UploadSyncer> syncer_;  // last: it tells the others
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
  while (!failed_) std::this_thread::yield();
  EXPECT_TRUE(absl::IsUnavailable(syncer_->HandOver()));
}

// Who was overtaken has to hear of it with its next piece, and so must not wait for `durable`.
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
}  // namespace muster::initiator::batch
