// SPDX-License-Identifier: Apache-2.0

// A redrive of many messages goes in steps: the effect on other calls, and after a failure.
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/rocksdb/faulty_env.h"

namespace muster::queue::rocksdb {
namespace {

constexpr int kSteps = 5;
constexpr int kMessages = kSteps * 64;

class RedriveTest : public ::testing::Test {
 protected:
  // `before_sync` is called before each sync of the log, those of the redrive and of other calls.
  void OpenWithPoison(std::function<void()> before_sync) {
    env_.before_sync = std::move(before_sync);
    Options options;
    options.clock = &clock_;
    options.env = &env_;
    auto store = RocksDbQueueStore::Open(dir_.path(), options);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    ASSERT_TRUE(store_->CreateQueue(queue_, {}).ok());
    std::vector<queue::DeadLetterRequest> requests(kMessages);
    for (auto& request : requests) request.receipt = Put();
    ASSERT_TRUE(store_->DeadLetter(queue_, requests).ok());
    ASSERT_EQ(store_->Stats(queue_)->poison, kMessages);
  }

  queue::Receipt Put() {
    return store_->Put(queue_, std::vector<queue::NewMessage>(1))->front().receipt;
  }

  const queue::QueueId queue_{"acme", "work"};
  const os::TempDir dir_;
  base::FakeClock clock_;
  muster::rocksdb::testing::FaultyEnv env_;
  std::unique_ptr<RocksDbQueueStore> store_;
};

// The first step waits until the renewal is under way, and each step gives the renewal time to
// enter; the renewal must come before the last step.
TEST_F(RedriveTest, LetsLeasesBeRenewedBetweenItsSteps) {
  std::atomic<int> syncs{kSteps};  // the redrive has not begun
  std::promise<void> begun, renewing;
  std::atomic<bool> renewed{false};
  OpenWithPoison([&] {
    if (syncs >= kSteps) return;
    if (++syncs == 1) {
      begun.set_value();
      renewing.get_future().wait();
    }
    for (int i = 0; i < 10000 && !renewed; ++i) base::LetOthersRun();
  });
  const queue::Receipt held = Put();
  syncs = 0;
  std::thread redrive([&] { EXPECT_EQ(store_->Redrive(queue_, {}, 1000).value(), kMessages); });
  begun.get_future().wait();
  renewing.set_value();
  queue::UpdateRequest renewal;
  renewal.receipt = held;
  renewal.visibility = absl::Seconds(30);
  EXPECT_TRUE(store_->Update(queue_, {renewal})->front().ok());
  EXPECT_LT(syncs, kSteps);
  renewed = true;
  redrive.join();
  EXPECT_EQ(store_->Stats(queue_)->poison, 0);
  store_.reset();
}

TEST_F(RedriveTest, CountsWhatWasMovedBeforeTheDiskFailed) {
  int left = -1;
  OpenWithPoison([&] {
    if (left > 0 && --left == 0) env_.fail_syncs = true;
  });
  left = 3;
  EXPECT_EQ(store_->Redrive(queue_, {}, 1000).value(), 2 * 64);
  EXPECT_TRUE(absl::IsUnavailable(store_->Redrive(queue_, {}, 1000).status()));
  EXPECT_EQ(store_->Stats(queue_)->poison, kMessages - 2 * 64);
  store_.reset();
}

}  // namespace
}  // namespace muster::queue::rocksdb
