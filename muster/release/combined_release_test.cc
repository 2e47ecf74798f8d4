// SPDX-License-Identifier: Apache-2.0
#include "muster/release/combined_release.h"

#include <functional>
#include <memory>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/bus/local/local_buses.h"
#include "muster/release/listening_release.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::release {
namespace {

// A store that counts reads, and may have something done in the midst of one.
class WatchedStore final : public sync::OptimisticSyncStore {
 public:
  absl::StatusOr<sync::VersionedData> Get(absl::string_view key) override {
    std::function<void()> meanwhile;
    {
      base::MutexLock lock(&mu_);
      ++reads_;
      changed_.NotifyAll();
      meanwhile.swap(during_next_);
    }
    const auto data = memory_.Get(key);
    if (meanwhile) meanwhile();
    return data;
  }
  absl::StatusOr<bool> TryWrite(absl::string_view key, absl::string_view data,
                                uint64_t version) override {
    return memory_.TryWrite(key, data, version);
  }
  absl::StatusOr<bool> TryDelete(absl::string_view key, uint64_t version) override {
    return memory_.TryDelete(key, version);
  }

  // After the record was read, and before the reader gets it.
  void DuringNextRead(std::function<void()> act) {
    base::MutexLock lock(&mu_);
    during_next_ = std::move(act);
  }
  void AwaitReads(int n) {
    base::MutexLock lock(&mu_);
    while (reads_ < n) changed_.Wait(&mu_);
  }
  int reads() const {
    base::MutexLock lock(&mu_);
    return reads_;
  }
  sync::testing::MemorySyncStore& memory() { return memory_; }

 private:
  sync::testing::MemorySyncStore memory_;
  mutable base::Mutex mu_;
  base::CondVar changed_;
  int reads_ ABSL_GUARDED_BY(mu_) = 0;
  std::function<void()> during_next_ ABSL_GUARDED_BY(mu_);
};

class CombinedReleaseTest : public ::testing::Test {
 protected:
  std::unique_ptr<CombinedRelease> Open(absl::string_view name = "go") {
    return CombinedRelease::Open(name, &store_, &bus_, &clock_, {.uniform = [] { return 0.5; }})
        .value();
  }
  // Starts a thread that waits, and returns when it is parked.
  void Park(CombinedRelease* release) {
    workers_.emplace_back([this, release, place = workers_.size()] {
      const auto went = release->Wait(stop_.get_token());
      base::MutexLock lock(&mu_);
      ends_.push_back(went);
    });
    clock_.AwaitSleepers(static_cast<int>(workers_.size()));
  }
  void Join() {
    for (std::jthread& worker : workers_) worker.join();
    workers_.clear();
  }
  void ExpectAllGone(size_t n) {
    Join();
    EXPECT_EQ(ends_.size(), n);
    for (const auto& end : ends_) EXPECT_TRUE(end.ok()) << end.status();
  }

  base::FakeClock clock_;
  WatchedStore store_;
  bus::local::LocalTriggerBus bus_;
  bus::local::LocalTriggerBus nobody_listens_;
  Releases releases_{&store_.memory(), &bus_, "initiator-1", &clock_};
  Releases unheard_{&store_.memory(), &nobody_listens_, "initiator-2", &clock_};
  base::Mutex mu_;
  std::vector<absl::StatusOr<ReleaseState>> ends_;
  std::stop_source stop_;
  std::vector<std::jthread> workers_;
};

TEST_F(CombinedReleaseTest, LetsAllThreadsGoOnceItIsReleased) {
  const auto release = Open();
  for (int i = 0; i < 10; ++i) Park(release.get());
  EXPECT_EQ(release->epoch(), 1);
  ASSERT_TRUE(releases_.Release("go").ok());
  ExpectAllGone(10);
  EXPECT_EQ(ends_[0]->released_epoch, 1);
  EXPECT_EQ(store_.reads(), 2) << "one thread reads for all";
}

TEST_F(CombinedReleaseTest, WhoStartsAfterTheReleaseGoesAtOnce) {
  ASSERT_TRUE(releases_.Release("go").ok());
  EXPECT_TRUE(Open()->Wait({}).ok());
}

TEST_F(CombinedReleaseTest, ALostMulticastCostsASafetyIntervalAndNoMore) {
  const auto release = Open();
  Park(release.get());
  ASSERT_TRUE(unheard_.Release("go").ok());
  EXPECT_EQ(clock_.NextDeadline() - clock_.Monotonic(), kSafetyInterval);
  clock_.Advance(kSafetyInterval);
  ExpectAllGone(1);
}

TEST_F(CombinedReleaseTest, AReleaseBetweenSubscriptionAndFirstReadIsNotMissed) {
  const auto release = Open();
  store_.DuringNextRead([&] { ASSERT_TRUE(releases_.Release("go").ok()); });
  EXPECT_TRUE(release->Wait({}).ok());
  EXPECT_EQ(store_.reads(), 2);
}

TEST_F(CombinedReleaseTest, AMulticastThatTheRecordDoesNotConfirmLetsNobodyGo) {
  const auto release = Open();
  Park(release.get());
  for (const int64_t epoch : {1, 2, 1000000}) {
    ASSERT_TRUE(bus_.Publish({"stranger", bus::ReleasedEvent{"go", epoch}}).ok());
  }
  store_.AwaitReads(2);
  clock_.AwaitSleepers(1);
  EXPECT_EQ(ends_.size(), 0u);
  ASSERT_TRUE(releases_.Release("go").ok());
  clock_.AwaitSleepers(1);
  clock_.Advance(kSafetyInterval);
  ExpectAllGone(1);
}

TEST_F(CombinedReleaseTest, AFloodOfFalseMulticastsIsNoFloodOfReads) {
  const auto release = Open();
  Park(release.get());
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(bus_.Publish({"stranger", bus::ReleasedEvent{"go", 1}}).ok());
    clock_.Advance(absl::Milliseconds(10));  // 10 s in all
    clock_.AwaitSleepers(1);
  }
  // After 0.1, 0.2, 0.4 … 6.4 s, and one safety interval.
  EXPECT_LE(store_.reads(), 10);
  ASSERT_TRUE(releases_.Release("go").ok());
  clock_.Advance(kSafetyInterval);
  ExpectAllGone(1);
}

TEST_F(CombinedReleaseTest, OfAnotherReleaseNobodyIsWoken) {
  const auto release = Open();
  Park(release.get());
  ASSERT_TRUE(releases_.Release("other").ok());
  EXPECT_EQ(store_.reads(), 1);
  stop_.request_stop();
  Join();
  EXPECT_EQ(ends_[0].status().code(), absl::StatusCode::kCancelled);
}

TEST_F(CombinedReleaseTest, AStopEndsTheWaitOfEachThreadAtOnce) {
  const auto release = Open();
  for (int i = 0; i < 5; ++i) Park(release.get());
  stop_.request_stop();
  Join();
  EXPECT_EQ(ends_.size(), 5u);
  for (const auto& end : ends_) EXPECT_EQ(end.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(release->Wait(stop_.get_token()).status().code(), absl::StatusCode::kCancelled)
      << "a stop from before";
}

// A partitioned worker sees neither the release nor that it was armed again.
TEST_F(CombinedReleaseTest, WhoWasAwayForAReleaseThatIsArmedAgainStillGoes) {
  const auto release = Open();
  Park(release.get());
  ASSERT_TRUE(unheard_.Release("go").ok());
  ASSERT_TRUE(unheard_.Arm("go").ok());
  clock_.Advance(kSafetyInterval);
  ExpectAllGone(1);
}

TEST_F(CombinedReleaseTest, WhoParksAfterItIsArmedAgainWaitsForTheNextEpoch) {
  ASSERT_TRUE(releases_.Release("go").ok());
  ASSERT_TRUE(releases_.Arm("go").ok());
  const auto release = Open();
  Park(release.get());
  EXPECT_EQ(release->epoch(), 2);
  clock_.Advance(kSafetyInterval);
  clock_.AwaitSleepers(1);
  EXPECT_EQ(ends_.size(), 0u);
  ASSERT_TRUE(releases_.Release("go").ok());
  ExpectAllGone(1);
}

// The record counts from one again. Its second release must also let go those waiting threads that
// waited for a later epoch.
TEST_F(CombinedReleaseTest, AStoreThatHasLostTheRecordStrandsNobody) {
  ASSERT_TRUE(releases_.Release("go").ok());
  ASSERT_TRUE(releases_.Arm("go").ok());
  const auto release = Open();
  Park(release.get());
  store_.memory().Clear();
  ASSERT_TRUE(releases_.Release("go").ok());
  ExpectAllGone(1);
  EXPECT_EQ(ends_[0]->released_epoch, 1);
}

TEST_F(CombinedReleaseTest, WaitsOutAStoreThatDoesNotAnswer) {
  base::LogCapture log;
  store_.memory().FailNextGet(absl::UnavailableError("no route"));
  store_.memory().FailNextGet(absl::UnavailableError("no route"));
  const auto release = Open();
  Park(release.get());
  EXPECT_EQ(release->epoch(), 0);
  EXPECT_EQ(clock_.NextDeadline() - clock_.Monotonic(), kFirstBackoff);
  clock_.Advance(kFirstBackoff);
  store_.AwaitReads(2);
  clock_.AwaitSleepers(1);
  clock_.Advance(2 * kFirstBackoff);
  store_.AwaitReads(3);
  clock_.AwaitSleepers(1);
  EXPECT_EQ(release->epoch(), 1);
  EXPECT_EQ(log.lines().size(), 1u) << "one line for a series";
  ASSERT_TRUE(releases_.Release("go").ok());
  ExpectAllGone(1);
}

TEST_F(CombinedReleaseTest, RaisesWhatDoesNotPass) {
  store_.memory().Overwrite(kReleasesKey, "\xff\xff");
  const auto release = Open();
  EXPECT_EQ(release->Wait({}).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(CombinedRelease::Open("a b", &store_, &bus_, &clock_).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(CombinedReleaseTest, ManyProcessesDoNotReadInStep) {
  double uniform = 0;
  const auto release =
      CombinedRelease::Open("go", &store_, &bus_, &clock_, {.uniform = [&] { return uniform; }})
          .value();
  Park(release.get());
  EXPECT_EQ(clock_.NextDeadline() - clock_.Monotonic(), 0.8 * kSafetyInterval);
  uniform = 0.75;
  clock_.Advance(0.8 * kSafetyInterval);
  store_.AwaitReads(2);
  clock_.AwaitSleepers(1);
  EXPECT_EQ(clock_.NextDeadline() - clock_.Monotonic(), 1.1 * kSafetyInterval);
  stop_.request_stop();
  Join();
}

// The release is a multicast, and each node waits for it. One that
// starts after the release, or that was away, waits for ever; here until the test stops it.
TEST_F(CombinedReleaseTest, TheWayOfThePapersStrandsWhoStartsLateAndTheCombinationDoesNot) {
  const auto early = ListeningRelease::Open(&bus_, "go").value();
  ASSERT_TRUE(releases_.Release("go").ok());
  EXPECT_TRUE(early->Wait({}).ok());

  const auto late = ListeningRelease::Open(&bus_, "go").value();
  absl::Status listened;
  std::thread listener([&] { listened = late->Wait(stop_.get_token()); });
  const auto combined = Open();
  EXPECT_TRUE(combined->Wait({}).ok());
  clock_.Advance(absl::Hours(24 * 365));
  stop_.request_stop();
  listener.join();
  EXPECT_EQ(listened.code(), absl::StatusCode::kCancelled) << "it was not let go in a year";
}

TEST_F(CombinedReleaseTest, AListenerHearsOfItsOwnReleaseOnly) {
  EXPECT_EQ(ListeningRelease::Open(&bus_, "").status().code(), absl::StatusCode::kInvalidArgument);
  const auto listening = ListeningRelease::Open(&bus_, "go").value();
  ASSERT_TRUE(releases_.Release("other").ok());
  stop_.request_stop();
  EXPECT_EQ(listening->Wait(stop_.get_token()).code(), absl::StatusCode::kCancelled);
  ASSERT_TRUE(releases_.Release("go").ok());
  EXPECT_TRUE(listening->Wait(stop_.get_token()).ok());
}

}  // namespace
}  // namespace muster::release
