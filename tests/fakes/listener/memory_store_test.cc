// SPDX-License-Identifier: Apache-2.0

// The finer points of the QueueStore contract, on which tests of listeners rest.
#include "tests/fakes/listener/memory_store.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::listener::testing {
namespace {

class MemoryStoreTest : public ::testing::Test {
 protected:
  MemoryStoreTest() {
    std::vector<queue::NewMessage> messages(1);
    EXPECT_TRUE(store_.Put(queue_, messages).ok());
  }

  queue::Message Receive() { return store_.Receive(queue_, {1, absl::Seconds(30)})->at(0); }
  absl::StatusOr<int> Begin(const queue::Receipt& receipt) {
    return store_.BeginAttempt(queue_, {receipt})->at(0);
  }
  queue::Receipt Renew(const queue::Receipt& receipt) {
    const std::vector<queue::UpdateRequest> requests = {
        {.receipt = receipt, .visibility = absl::Seconds(30), .body = {}}};
    return store_.Update(queue_, requests)->at(0)->receipt;
  }
  void GiveBack(const queue::Receipt& receipt) {
    const std::vector<queue::UpdateRequest> requests = {
        {.receipt = receipt, .body = {}, .attempt_ended = true, .refund_attempt = true}};
    EXPECT_TRUE(store_.Update(queue_, requests)->at(0).ok());
  }

  const queue::QueueId queue_ = {"acme", "input"};
  base::FakeClock clock_;
  MemoryStore store_{&clock_};
};

TEST_F(MemoryStoreTest, RefundsOnlyWhatThisHolderBegan) {
  ASSERT_TRUE(Begin(Receive().receipt).ok());
  clock_.Advance(absl::Seconds(30));
  GiveBack(Receive().receipt);
  const queue::Message again = Receive();
  EXPECT_EQ(again.attempts, 1);
  EXPECT_TRUE(again.interrupted);
}

TEST_F(MemoryStoreTest, RefundsAnAttemptWhoseLeaseWasRenewedSince) {
  const queue::Message message = Receive();
  ASSERT_TRUE(Begin(message.receipt).ok());
  GiveBack(Renew(message.receipt));
  const queue::Message again = Receive();
  EXPECT_EQ(again.attempts, 0);
  EXPECT_FALSE(again.interrupted);
}

TEST_F(MemoryStoreTest, BeginsNothingUnderALeaseThatRanOut) {
  const queue::Message message = Receive();
  clock_.Advance(absl::Seconds(30));
  EXPECT_TRUE(absl::IsFailedPrecondition(Begin(message.receipt).status()));
  EXPECT_TRUE(store_.Delete(queue_, {message.receipt})->at(0).ok());
}

TEST_F(MemoryStoreTest, KnowsNoMessageThatWasDeleted) {
  const queue::Message message = Receive();
  EXPECT_TRUE(store_.Delete(queue_, {message.receipt})->at(0).ok());
  EXPECT_TRUE(absl::IsNotFound(store_.Delete(queue_, {message.receipt})->at(0)));
}

}  // namespace
}  // namespace muster::listener::testing
