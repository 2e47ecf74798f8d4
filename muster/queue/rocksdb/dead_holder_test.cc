// SPDX-License-Identifier: Apache-2.0

// Leases whose holders died with the store's process.
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::queue::rocksdb {
namespace {

class DeadHolderTest : public ::testing::Test {
 protected:
  void Open(bool holders_in_process) {
    store_.reset();
    Options options;
    options.clock = &clock_;
    options.holders_in_process = holders_in_process;
    auto store = RocksDbQueueStore::Open(dir_.path(), options);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  void Put(absl::Duration delay) {
    queue::NewMessage message;
    message.body = "a";
    message.delay = delay;
    ASSERT_TRUE(store_->Put(queue_, {message}).ok());
  }

  // Puts a message, leases it for an hour and begins to work on it.
  void PutAndBegin() {
    ASSERT_TRUE(store_->CreateQueue(queue_, {}).ok());
    Put(absl::ZeroDuration());
    const auto messages = store_->Receive(queue_, {1, absl::Hours(1)});
    ASSERT_TRUE(messages.ok());
    ASSERT_TRUE(store_->BeginAttempt(queue_, {messages->front().receipt}).ok());
  }

  std::vector<queue::Message> Receive() { return *store_->Receive(queue_, {1, absl::Hours(1)}); }

  const os::TempDir dir_;
  base::FakeClock clock_;
  const queue::QueueId queue_{"acme", "work"};
  std::unique_ptr<RocksDbQueueStore> store_;
};

TEST_F(DeadHolderTest, AMessageOfADeadHolderIsReadyAtOnceAndSuspect) {
  Open(true);
  PutAndBegin();
  Open(true);
  const std::vector<queue::Message> messages = Receive();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages.front().dequeue_count, 2);
  EXPECT_EQ(messages.front().attempts, 1);
  EXPECT_TRUE(messages.front().interrupted);
}

TEST_F(DeadHolderTest, ALeaseOfAHolderElsewhereOutlivesTheStore) {
  Open(false);
  PutAndBegin();
  Open(false);
  EXPECT_TRUE(Receive().empty());
}

TEST_F(DeadHolderTest, WhatADeadHolderNeverBeganIsAsIfItHadNotReceivedIt) {
  Open(true);
  ASSERT_TRUE(store_->CreateQueue(queue_, {}).ok());
  Put(absl::ZeroDuration());
  const queue::Receipt lost = Receive().front().receipt;
  Open(true);
  const std::vector<queue::Message> messages = Receive();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages.front().dequeue_count, 1);
  EXPECT_FALSE(messages.front().interrupted);
  const auto late = store_->Delete(queue_, {lost});
  ASSERT_TRUE(late.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(late->front())) << late->front();
}

TEST_F(DeadHolderTest, ALeaseOfAHolderElsewhereOutlivesTheStoreThoughNothingWasBegun) {
  Open(false);
  ASSERT_TRUE(store_->CreateQueue(queue_, {}).ok());
  Put(absl::ZeroDuration());
  const queue::Receipt kept = Receive().front().receipt;
  Open(false);
  EXPECT_TRUE(Receive().empty());
  const auto deleted = store_->Delete(queue_, {kept});
  ASSERT_TRUE(deleted.ok());
  EXPECT_TRUE(deleted->front().ok()) << deleted->front();
}

TEST_F(DeadHolderTest, ADelayIsNobodysLeaseAndStays) {
  Open(true);
  ASSERT_TRUE(store_->CreateQueue(queue_, {}).ok());
  Put(absl::Hours(1));
  Open(true);
  EXPECT_TRUE(Receive().empty());
}

}  // namespace
}  // namespace muster::queue::rocksdb
