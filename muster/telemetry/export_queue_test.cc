// SPDX-License-Identifier: Apache-2.0
#include "muster/telemetry/export_queue.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/mutex.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::telemetry {
namespace {

using testing::ElementsAre;

// A collector that a test lets take what is sent, call by call.
class Collector {
 public:
  // On the queue's thread: waits until the test answers.
  bool Take(std::vector<int> items) ABSL_LOCKS_EXCLUDED(mu_) {
    base::MutexLock lock(&mu_);
    calls_.push_back(std::move(items));
    changed_.NotifyAll();
    while (answers_.size() < calls_.size()) changed_.Wait(&mu_);
    return answers_[calls_.size() - 1];
  }

  void Answer(bool answer) ABSL_LOCKS_EXCLUDED(mu_) {
    base::MutexLock lock(&mu_);
    answers_.push_back(answer);
    changed_.NotifyAll();
  }

  // The items of call `n`, from 0, once it is made.
  std::vector<int> Call(size_t n) ABSL_LOCKS_EXCLUDED(mu_) {
    base::MutexLock lock(&mu_);
    while (calls_.size() <= n) changed_.Wait(&mu_);
    return calls_[n];
  }

  size_t calls() ABSL_LOCKS_EXCLUDED(mu_) {
    base::MutexLock lock(&mu_);
    return calls_.size();
  }

 private:
  base::Mutex mu_;
  base::CondVar changed_;
  std::vector<std::vector<int>> calls_ ABSL_GUARDED_BY(mu_);
  std::vector<bool> answers_ ABSL_GUARDED_BY(mu_);
};

class ExportQueueTest : public testing::Test {
 protected:
  void Open(const ExportLimits& limits) {
    queue_ = std::make_unique<ExportQueue<int>>(
        limits, &clock_,
        [this](std::vector<int> items) { return collector_.Take(std::move(items)); },
        [this](size_t count) { dropped_ += count; });
  }

  base::FakeClock clock_;
  Collector collector_;
  std::atomic<size_t> dropped_ = 0;
  std::unique_ptr<ExportQueue<int>> queue_;
};

TEST_F(ExportQueueTest, SendsWhatGathersDuringACallTogether) {
  Open({});
  queue_->Add(1);
  EXPECT_THAT(collector_.Call(0), ElementsAre(1));
  queue_->Add(2);
  queue_->Add(3);
  collector_.Answer(true);
  EXPECT_THAT(collector_.Call(1), ElementsAre(2, 3));
  collector_.Answer(true);
  queue_.reset();
  EXPECT_EQ(dropped_, 0);
}

TEST_F(ExportQueueTest, LetsOthersComeForAMomentUnlessACallIsFull) {
  Open({.most_together = 3, .linger = absl::Milliseconds(50)});
  queue_->Add(1);
  clock_.AwaitSleepers(1);
  queue_->Add(2);
  EXPECT_EQ(collector_.calls(), 0);
  collector_.Answer(true);
  clock_.Advance(absl::Milliseconds(50));
  EXPECT_THAT(collector_.Call(0), ElementsAre(1, 2));
  for (int item = 3; item <= 5; ++item) queue_->Add(item);
  EXPECT_THAT(collector_.Call(1), ElementsAre(3, 4, 5)) << "without a moment";
  collector_.Answer(true);
  queue_->Add(6);
  collector_.Answer(true);
  queue_.reset();
  EXPECT_THAT(collector_.Call(2), ElementsAre(6)) << "at once: it ends";
}

TEST_F(ExportQueueTest, DropsAndCountsWhatIsBeyondItsBound) {
  Open({.most_waiting = 2});
  queue_->Add(1);
  collector_.Call(0);  // hangs
  for (int item = 2; item <= 6; ++item) queue_->Add(item);
  EXPECT_EQ(dropped_, 3);
  collector_.Answer(true);
  EXPECT_THAT(collector_.Call(1), ElementsAre(2, 3));
  collector_.Answer(true);
  queue_.reset();
}

TEST_F(ExportQueueTest, BoundsACall) {
  Open({.most_together = 2});
  queue_->Add(1);
  collector_.Call(0);
  for (int item = 2; item <= 4; ++item) queue_->Add(item);
  for (int call = 0; call < 3; ++call) collector_.Answer(true);
  queue_.reset();
  EXPECT_THAT(collector_.Call(1), ElementsAre(2, 3));
  EXPECT_THAT(collector_.Call(2), ElementsAre(4));
}

TEST_F(ExportQueueTest, PausesAfterAFailureAndDropsWhatItSent) {
  Open({.pause_after_failure = absl::Seconds(1)});
  collector_.Answer(false);
  queue_->Add(1);
  clock_.AwaitSleepers(1);
  EXPECT_EQ(dropped_, 1);
  queue_->Add(2);
  EXPECT_EQ(collector_.calls(), 1);
  collector_.Answer(true);
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(collector_.Call(1), ElementsAre(2));
  queue_.reset();
  EXPECT_EQ(dropped_, 1);
}

TEST_F(ExportQueueTest, EndsAtTheFirstFailureOfACollectorThatIsAway) {
  Open({.most_together = 1});
  queue_->Add(1);
  collector_.Call(0);
  queue_->Add(2);
  queue_->Add(3);
  queue_->Close();
  queue_->Add(4);
  EXPECT_EQ(dropped_, 1) << "it came too late";
  collector_.Answer(false);
  queue_.reset();
  EXPECT_EQ(collector_.calls(), 1);
  EXPECT_EQ(dropped_, 4);
}

TEST_F(ExportQueueTest, EndsWhenItsPatienceWithASlowCollectorIsOver) {
  Open({.most_together = 1, .patience_at_end = absl::Seconds(1)});
  queue_->Add(1);
  collector_.Call(0);
  queue_->Add(2);
  queue_->Close();
  clock_.Advance(absl::Seconds(1));
  collector_.Answer(true);
  queue_.reset();
  EXPECT_EQ(collector_.calls(), 1);
  EXPECT_EQ(dropped_, 1);
}

}  // namespace
}  // namespace muster::telemetry
