#include "services/initiator/batch/scheduler.h"

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/base/mutex.h"
#include "muster/os/temp_dir.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::initiator::batch {
namespace {

using ::testing::ElementsAre;

constexpr absl::Duration kPatience = absl::Seconds(2);

class CancelAcksTest : public ::testing::Test {
 protected:
  static absl::Status Ok() { return absl::OkStatus(); }

  base::FakeClock clock_;
  CancelAcks acks_{&clock_};
};

TEST_F(CancelAcksTest, WaitForNobodyLongerThanUntilAllHaveAnswered) {
  const auto cancel = [this] {
    acks_.OnAcknowledged(7, "a");
    acks_.OnAcknowledged(7, "b");
    acks_.OnAcknowledged(7, "a");
    return absl::OkStatus();
  };
  EXPECT_EQ(acks_.Collect(7, {"a", "b"}, kPatience, cancel).value(), 2);
  EXPECT_EQ(acks_.Collect(7, {}, kPatience, Ok).value(), 0);
}

TEST_F(CancelAcksTest, CountThoseWhoAnswerWhileTheyAreWaitedFor) {
  std::thread later([this] {
    clock_.AwaitSleepers(1);
    acks_.OnAcknowledged(7, "b");
  });
  const auto cancel = [this] {
    acks_.OnAcknowledged(7, "a");
    return absl::OkStatus();
  };
  EXPECT_EQ(acks_.Collect(7, {"a", "b"}, kPatience, cancel).value(), 2);
  later.join();
}

TEST_F(CancelAcksTest, GiveUpOnThoseWhoSayNothing) {
  std::thread later([this] {
    clock_.AwaitSleepers(1);
    clock_.Advance(kPatience);
  });
  const auto cancel = [this] {
    acks_.OnAcknowledged(7, "a");
    acks_.OnAcknowledged(7, "nobody asked");
    acks_.OnAcknowledged(8, "b");
    return absl::OkStatus();
  };
  EXPECT_EQ(acks_.Collect(7, {"a", "b"}, kPatience, cancel).value(), 1);
  later.join();
}

TEST_F(CancelAcksTest, AreNotWaitedForWhenNothingWasCancelled) {
  const auto refuse = [] { return absl::NotFoundError("no such batch"); };
  EXPECT_TRUE(absl::IsNotFound(acks_.Collect(7, {"a"}, kPatience, refuse).status()));
}

TEST_F(CancelAcksTest, OfAnEarlierCancellationDoNotCount) {
  const auto cancel = [this] {
    acks_.OnAcknowledged(7, "a");
    return absl::OkStatus();
  };
  EXPECT_EQ(acks_.Collect(7, {"a"}, kPatience, cancel).value(), 1);
  std::thread later([this] {
    clock_.AwaitSleepers(1);
    clock_.Advance(kPatience);
  });
  EXPECT_EQ(acks_.Collect(7, {"a"}, kPatience, Ok).value(), 0);
  later.join();
}

// Batches that are over, and the content and claims that they leave.
class SweepTest : public ::testing::Test {
 protected:
  class NoContent final : public ContentStore {
   public:
    bool Stores(const ledger::Batch&) const override { return true; }
    std::string PathOf(uint64_t) const override { return ""; }
    absl::StatusOr<std::shared_ptr<const input::ByteSource>> OpenContent(uint64_t) override {
      return absl::NotFoundError("none");
    }
    std::optional<uint64_t> DurableBytes(uint64_t) override { return std::nullopt; }
    bool IsSealed(uint64_t) const override { return true; }
    void Refuse(uint64_t, const absl::Status&) override {}
    absl::Status Delete(uint64_t batch) override {
      base::MutexLock lock(&mu_);
      deleted_.insert(batch);
      changed_.NotifyAll();
      return absl::OkStatus();
    }
    void Forget() {
      base::MutexLock lock(&mu_);
      deleted_.clear();
    }
    void AwaitDeleted(uint64_t batch) {
      base::MutexLock lock(&mu_);
      while (!deleted_.contains(batch)) changed_.Wait(&mu_);
    }

   private:
    base::Mutex mu_;
    base::CondVar changed_;
    std::set<uint64_t> deleted_ ABSL_GUARDED_BY(mu_);
  };

  // A batch that was cancelled so long ago.
  void AddCancelled(uint64_t number, absl::Duration ago) {
    ledger::Batch batch;
    batch.number = number;
    batch.request_id = absl::StrCat("request ", number);
    batch.request_claimed = true;
    ASSERT_TRUE(ledger_->Create(batch).ok());
    ASSERT_TRUE(ledger_->Cancel(number, clock_.Now() - ago, "").ok());
  }

  // Sweeps once; `last` is the last batch that the sweep deletes.
  void Sweep(uint64_t last) {
    EngineDependencies tools;
    tools.stores = {nullptr, bus_.get(), ledger_.get(), nullptr, &clock_};
    tools.content = &content_;
    tools.release_request = [this](const ledger::Batch& batch) {
      released_.push_back(batch.number);
      return release_answer_;
    };
    BatchScheduler scheduler(tools, {.threads = 1});
    ASSERT_TRUE(scheduler.Start().ok());
    content_.AwaitDeleted(last);
    scheduler.Stop();
  }

  const os::TempDir dir_;
  base::FakeClock clock_;
  const std::unique_ptr<ledger::BatchLedger> ledger_ =
      backend::OpenBatchLedger(backend::DataDirUrls(dir_.path()).ledger, backend::Mode::kReadWrite)
          .value();
  const std::unique_ptr<bus::TriggerBus> bus_ = backend::OpenTriggerBus("local:").value();
  NoContent content_;
  std::vector<uint64_t> released_;
  absl::Status release_answer_;
};

TEST_F(SweepTest, ReleasesTheRequestIdsOfBatchesThatEndedADayAgoOnce) {
  AddCancelled(1, absl::Hours(1));
  AddCancelled(2, absl::Hours(25));
  AddCancelled(3, absl::Hours(26));
  Sweep(2);
  EXPECT_THAT(released_, ElementsAre(3, 2)) << "the longest due first";
  EXPECT_TRUE(ledger_->Get(1)->request_claimed);
  EXPECT_FALSE(ledger_->Get(2)->request_claimed);
  AddCancelled(4, absl::Hours(25));
  Sweep(4);
  EXPECT_THAT(released_, ElementsAre(3, 2, 4)) << "what is released is not asked for again";
}

TEST_F(SweepTest, DeletesContentAlsoWhenNoRequestIdCanBeReleasedAndReleasesItLater) {
  AddCancelled(2, absl::Hours(25));
  AddCancelled(3, absl::Hours(26));
  release_answer_ = absl::UnavailableError("no server");
  Sweep(2);
  EXPECT_THAT(released_, ElementsAre(3)) << "the store is not asked for each batch in vain";
  EXPECT_TRUE(ledger_->Get(2)->request_claimed);
  release_answer_ = absl::OkStatus();
  released_.clear();
  content_.Forget();
  Sweep(2);
  EXPECT_THAT(released_, ElementsAre(3, 2));
}

}  // namespace
}  // namespace muster::initiator::batch
